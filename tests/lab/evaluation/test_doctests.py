"""Gaps in functions with doctests."""

import pytest
from mercury_lab.evaluation import doctests, humaneval

DOUBLE = '''import math


def twice(x):
    """
    >>> twice(math.floor(2.5))
    4
    """
    y = x
    y += x
    return y


if __name__ == "__main__":
    print(input())
'''


@pytest.mark.parametrize(
    "change",
    [
        ("import math", "import numpy"),
        (">>> twice", "twice"),
        ("    4\n", "    5\n"),
        ("y = x", "y ="),
        ("y = x", "y = z"),
    ],
)
def test_only_functions_whose_doctests_pass_have_gaps(change, tmp_path):
    (tmp_path / "one.py").write_text(DOUBLE.replace(*change))
    assert list(doctests.tasks(tmp_path, 0)) == []


def test_the_file_is_one_that_humaneval_reads(tmp_path, capsys):
    (tmp_path / "one.py").write_text(DOUBLE)
    assert doctests.main([str(tmp_path), "--out", str(tmp_path / "tasks.jsonl")]) == 0
    [task] = humaneval.tasks(tmp_path / "tasks.jsonl")
    assert task.prompt + task.canonical_solution + task.suffix.rstrip() in DOUBLE
    assert len(task.canonical_solution.splitlines()) in doctests.LINES
    assert humaneval.passes(task.program(task.canonical_solution))
