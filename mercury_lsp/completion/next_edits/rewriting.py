"""Rewrites regions of a document with the model; each answer is hunks of whole lines."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event

from mercury_engine.api import MAX_REGION_CHARS, MAX_REGION_LINES, Control, EditHunk, RewriteRequest
from mercury_engine.api import Rewrite as RegionRewrite
from mercury_engine.text.lines import equal_ends, lines_of

from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.context.context import ContextBuilder, without_start
from mercury_lsp.documents.chunked_text import with_line_feeds
from mercury_lsp.documents.redaction import lines_show_secret

PREFIX_CHARS, SUFFIX_CHARS = 1200, 600
"""Characters shown before the region's chunk and after the region; half of what a fill sees, which is read in half the
time where it isn't cached."""

DEADLINE_MS = 2000.0
"""Milliseconds after which a rewrite is given up: the user has looked elsewhere by then."""

RewriteText = Callable[[RewriteRequest, Control], Awaitable[RegionRewrite | None]]
"""The engine's rewrite; None if there is no engine."""


@dataclass(frozen=True, slots=True)
class RewrittenLines:
    """The whole lines at [start, end) of a version of a document, by offsets, become `text`."""

    start: int
    end: int
    text: str
    probability: float


async def rewrite_region(
    rewrite: RewriteText,
    region: Place,
    history: Sequence[EditHunk],
    enough: float,
    deadline_ms: float | None,
    cancel: Event,
) -> list[RewrittenLines] | None:
    """What the model would change in a region, from the top down; neighbouring lines of `enough` probability at once.

    None if the model must not see the region.
    """
    request = rewrite_request(region, history, enough)
    if request is None:
        return None
    found = await rewrite(replace(request, deadline_ms=deadline_ms), Control(cancel))
    source = region.snapshot.source
    below = source.slice(source.offset_at(region.start_line, 0), region.snapshot.length)
    line_break = "\r\n" if "\r\n" in below else "\n"
    lines, joined = lines_of(request.text), list[tuple[int, int, str, float]]()
    for hunk in found.hunks if found is not None else ():
        start, end, text = _narrow(lines, hunk.start, hunk.end, lines_of(hunk.text))
        if joined and joined[-1][1] == start and min(joined[-1][3], hunk.probability) >= enough:
            first, _, before, probability = joined.pop()
            start, text = first, before + text
            joined.append((start, end, text, min(probability, hunk.probability)))
        else:
            joined.append((start, end, text, hunk.probability))
    return [
        RewrittenLines(
            source.offset_at(region.start_line + start, 0),
            source.offset_at(region.start_line + end, 0),
            text.replace("\n", line_break),
            probability,
        )
        for start, end, text, probability in joined
    ]


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


def _narrow(lines: Sequence[str], start: int, end: int, new: Sequence[str]) -> tuple[int, int, str]:
    """A hunk of the region's `lines` without equal lines at its ends."""
    top, bottom = equal_ends(list(lines[start:end]), list(new))
    return start + top, end - bottom, "".join(new[top : len(new) - bottom])
