"""Regions sent to the model, and the short hunks that its answers become."""

import asyncio
from dataclasses import replace

import pytest
from mercury_engine.api import Control, EditHunk, RegionHunk, RewriteRequest
from mercury_engine.api import Rewrite as RegionRewrite
from mercury_engine.prompt.edit_families import family_of

from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.rewriting import (
    WINDOW_REACH_CHARS,
    RewrittenLines,
    rewrite_region,
    rewrite_request,
    window_request,
)
from mercury_lsp.documents.document import Document

TEXT = "import os\n\n\ndef first(name):\n    value = load(name)\n    return value\n\n\nx = first('a')\ny = first('b')\n"
HISTORY = (EditHunk(0, "def load(name):\n", "def load(name, default):\n", "other.py"),)


def region(text: str = TEXT, start: int = 3, end: int = 6, language: str = "python") -> Place:
    return Place(Document("file:///a.py", language, 1, text).snapshot(), "a.py", start, start, end)


def hunks(*changes: tuple[str, str, float], enough: float = 0.4, **options) -> list[RewrittenLines]:
    """What a model's answer becomes, which has `new` in place of `old` with a probability, each in lines of its own."""

    async def rewrite(request: RewriteRequest, control: Control) -> RegionRewrite:
        found = []
        for old, new, probability in changes:
            at = request.text.index(old)
            start, end = request.text.count("\n", 0, at), request.text.count("\n", 0, at + len(old.rstrip("\n"))) + 1
            lines = "".join(request.text.splitlines(keepends=True)[start:end])
            found.append(RegionHunk(start, end, lines.replace(old, new), probability))
        return RegionRewrite(request.text, 1, 0.0, True, hunks=tuple(found))

    return asyncio.run(rewrite_region(rewrite, region(**options), HISTORY, enough, None, Control())) or []


def hunk(old: str, new: str, **options) -> RewrittenLines:
    [found] = hunks((old, new, 0.9), **options)
    return found


def applied(text: str, found: RewrittenLines) -> str:
    return text[: found.edit.start] + found.edit.inserted + text[found.edit.end :]


def test_a_request_is_the_document_cut_at_whole_lines():
    request = rewrite_request(region(), HISTORY, 0.4)
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
    "two lines": ("value = load(name)\n    return value\n", "found = load(name)\n    return found\n"),
}


@pytest.mark.parametrize(("old", "new"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_rewrite_becomes_the_lines_that_differ(old, new, end):
    text = TEXT.replace("\n", end)
    found = hunk(old, new, text=text)
    assert applied(text, found) == TEXT.replace(old, new, 1).replace("\n", end)
    assert not set(found.edit.inserted.splitlines()) & set(found.edit.removed.splitlines())
    assert found.probability == 0.9


def test_neighbouring_lines_that_are_likely_enough_are_one_edit():
    pair = ("load(name)", "load(name, 1)", 0.8), ("return value", "return found", 0.6)
    [both] = hunks(*pair)
    assert (both.edit.inserted, both.probability) == ("    value = load(name, 1)\n    return found\n", 0.6)
    assert [each.probability for each in hunks(*pair, enough=0.7)] == [0.8, 0.6]


def test_the_last_line_without_a_break_is_rewritten():
    text = TEXT.rstrip("\n")
    found = hunk("'b'", "'b', None", text=text, start=8, end=10)
    assert applied(text, found) == text.replace("'b'", "'b', None")


def test_a_window_is_that_of_the_models_family_with_whole_lines_of_bounded_length_around():
    family = family_of("zeta-2")
    lines = [f"value_{number} = '{'x' * 200}'\n" for number in range(200)]
    place = region("".join(lines), 100, 101)
    assert family is not None
    request = window_request(replace(place, cursor=place.snapshot.offset_at(100, 5)), (), family)
    start, end = family.region(lines, 100)
    assert request is not None
    assert (request.text, request.first_line) == ("".join(lines[start:end]), start + 1)
    assert request.text[: request.cursor].endswith("\nvalue") and request.text[request.cursor or 0 :].startswith("_100")
    above, [below] = request.near, request.suffix
    for text in (above, below):
        assert WINDOW_REACH_CHARS - len(lines[0]) < len(text) <= WINDOW_REACH_CHARS
    assert "".join(lines).count(above + request.text + below) == 1 and above.startswith("value_")
