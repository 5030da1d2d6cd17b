"""Rewrites regions of a document with the model; each answer consists of hunks of whole lines."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from mercury_engine.api import (
    MAX_REGION_CHARS,
    MAX_REGION_LINES,
    MAX_WINDOW_CHARS,
    Control,
    EditHunk,
    RewriteRequest,
)
from mercury_engine.api import Rewrite as RegionRewrite
from mercury_engine.prompt.edit_families import Family
from mercury_engine.text.lines import equal_ends, lines_of

from mercury_lsp.completion.next_edits.edits import joined
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.context.context import ContextBuilder, without_start
from mercury_lsp.documents.chunked_text import with_line_feeds
from mercury_lsp.documents.document import Edit
from mercury_lsp.documents.redaction import lines_show_secret, parts_without_secrets

PREFIX_CHARS, SUFFIX_CHARS = 1200, 600
"""Characters shown before the region's chunk and after the region: half of what a fill sees, read in half the time if
not cached."""

DEADLINE_MS = 2000.0
"""Milliseconds after which a rewrite is given up: by then the user looks elsewhere."""

WINDOW_REACH, WINDOW_REACH_CHARS = 150, 8000
"""Lines on either side of the cursor that an edit model may see, and characters on either side of its window."""

RewriteText = Callable[[RewriteRequest, Control], Awaitable[RegionRewrite | None]]
"""The engine's rewrite; None if there is no engine."""


@dataclass(frozen=True, slots=True)
class RewrittenLines:
    """An edit of whole lines by a model."""

    edit: Edit
    probability: float
    at_risk: int = 0
    """Number of lines that were rewritten together."""


async def rewrite_region(
    rewrite: RewriteText,
    region: Place,
    history: Sequence[EditHunk],
    enough: float,
    deadline_ms: float | None,
    control: Control,
    family: Family | None = None,
) -> list[RewrittenLines] | None:
    """The model's changes of a region, from the top down; adjacent hunks of `enough` probability are joined.

    With a `family` the region is that family's window around the cursor. Returns None if the model must not see it.
    """
    request = rewrite_request(region, history, enough) if family is None else window_request(region, history, family)
    if request is None:
        return None
    top = region.start_line if family is None else request.first_line - 1
    found = await rewrite(replace(request, deadline_ms=deadline_ms), control)
    source = region.snapshot.source
    below = source.slice(source.offset_at(top, 0), region.snapshot.length)
    line_break = "\r\n" if "\r\n" in below else "\n"
    lines, edits = lines_of(request.text), list[RewrittenLines]()
    for hunk in found.hunks if found is not None else ():
        new, probability = lines_of(hunk.text), hunk.probability
        same, last = equal_ends(lines[hunk.start : hunk.end], new)
        start, end = (source.offset_at(top + line, 0) for line in (hunk.start + same, hunk.end - last))
        text = "".join(new[same : len(new) - last]).replace("\n", line_break)
        edit = Edit(start, source.slice(start, end), text)
        if edits and edits[-1].edit.end == start and min(edits[-1].probability, probability) >= enough:
            before = edits.pop()
            edit, probability = joined([before.edit, edit], region.snapshot), min(before.probability, probability)
        edits.append(RewrittenLines(edit, probability, len(lines)))
    return edits


def rewrite_request(region: Place, history: Sequence[EditHunk], enough: float | None) -> RewriteRequest | None:
    """The engine's request; None for a region with a secret, with mixed line ends, or that is too large."""
    source, language_id = region.snapshot.source, region.snapshot.language_id
    start, end = source.offset_at(region.start_line, 0), source.offset_at(region.end_line, 0)
    text = source.slice(start, min(end, start + MAX_REGION_CHARS + 1))
    plain = with_line_feeds(text)
    is_mixed = "\r" in plain or text.count("\r") not in (0, text.count("\n"))
    if len(text) > MAX_REGION_CHARS or text.count("\n") > MAX_REGION_LINES or is_mixed:
        return None
    if lines_show_secret(region.snapshot, start, end):
        return None
    context = ContextBuilder(PREFIX_CHARS, SUFFIX_CHARS + len(text)).build(region.snapshot, start, region.path or None)
    below = "".join(context.suffix)
    if not below.startswith(plain):  # a part of a long line that was left out
        return None
    return RewriteRequest(
        text=plain,
        near=context.near,
        far=(*context.snippets, *context.far),
        suffix=without_start(context.suffix, len(plain)),
        history=tuple(history),
        path=region.path,
        language=language_id,
        give_up_below=enough or 0.0,
        enough=enough,
    )


def window_request(region: Place, history: Sequence[EditHunk], family: Family) -> RewriteRequest | None:
    """The request for a family's window around the cursor or, without one, the end of the region's line.

    None for a window with a secret, with mixed line ends, or without text.
    """
    snapshot, source = region.snapshot, region.snapshot.source
    cursor = source.line_bounds(source.offset_at(region.line, 0))[1] if region.cursor is None else region.cursor
    at = source.line_of(cursor)
    first = max(0, at - WINDOW_REACH)
    lines = lines_of(source.slice(source.offset_at(first, 0), source.offset_at(at + WINDOW_REACH + 1, 0)))
    if not lines:
        return None
    start, end = family.region(lines, min(at - first, len(lines) - 1))
    parts = ["".join(each) for each in (lines[:start], lines[start:end], lines[end:])]
    above, text, below = map(with_line_feeds, parts)
    if len(text) > MAX_WINDOW_CHARS or "\r" in text or parts[1].count("\r") not in (0, parts[1].count("\n")):
        return None
    begin = source.offset_at(first + start, 0)
    shown = parts_without_secrets((above, text, below), snapshot.language_id)
    if shown[1] != text or lines_show_secret(snapshot, begin, begin + len(parts[1])):
        return None
    return RewriteRequest(
        text=text,
        near=_last_lines(shown[0]),
        suffix=(_first_lines(shown[2]),),
        history=tuple(history),
        path=region.path,
        language=snapshot.language_id,
        cursor=len(with_line_feeds(source.slice(begin, cursor))),
        first_line=first + start + 1,
    )


def _first_lines(text: str) -> str:
    """The first whole lines of a text that a model may see."""
    return text if len(text) <= WINDOW_REACH_CHARS else text[: text.rfind("\n", 0, WINDOW_REACH_CHARS) + 1]


def _last_lines(text: str) -> str:
    """The last whole lines of a text that a model may see."""
    return text if len(text) <= WINDOW_REACH_CHARS else text[text.find("\n", -WINDOW_REACH_CHARS) + 1 :]
