"""Denoising: the one loop of masked diffusion, for fills and generated texts, with every rule and attention.

`layouts` defines what a slot sees and requests passes, `rules` which slots a step reveals, `texts` where a text ends.
"""

from collections.abc import Sequence

import numpy as np

from mercury_engine.decoding.diffusion.layouts import Around, Layout
from mercury_engine.decoding.diffusion.rules import LIKELIEST, Rule
from mercury_engine.decoding.diffusion.texts import Text
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.row_answers import Drawn, RowAnswers

FIRST = np.zeros(1, np.int64)


def denoise(texts: Sequence[Text], layout: Layout, around: Around, rule: Rule) -> ForwardSteps[None]:
    """Write all texts to their ends, in shared passes or one after the other; a watcher sees the first one."""
    for text in texts:
        text.open(layout.slots(around, text))
    texts[0].show()
    try:
        while live := [text for text in texts if text.is_open][: layout.at_once]:
            told = yield from layout.told(around, live, rule)
            for text, answers in zip(live, told, strict=True):
                reveal(text, answers, rule)
                if rule.settles or not text.canvas.is_mask.any():
                    accept(text, layout, around)
            texts[0].show()
            for text in live:
                if text.takes_back():
                    text.open(layout.slots(around, text))
                    texts[0].show()
    finally:  # time may be up
        for text in texts:
            accept(text, layout, around)


def reveal(text: Text, told: RowAnswers, rule: Rule) -> None:
    """Do a step on the first slots, which a pass has answered about; the last step reveals them all.

    Another candidate begins with its own first token, in a step of its own.
    """
    slots, is_last = len(told.token_W), text.is_last
    canvas, rest = text.canvas[:slots], text.canvas[slots:]
    if text.written.rank:
        canvas = canvas.revealed(FIRST, Drawn.ranked(told, text.written.take_rank()))
    elif not is_last:
        canvas = rule.step(canvas, rule.choice.draw(told, text.random), text.number)
    if is_last:
        canvas = canvas.revealed(canvas.is_mask, LIKELIEST.draw(told, text.random))
    text.canvas, text.length = canvas + rest, text.length + len(canvas) - slots
    text.number, text.written.steps = text.number + 1, text.written.steps + 1


def accept(text: Text, layout: Layout, around: Around) -> None:
    """Accept the tokens revealed at the left end; if no slot is left, open the next ones or end the text."""
    while len(text.canvas) and not text.canvas.is_mask[0] and not text.written.is_full:
        first, text.canvas = text.canvas[:1], text.canvas[1:]
        text.take(int(first.ids[0]), float(first.probability[0]))
        if text.written.spell:  # the slots after it were revealed for another spelling of the word
            text.open(layout.slots(around, text))
    if not len(text.canvas):
        text.open(layout.slots(around, text))
        text.written.ended |= text.fits and not len(text.canvas)
