"""Turns finished canvases into fills: cuts them where they are worth most, calibrates and ranks the candidates."""

import time
from dataclasses import dataclass, replace
from math import prod

from mercury_engine.api import PART_OF_A_CHARACTER, Fill, FillRequest, RegionHunk, Rewrite, RewriteRequest
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.loop import Denoiser
from mercury_engine.denoising.regions import ReadRegion, RegionReader
from mercury_engine.denoising.rewriting import Draft
from mercury_engine.denoising.truncation import truncated, word_start
from mercury_engine.kv_cache.cache import CachedContext
from mercury_engine.text.lines import lines_of
from mercury_engine.worth import Worth

EVEN_CHANCE = 0.5
"""Probability below which a text is more likely wrong than right."""

CLOSING_CHARS = 8
"""What a cut may be worth beyond its own length: it is finished, or brackets and quotes are closed behind it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The beginning of a fill, as it may be shown."""

    text: str
    confidence: float
    """Product of its slots' chances, before calibration."""
    is_finished: bool = False
    """Nothing was cut off."""


def fill_from(canvas: Canvas, request: FillRequest, denoiser: Denoiser, started: float, context: CachedContext) -> Fill:
    """The fill on a canvas; `started` is a time of `time.perf_counter`."""
    cut = most_worth(canvas, request.worth, denoiser) if request.worth else sure_enough(canvas, request, denoiser)
    return Fill(
        text=cut.text,
        confidence=denoiser.calibration.kept(cut.confidence),
        steps=canvas.steps,
        elapsed=time.perf_counter() - started,
        is_finished=cut.is_finished,
        unsure_from=_unsure_from(canvas, cut.text, denoiser),
        tokens_read=context.tokens_read,
        tokens_unread=context.tokens_unread,
        settled_from=canvas.settled_from,
    )


def rewrite_from(
    draft: Draft, read: ReadRegion, request: RewriteRequest, regions: RegionReader, started: float
) -> Rewrite:
    """The rewrite of a draft; one that did not end or makes no sense is not finished."""
    text = regions.text(read, request, draft)
    hunks = () if text is None else _hunks(draft, read, text)
    is_finished = text is not None and draft.ended
    return Rewrite(
        text=text if text is not None and is_finished else request.text,
        chance=prod(each.chance for each in hunks) if is_finished else 0.0,
        change_chance=1 - draft.stays,
        steps=draft.steps,
        elapsed=time.perf_counter() - started,
        is_finished=is_finished,
        tokens_read=read.context.context.tokens_read,
        hunks=hunks,
    )


def _hunks(draft: Draft, read: ReadRegion, text: str) -> tuple[RegionHunk, ...]:
    """The hunks by the region's lines; its text may begin below what the model wrote."""
    above = 0 if read.rendered is None else read.rendered.above.count("\n")
    lines = lines_of(text)
    return tuple(
        RegionHunk(
            each.start - above,
            each.end - above,
            "".join(lines[each.new_start - above : each.new_end - above]),
            each.chance,
            each.stays,
        )
        for each in draft.hunks
    )


def ranked(fills: list[Fill]) -> Fill:
    """The most confident fill, with the other different texts as its `others` by falling confidence.

    The first fill is the best guess everywhere. Another fill is dropped if a different text begins with it: a candidate
    that gave up at the token meant to set it apart is as confident as what all of them have in common.
    """
    best, *others = fills
    texts = [fill.text for fill in fills]
    others = [other for other in others if not any(t != other.text and t.startswith(other.text) for t in texts)]
    different: dict[str, Fill] = {}
    for fill in sorted((best, *others), key=lambda f: -f.confidence):
        if fill.text:
            different.setdefault(fill.text, fill)
    first, *others = [*different.values()] or [best]
    return replace(first, others=tuple(others))


def sure_enough(canvas: Canvas, request: FillRequest, denoiser: Denoiser) -> Cut:
    """The longest beginning that is right with at least the chance that the request gives up below."""
    least = denoiser.calibration.raw(request.give_up_below)
    slots = len(canvas.chances)
    while slots and canvas.chance(slots) < least:
        slots -= 1
    return cut_after(canvas, slots, denoiser)


def most_worth(canvas: Canvas, worth: Worth, denoiser: Denoiser) -> Cut:
    """The beginning that is worth most, the longest of equals; the empty one if none is worth anything."""
    best, most = Cut("", 1.0), 0.0
    for slots in range(len(canvas.chances), canvas.known, -1):
        chance = denoiser.calibration.kept(canvas.chance(slots))
        gain, loss = len(denoiser.text(canvas, slots)) + CLOSING_CHARS, (1 - chance) * worth.wrong_cost
        if chance * gain - loss <= most:
            continue  # finding out what of it may be shown takes much longer
        cut = cut_after(canvas, slots, denoiser)
        if (value := worth.of(chance, cut.text, cut.is_finished)) > most and cut.text:
            best, most = cut, value
    return best


def beginnings(canvas: Canvas, denoiser: Denoiser) -> list[Cut]:
    """Every beginning of a fill that might be shown, the shortest first."""
    return [cut_after(canvas, slots, denoiser) for slots in range(canvas.known + 1, len(canvas.chances) + 1)]


def cut_after(canvas: Canvas, slots: int, denoiser: Denoiser) -> Cut:
    """What may be shown of the first `slots` slots; one more than are settled counts the end marker."""
    if canvas.ended and slots >= len(canvas.chances):
        return Cut(denoiser.text(canvas), canvas.chance(slots), is_finished=True)
    text, behind = denoiser.text(canvas, slots), None
    if text.strip() and text.rstrip(" \t").endswith("\n"):
        return Cut(text.rstrip(), canvas.chance(slots), is_finished=True)
    if slots < len(canvas.chances):
        behind = "" if slots == canvas.settled else canvas.vocabulary.texts[canvas.ids[slots]]
    return Cut(_whole_lines(truncated(text, behind)), canvas.chance(slots))


def _whole_lines(text: str) -> str:
    """The text without a last line that is cut off, if it has several."""
    first, broken, _ = text.rpartition("\n")
    return first.rstrip() if broken and first.strip() else text


def _unsure_from(canvas: Canvas, text: str, denoiser: Denoiser) -> int | None:
    """Where the text becomes more likely wrong than right, by the calibrated probability of everything before."""
    slots = canvas.sure_slots(denoiser.calibration.raw(EVEN_CHANCE))
    sure_text = denoiser.tokenizer.decode(canvas.ids[canvas.known : slots]).rstrip(PART_OF_A_CHARACTER)
    characters = max(0, len(sure_text) - len(canvas.begun))
    return word_start(text, characters) if characters < len(text) else None
