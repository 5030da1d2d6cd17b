"""Turns finished canvases into fills: drops the unsure end, calibrates the confidence and ranks the candidates."""

import time
from dataclasses import replace

from mercury_engine.api import PART_OF_A_CHARACTER, Fill, FillRequest
from mercury_engine.denoising.calibration import Calibration
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.loop import Denoiser
from mercury_engine.denoising.truncation import truncated, word_start
from mercury_engine.kv_cache.cache import CachedContext

EVEN_CHANCE = 0.5
"""Probability below which a text is more likely wrong than right."""


def fill_from(
    canvas: Canvas,
    request: FillRequest,
    denoiser: Denoiser,
    calibration: Calibration,
    started: float,
    context: CachedContext,
) -> Fill:
    """The fill on a canvas; `started` is a time of `time.perf_counter`. Takes back unsure slots of the canvas."""
    next_text = take_back_unsure(canvas, request.give_up_below)
    text = denoiser.text(canvas)
    if not canvas.ended:
        text = truncated(text, next_text)
    return Fill(
        text=text,
        confidence=calibration.kept(canvas.confidence),
        steps=canvas.steps,
        elapsed=time.perf_counter() - started,
        unsure_from=_unsure_from(canvas, text, denoiser, calibration),
        tokens_read=context.tokens_read,
        tokens_unread=context.tokens_unread,
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


def take_back_unsure(canvas: Canvas, least: float) -> str | None:
    """Take back the last slots of a canvas that gave up, until its confidence is at least `least`.

    Returns the best guess for the text behind the part that is left, "" for the end; None when nothing was taken back.
    """
    next_text = None
    while canvas.confidence < least and canvas.settled and canvas.chances:
        slot = len(canvas.chances) - 1
        next_text = "" if canvas.ended else canvas.vocabulary.texts[canvas.ids[slot]]
        canvas.ended = False
        canvas.confidence = min(1.0, canvas.confidence / max(canvas.chances.pop(), 1e-12))
        canvas.settled = min(canvas.settled, slot)
    return next_text


def _unsure_from(canvas: Canvas, text: str, denoiser: Denoiser, calibration: Calibration) -> int | None:
    """Where the text becomes more likely wrong than right, by the calibrated probability of everything before."""
    slots = canvas.sure_slots(calibration.raw(EVEN_CHANCE))
    sure_text = denoiser.tokenizer.decode(canvas.ids[canvas.known : slots]).rstrip(PART_OF_A_CHARACTER)
    characters = max(0, len(sure_text) - len(canvas.begun))
    return word_start(text, characters) if characters < len(text) else None
