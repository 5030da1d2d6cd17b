"""Regions sent to the model, and the short hunks that its answers become."""

import asyncio
from threading import Event

import pytest
from mercury_engine.api import Control, EditHunk, RewriteRequest
from mercury_engine.api import Rewrite as RegionRewrite

from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.rewriting import (
    MIN_CHANCE,
    Rewrite,
    rewrite_region,
    rewrite_request,
)
from mercury_lsp.documents.document import Document

TEXT = "import os\n\n\ndef first(name):\n    value = load(name)\n    return value\n\n\nx = first('a')\ny = first('b')\n"
HISTORY = (EditHunk(0, "def load(name):\n", "def load(name, default):\n", "other.py"),)


def region(text: str = TEXT, start: int = 3, end: int = 6, language: str = "python") -> Place:
    return Place(Document("file:///a.py", language, 1, text).snapshot(), "a.py", start, start, end, 1.0)


def hunk(old: str, new: str, chance: float = 0.9, is_finished: bool = True, **changes) -> Rewrite | None:
    """The hunk that a model's answer becomes, which has `new` in place of `old`."""

    async def rewrite(request: RewriteRequest, control: Control) -> RegionRewrite:
        return RegionRewrite(request.text.replace(old, new), chance, 0.5, 1, 0.0, is_finished)

    return asyncio.run(rewrite_region(rewrite, region(**changes), HISTORY, Event()))


def applied(text: str, found: Rewrite) -> str:
    return text[: found.start] + found.text + text[found.end :]


def test_a_request_is_the_document_cut_at_whole_lines():
    request = rewrite_request(region(), HISTORY)
    around = "".join(request.far) + request.near + request.text + "".join(request.suffix)
    assert around.endswith(TEXT)
    assert request.text == "def first(name):\n    value = load(name)\n    return value\n"
    assert (request.history, request.path, request.language) == (HISTORY, "a.py", "python")


CHANGES = {
    "a line": ("load(name)", "load(name, None)"),
    "a line inserted": ("    return", "    check(value)\n    return"),
    "a line deleted": ("    value = load(name)\n", ""),
    "the first line": ("first(name)", "first(name, default)"),
    "all lines": ("def first(name):\n    value = load(name)\n    return value\n", "first = load\n"),
    "two lines": ("value", "found"),
}


@pytest.mark.parametrize(("old", "new"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_rewrite_becomes_the_lines_that_differ(old, new, end):
    text = TEXT.replace("\n", end)
    found = hunk(old, new, text=text)
    assert applied(text, found) == TEXT.replace(old, new, 1 if old != "value" else -1).replace("\n", end)
    assert not set(found.text.splitlines()) & set(text[found.start : found.end].splitlines())
    assert found.confidence == 0.9


def test_a_hunk_is_short():
    found = hunk("load(name)", "load(name, None)")
    assert (found.text, TEXT[found.start : found.end]) == ("    value = load(name, None)\n", "    value = load(name)\n")


@pytest.mark.parametrize(
    "answer",
    [
        {"old": "", "new": ""},
        {"old": "load", "new": "read", "chance": MIN_CHANCE / 2},
        {"old": "load", "new": "read", "is_finished": False},
    ],
    ids=["unchanged", "unsure", "not finished"],
)
def test_such_an_answer_is_no_hunk(answer):
    assert hunk(**answer) is None


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("value = load(name)", 'key = "AKIAIOSFODNN7EXAMPL3"'),
        TEXT.replace("load(name)", "load(name)\r"),
        TEXT.replace("load(name)", "load(\rname)"),
        TEXT.replace("load(name)", "x" * 5000),
    ],
    ids=["a secret", "mixed line ends", "a carriage return", "a long line"],
)
def test_such_a_region_is_not_sent(text):
    assert rewrite_request(region(text), ()) is None


def test_too_many_lines_are_not_sent():
    assert rewrite_request(region("x\n" * 40, 2, 38), ()) is None


def test_the_last_line_without_a_break_is_rewritten():
    text = TEXT.rstrip("\n")
    found = hunk("'b'", "'b', None", text=text, start=8, end=10)
    assert applied(text, found) == text.replace("'b'", "'b', None")


def test_an_emoji_before_the_region_moves_nothing():
    text = "# 😀😀\n" + TEXT
    found = hunk("load(name)", "load()", text=text, start=4, end=7)
    assert applied(text, found) == text.replace("load(name)", "load()")
