"""Renders a rewrite request in a model's edit format, and reads the answer.

Sentinels that are tokens are only made from templates: text that spells them stays text (`Tokenizer.encode`). Those
that are text cannot be told from a document's text, so a region that spells one is not sent, and edits and surrounding
lines that do are left out. An answer that still holds a sentinel is no answer.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mercury_engine.api import EditHunk, RewriteRequest
from mercury_engine.prompt.edit_formats.edit_format import EditFormat

CONTEXT_CHARS = 600
"""Most characters of the lines before the region, and of those after it; about 150 tokens."""

EDIT_CHARS = 1200
"""Most characters of one recent edit; longer ones are left out."""

_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a prompt: text, or a marker that is a token."""

    text: str
    is_token: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt, and the lines that the model writes again: the region with some lines around it."""

    pieces: tuple[Piece, ...]
    present: str
    above: str
    """The lines of `present` before the region."""
    below: str


def render(edit_format: EditFormat, request: RewriteRequest) -> Rendered | None:
    """The prompt; None if the region or the path spells a sentinel."""
    above, below = _lines_around(edit_format, request)
    present = above + request.text + below
    if _spells(edit_format, present + "\n" + request.path):
        return None
    edits = [each for each in request.history if not _spells(edit_format, each.removed + each.inserted)]
    near = "".join(request.far)[-CONTEXT_CHARS:].partition("\n")[2] + request.near
    before = _without_sentinels(edit_format, near[-CONTEXT_CHARS:])
    after = _ended(_without_sentinels(edit_format, "".join(request.suffix)[:CONTEXT_CHARS]))
    document = before + request.text + after
    original, count = _undone(present, edits, edit_format.undone)
    earlier = edits if edit_format.shows_undone else edits[: len(edits) - count]
    shown = [_edit(edit_format, each, request.path, document) for each in earlier[-edit_format.max_edits :]]
    first = 1 + (above + request.text[: request.cursor or 0]).count("\n")
    fields = {
        "edits": [part for edit in shown for part in edit],
        "path": [Piece(request.path)],
        "file": [Piece(_undone(document, edits, len(edits))[0])],
        "original": [Piece(_ended(original))],
        "before": [Piece(before)],
        "after": [Piece(after)],
        "region": [Piece(_ended(_with_cursor(edit_format, request, above) + below))],
        "first": [Piece(str(first))],
        "last": [Piece(str(first + len(present.splitlines())))],
    }
    return Rendered(tuple(_filled(edit_format, edit_format.prompt, fields)), present, above, below)


def answer(edit_format: EditFormat, rendered: Rendered, written: str) -> str | None:
    """The region's new text; its present text if nothing should change, None if the answer makes no sense."""
    present = rendered.present[len(rendered.above) : len(rendered.present) - len(rendered.below)]
    if edit_format.nothing and written.lstrip().startswith(edit_format.nothing):
        return present
    text = written.replace(edit_format.cursor, "", 1) if edit_format.cursor else written
    for each in edit_format.dropped:
        text = text.replace(each, "")
    if text and rendered.present.endswith("\n"):
        text = _ended(text)
    if _spells(edit_format, text) or len(text) < len(rendered.above) + len(rendered.below):
        return None
    if not (text.startswith(rendered.above) and text.endswith(rendered.below)):
        return None
    return text[len(rendered.above) : len(text) - len(rendered.below)]


def _filled(edit_format: EditFormat, template: str, fields: Mapping[str, list[Piece]]) -> list[Piece]:
    """The template with its markers as tokens and its fields' pieces in place of their names."""
    tokens = "|".join(map(re.escape, edit_format.tokens)) or r"(?!)"
    pieces = list[Piece]()
    for part in re.split(rf"({tokens}|{_FIELD.pattern.replace('(', '(?:')})", template):
        name = _FIELD.fullmatch(part)
        if name is not None and name[1] in fields:
            pieces += fields[name[1]]
        elif part:
            pieces.append(Piece(part, part in edit_format.tokens))
    return pieces


def _edit(edit_format: EditFormat, hunk: EditHunk, path: str, document: str) -> list[Piece]:
    if len(hunk.removed) + len(hunk.inserted) > EDIT_CHARS:
        return []
    shown = _with_context(hunk, document, edit_format.edit_context)
    is_first_kept = shown.line < hunk.line or not hunk.removed
    lines = shown.inserted.count("\n") - is_first_kept  # Sweep's server counts so
    fields = {
        "path": [Piece(hunk.path or path)],
        "original": [Piece(shown.removed.strip("\n") + "\n")],
        "updated": [Piece(shown.inserted.strip("\n") + "\n")],
        "diff": [Piece(_diff(hunk))],
        "first": [Piece(str(shown.line + 1))],
        "last": [Piece(str(shown.line + max(1, lines)))],
    }
    return _filled(edit_format, edit_format.edit, fields)


def _with_context(hunk: EditHunk, document: str, lines: int) -> EditHunk:
    """The edit with lines around it, if it is in the part of the document that is shown."""
    at = f"\n{document}".find(f"\n{hunk.inserted}") if hunk.inserted and hunk.path is None and lines else -1
    if at < 0:
        return hunk
    above = "".join(document[:at].splitlines(keepends=True)[-lines:])
    below = "".join(document[at + len(hunk.inserted) :].splitlines(keepends=True)[:lines])
    removed, inserted = (above + text + below for text in (hunk.removed, hunk.inserted))
    return replace(hunk, removed=removed, inserted=inserted, line=hunk.line - above.count("\n"))


def _diff(hunk: EditHunk) -> str:
    """The lines of a unified diff, under a head without line numbers."""
    removed = (f"-{line}\n" for line in hunk.removed.splitlines())
    inserted = (f"+{line}\n" for line in hunk.inserted.splitlines())
    return "".join(("@@ @@\n", *removed, *inserted))


def _lines_around(edit_format: EditFormat, request: RewriteRequest) -> tuple[str, str]:
    above, after = edit_format.lines_above, "".join(request.suffix).splitlines(keepends=True)
    near = request.near.splitlines(keepends=True)[-above:] if above else []
    below = "".join(after[: edit_format.lines_below])
    return "".join(near), below if below.endswith("\n") else below[: below.rfind("\n") + 1]


def _undone(text: str, history: Sequence[EditHunk], most: int) -> tuple[str, int]:
    """The lines as they were before the newest edits, up to the first made elsewhere, and their number."""
    newest = history[: -most - 1 : -1]
    for count, hunk in enumerate(newest):
        if hunk.path is not None or not hunk.inserted or hunk.inserted not in text:
            return text, count
        text = text.replace(hunk.inserted, hunk.removed, 1)
    return text, len(newest)


def _with_cursor(edit_format: EditFormat, request: RewriteRequest, above: str) -> str:
    cursor = len(request.text) if request.cursor is None else request.cursor
    mark = edit_format.cursor if request.cursor is not None else ""
    return above + request.text[:cursor] + mark + request.text[cursor:]


def _spells(edit_format: EditFormat, text: str) -> bool:
    return any(sentinel in f"\n{text}\n" for sentinel in edit_format.sentinels)


def _without_sentinels(edit_format: EditFormat, text: str) -> str:
    kept = "".join(line for line in text.splitlines(keepends=True) if not _spells(edit_format, line))
    return "" if _spells(edit_format, kept) else kept


def _ended(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"
