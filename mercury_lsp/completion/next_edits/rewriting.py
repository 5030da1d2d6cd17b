"""Rewrites regions of a document with the model, and cuts each answer to the short hunk that is shown."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from threading import Event

from mercury_engine.api import MAX_REGION_CHARS, MAX_REGION_LINES, Control, EditHunk, RewriteRequest
from mercury_engine.api import Rewrite as RegionRewrite
from mercury_engine.text.lines import equal_ends, lines_of

from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.context.context import ContextBuilder, without_start
from mercury_lsp.documents.redaction import lines_show_secret

MIN_CHANCE = 0.2
"""Least chance of a rewrite that is returned; below it the engine stops writing."""

DEADLINE_MS = 2000.0
"""Milliseconds after which a rewrite is given up: the user has looked elsewhere by then."""

RewriteText = Callable[[RewriteRequest, Control], Awaitable[RegionRewrite | None]]
"""The engine's rewrite; None if there is no engine."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The whole lines at [start, end) of a version of a document, by offsets, become `text`."""

    start: int
    end: int
    text: str
    confidence: float


async def rewrite_region(
    rewrite: RewriteText, region: Place, history: Sequence[EditHunk], cancel: Event
) -> Rewrite | None:
    """The hunk of a region; None if it stays, if the model is not sure, or if the model must not see it."""
    request = rewrite_request(region, history)
    found = await rewrite(request, Control(cancel)) if request is not None else None
    if request is None or found is None or not found.is_finished or found.chance < MIN_CHANCE:
        return None
    source = region.snapshot.source
    start = source.offset_at(region.start_line, 0)
    old = source.slice(start, source.offset_at(region.end_line, 0))
    new = found.text.replace("\n", "\r\n") if "\r\n" in old else found.text
    return _short(start, old, new, found.chance)


def rewrite_request(region: Place, history: Sequence[EditHunk]) -> RewriteRequest | None:
    """The engine's request; None for a region with a secret, with mixed line ends, or that is too large."""
    source, language_id = region.snapshot.source, region.snapshot.language_id
    start, end = source.offset_at(region.start_line, 0), source.offset_at(region.end_line, 0)
    text = source.slice(start, min(end, start + MAX_REGION_CHARS + 1))
    plain = text.replace("\r\n", "\n")
    is_mixed = "\r" in plain or text.count("\r") not in (0, text.count("\n"))
    if len(text) > MAX_REGION_CHARS or text.count("\n") > MAX_REGION_LINES or is_mixed:
        return None
    if lines_show_secret(region.snapshot, start, end):
        return None
    context = ContextBuilder().build(region.snapshot, start, region.path or None)
    below = "".join(context.suffix)
    if not below.startswith(text):  # a part of a long line that was left out
        return None
    return RewriteRequest(
        text=plain,
        near=context.near,
        far=(*context.snippets, *context.far),
        suffix=without_start(context.suffix, len(text)),
        history=tuple(history),
        path=region.path,
        language=language_id,
        give_up_below=MIN_CHANCE,
        deadline_ms=DEADLINE_MS,
    )


def _short(start: int, old: str, new: str, chance: float) -> Rewrite | None:
    """The lines that differ; None if none do."""
    before, after = lines_of(old), lines_of(new)
    if before == after:
        return None
    top, bottom = equal_ends(before, after)
    at = start + sum(map(len, before[:top]))
    removed = sum(map(len, before[top : len(before) - bottom]))
    return Rewrite(at, at + removed, "".join(after[top : len(after) - bottom]), chance)
