"""The pages that promise something name tests that exist, and every promise of the page on reliability names one."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PAGES = ("docs/reliability.md", "docs/privacy.md", "SECURITY.md")

NAMED = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


@cache
def defined(path: str) -> frozenset[str]:
    """The functions and methods of a test file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_exists(page: str):
    named = NAMED.findall((ROOT / page).read_text("utf-8"))
    missing = [f"{path}::{name}" for path, name in named if not (ROOT / path).is_file() or name not in defined(path)]
    assert not missing


def test_every_promise_of_the_page_on_reliability_names_a_test():
    text = (ROOT / "docs/reliability.md").read_text("utf-8")
    promises, tests = text.split("## Not promised")[0], text.split("## Tests")[1]
    numbers = re.findall(r"^\| (\d+) \| \*\*", promises, re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)] and numbers
    rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", tests, re.MULTILINE))
    assert list(rows) == numbers
    assert all(NAMED.search(row) for row in rows.values())
