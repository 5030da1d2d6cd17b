"""The pages that promise something name tests that exist, and every promise names one."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PAGES = ("docs/reliability.md", "docs/privacy.md", "SECURITY.md")

NAMED = re.compile(r"(tests/[\w/]+\.py)::(\w+)")

WITHOUT_NOTES = ("Reporting", "What is not defended", "Secrets in code", "How this is measured", "What is not found")
"""Sections that promise nothing, or are about secrets, which a benchmark measures."""


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


def blocks(page: str) -> list[str]:
    """Paragraphs, list entries and rows of tables that may promise something."""
    body = re.sub(r"^\[\^.*$", "", page, flags=re.MULTILINE)
    sections = re.split(r"^#+ ", body, flags=re.MULTILINE)
    promising = [each.partition("\n")[2] for each in sections if not each.startswith(WITHOUT_NOTES)]
    found = re.split(r"\n\s*\n|\n(?=[-|] ?)", "\n\n".join(promising))
    return [each for each in found if each.strip() and not each.rstrip().endswith(":") and "could go wrong" not in each]


@pytest.mark.parametrize("name", ["docs/privacy.md", "SECURITY.md"])
def test_every_promise_on_privacy_and_security_has_a_footnote_that_names_a_test(name: str):
    page = (ROOT / name).read_text("utf-8")
    for block in blocks(page):
        is_rule, is_about_secrets = set(block) <= set("|- \n"), "| a secret is shown" in block
        assert is_rule or is_about_secrets or re.search(r"\[\^[\w-]+\]", block), block
    known = dict(re.findall(r"^\[\^([\w-]+)\]: (.*)$", page, re.MULTILINE))
    used = set(re.findall(r"\[\^([\w-]+)\](?!:)", page))
    assert used == set(known) and all(NAMED.search(text) for text in known.values())
