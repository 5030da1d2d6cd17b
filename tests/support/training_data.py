"""A toy corpus of two packages, and a commit."""

from pathlib import Path

from mercury_lab.training.commits.commit_edit import CommitEdit, CommitFile, Step

from tests.support import tiny

CODE = '"""A toy."""\n\n' + "".join(
    f"def add_{n}(left, right):\n    total = left + right + {n}\n    return total\n\n\n" for n in range(20)
)

CALLS = "from toy.a import add_1\n\n\n" + "".join(
    f"def call_{n}(value):\n    result = add_{n}(value, {n})\n    print(result)\n    return result\n\n\n"
    for n in range(12)
)

NAMES = "".join(f"def take_{n}(value):\n    return value + {n}\n\n\n" for n in range(12))


def base(path: Path) -> Path:
    return tiny.folder(path, rank=0)


def corpus(path: Path) -> Path:
    for name, text in {"toy/a.py": CODE, "toy/b.py": CALLS, "other/c.py": CALLS[::-1]}.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def commit() -> CommitEdit:
    """A commit that renames a parameter in three functions of one file."""
    lines = NAMES.splitlines(keepends=True)
    steps = tuple(Step(0, 4 * n, 4 * n + 2, f"def take_{n}(number):\n    return number + {n}\n") for n in (2, 4, 6))
    assert all("value" in lines[step.start] for step in steps)
    return CommitEdit("owner/name", "0" * 40, (CommitFile("names.py", "python", NAMES),), 1, steps)
