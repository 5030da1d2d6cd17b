"""The texts that are denoised: fills of gaps, and texts without a gap. A text decides what its slots may hold and where
it ends.

Dimensions: V vocabulary with mask and end.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from mercury_engine.api import Control, FillRequest, GenerateRequest, Generation
from mercury_engine.decoding.autoregressive.generating import StreamedText
from mercury_engine.decoding.diffusion.rules import Canvas
from mercury_engine.decoding.gap_rules import GapRules, SlotLimits
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.models.arrays import IdArray, MaskArray
from mercury_engine.models.row_answers import Tokens

Ends = Literal["end marker", "last slot", "text below"]
"""What ends a fill: an end token; its last slot, if it has as many slots as the gap; or the text below, which a model
that does not see it begins to repeat."""

MOST_STEPS = 256
"""The step in which a fill takes the likeliest token for every mask that is left; DreamOn's limit."""

SEED = 0
"""Seed of rules that sample, so that the same request gets the same answer."""

ANYTHING = FillRequest("", multiline=True)
"""A gap that a text without one may be taken to fill."""


class Text:
    """A text under way: its accepted tokens, and the canvas after them."""

    fits = False
    """Whether the last slot touches the text after the gap."""

    def __init__(self, written: Hypothesis, tokens: Tokens, seed: int | None) -> None:
        self.written, self.canvas = written, Canvas.masked(0, tokens)
        self.length = written.capacity
        """Most tokens; if the slots have to fit the gap, the number of accepted tokens and slots."""
        self.number, self.random = 0, np.random.default_rng(seed)
        """Steps since the text began, or was last taken back."""

    @property
    def is_open(self) -> bool:
        """Whether another step makes sense."""
        return not self.written.is_full

    @property
    def is_last(self) -> bool:
        """Whether the next step is the last, which reveals all slots."""
        return False

    def open(self, slots: int) -> None:
        """Replace the canvas by masks."""
        self.canvas = Canvas.masked(slots, self.canvas.tokens)

    def hidden(self, slots: int) -> list[MaskArray]:
        """bool [V]: the tokens that each of the first slots may not get."""
        raise NotImplementedError

    def take(self, token: int, probability: float) -> None:
        """Accept a token; it may end the text."""
        raise NotImplementedError

    def takes_back(self) -> bool:
        """Take back the end of a text that is wrong; returns whether it was."""
        return False

    def show(self) -> None:
        """Report the text and the canvas to the watcher, if there is one."""


class GapText(Text):
    """A fill."""

    def __init__(self, written: Hypothesis, tokens: Tokens, ends: Ends, control: Control) -> None:
        super().__init__(written, tokens, SEED)
        self._rules, self._control = written.rules, control
        self.fits, self._sees_below = ends == "last slot", ends != "text below"

    @property
    def is_open(self) -> bool:
        return self.written.is_open

    @property
    def is_last(self) -> bool:
        return self.written.steps + 1 in (self.written.request.max_steps, MOST_STEPS)

    def hidden(self, slots: int) -> list[MaskArray]:
        written, tokens, special = self.written, self.canvas.tokens, self._special()
        may_break = written.request.multiline or self.fits  # a line break ends the fill before its last slot
        limits = written.limits._replace(multiline=may_break), SlotLimits("", may_break)
        first_V, other_V = (self._rules.hidden_tokens(each).copy() for each in limits)
        for hidden_V in (other_V,) if written.spell else (first_V, other_V):
            hidden_V[special] = False
        for hidden_V in (first_V, other_V):
            hidden_V[tokens.mask] = True
            hidden_V[self._rules.end_id] |= tokens.end is None
        return [first_V] + [other_V] * (slots - 1)

    def take(self, token: int, probability: float) -> None:
        written, stop = self.written, None if self._sees_below else self.written.stop_tokens()
        is_end = token in self._rules.ends_text or (stop is not None and token in stop.tokens)
        written.accept(self._rules.end_id if is_end else token, probability)
        written.ended |= not written.spell and written.leaves_gap

    def takes_back(self) -> bool:
        is_wrong = self.written.ended and self.written.repaired(self._control.check)
        self.number = 0 if is_wrong else self.number
        return is_wrong

    def show(self) -> None:
        if self._control.on_step is not None:
            room = 0 if self.written.ended else self.written.capacity - len(self.written.ids)
            self._control.on_step(self.written.view(self.canvas.views(self._rules.texts)[:room]))

    def _special(self) -> Sequence[int] | IdArray:
        """Tokens that a slot may get though they are no text: they end the fill, or change the number of slots."""
        written, tokens = self.written, self.canvas.tokens
        if not self._sees_below:
            stop = written.stop_tokens()
            return [] if stop is None else stop.tokens
        has_room = len(written.ids) + len(self.canvas) < written.capacity
        edits = tokens.delete, tokens.expand if has_room else None
        return [] if self.is_last or written.rank else [token for token in edits if token is not None]


class Continuation(Text):
    """A text after a prompt."""

    def __init__(
        self, tokens: Tokens, rules: GapRules, request: GenerateRequest, control: Control, most: int, never: list[int]
    ) -> None:
        """`most`: most tokens. `never`: tokens that it may not hold."""
        super().__init__(Hypothesis(rules, ANYTHING, [], most), tokens, request.sampling.seed)
        self._streamed, self._ends = StreamedText(rules.tokenizer, request.stop, control), rules.ends_text
        self._hidden_V = np.zeros(len(rules.texts), np.bool_)
        self._hidden_V[never] = True

    def hidden(self, slots: int) -> list[MaskArray]:
        return [self._hidden_V] * slots

    def take(self, token: int, probability: float) -> None:
        self.written.accept(token, probability)
        self.written.ended = token in self._ends or self._streamed.add(token)

    def generation(self, prompt_tokens: int, cached_tokens: int) -> Generation:
        """The text so far, as the answer."""
        return Generation(
            self._streamed.finish(),
            "stop" if self.written.ended else "length",
            prompt_tokens,
            cached_tokens,
            tokens=len(self.written.ids),
            steps=self.written.steps,
        )
