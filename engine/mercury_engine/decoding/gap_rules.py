"""What both decoders ask about a hypothesis: its text, whether that leaves the gap, whether going on makes sense.

Dimensions: V vocabulary with mask and end.
"""

import numpy as np

from mercury_engine.api import MAX_SLOTS, Control, Effort, FillRequest
from mercury_engine.decoding.calibration import Calibration
from mercury_engine.decoding.hypothesis import Hypothesis, SlotLimits, Vocabulary
from mercury_engine.decoding.stopping import StoppingCriteria, StopTokens, find_end, first_line_end
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.arrays import IdArray, MaskArray
from mercury_engine.models.network import ModelConfig
from mercury_engine.prompt.tokenizer import PrefixCut, Tokenizer
from mercury_engine.text.brackets import CLOSING, QUOTES
from mercury_engine.text.overrun import overrun
from mercury_engine.text.thought import definition_end, thought_end
from mercury_engine.utility import typed_characters

MOST_CHARS_AHEAD = 12
"""A fill goes on while a text this many characters longer, as sure as what is accepted, would be worth showing.

In 3,941 replayed keystrokes this keeps 99 % of the characters saved and takes 6 % more steps than the fixed gate before
it; without a bound it would be 59 %.
"""

BELOW_CHARS = 1200
"""Characters after the gap whose lines a fill of several lines must not repeat."""

BLOCKS_ABOVE = 4
"""Blocks above the cursor's that are searched for the header of the definition that a fill must not leave."""

CLOSERS = f"{CLOSING};{QUOTES}"
"""Characters that end a bracket, a statement or a string."""

REMEMBERED_STARTS = 256
"""Remembered runs of these characters, with the tokens that begin so."""

REMEMBERED_MASKS = 64
"""Remembered limits, with the tokens that they hide."""

SLOTS: dict[Effort, int] = {"instant": 8, "low": 16, "medium": 32, "high": MAX_SLOTS}
"""Longest fill by effort, in tokens."""


class GapRules:
    """The rules of one model's vocabulary."""

    def __init__(self, tokenizer: Tokenizer, config: ModelConfig, calibration: Calibration, has_markers: bool) -> None:
        """`has_markers`: the model reads in a gap format."""
        self.tokenizer, self.calibration, self.has_markers = tokenizer, calibration, has_markers
        texts = tokenizer.texts + [""] * (config.vocab_size - tokenizer.size)  # unused rows of the embedding
        self.vocabulary = Vocabulary(texts, config.mask_id, config.end_id, tokenizer.decode)
        self.stopping = StoppingCriteria(tokenizer, texts, has_markers)
        self.closers = np.unique([token for mark in CLOSERS for token in tokenizer.starting(mark)]).astype(np.int64)
        """The tokens that begin with a mark that closes something."""
        self._starts = LeastRecentlyUsed[str, IdArray](REMEMBERED_STARTS)
        self._hidden = LeastRecentlyUsed[SlotLimits, MaskArray](REMEMBERED_MASKS)

    def begin(self, request: FillRequest, cut: PrefixCut, writes_on: bool = False) -> list[Hypothesis]:
        """The hypotheses that a request asks for, each with another first token."""
        slots = min(request.max_slots, SLOTS[request.effort])
        above, _, line = request.near.rpartition("\n")
        if request.multiline and request.utility is None:
            above = "".join((*request.far[-BLOCKS_ABOVE:], above))
        return [
            Hypothesis(
                self.vocabulary,
                ids=[*cut.known],
                capacity=len(cut.known) + slots,
                begun=cut.spell,
                rank=rank,
                follows=request.follows,
                below="".join(request.suffix)[:BELOW_CHARS] if request.multiline else "",
                line=line if request.multiline else None,
                above=None if request.utility else above,
                multiline=request.multiline,
                writes_on=writes_on,
            )
            for rank in range(max(1, request.candidates))
        ]

    def text(self, hypothesis: Hypothesis, tokens: int | None = None) -> str:
        """The text that the accepted tokens put after the cursor, up to where it leaves the gap.

        `tokens`: only the text of this many tokens from the left.
        """
        whole = self.tokenizer.decode(hypothesis.ids[hypothesis.known : tokens])
        text = whole[len(hypothesis.begun) :] if whole.startswith(hypothesis.begun) else ""
        return text[: _end(text, hypothesis)]

    def leaves_gap(self, hypothesis: Hypothesis) -> bool:
        """Whether the last token continues after the gap, breaks its only line, or begins another thought."""
        whole = self.tokenizer.decode(hypothesis.ids[hypothesis.known :])
        return _end(whole[len(hypothesis.begun) :], hypothesis) is not None

    def is_open(self, request: FillRequest, hypothesis: Hypothesis) -> bool:
        """Whether another step makes sense."""
        if hypothesis.is_full or self._is_hopeless(request, hypothesis):
            return False
        return request.max_steps is None or hypothesis.steps < request.max_steps

    def stop_tokens(self, hypothesis: Hypothesis) -> StopTokens | None:
        """The tokens that would end the hypothesis here; None where it cannot end."""
        if hypothesis.writes_on:
            return None
        return self.stopping.at(hypothesis.follows, hypothesis.multiline, self.text(hypothesis))

    def hidden_tokens(self, limits: SlotLimits) -> MaskArray:
        """bool [V]: tokens that a slot within these limits may not get."""
        return self._hidden.get_or_make(limits, lambda: self._hidden_by(limits))

    def _hidden_by(self, limits: SlotLimits) -> MaskArray:
        hidden_V = np.zeros(len(self.vocabulary.texts) + 2, np.bool_)
        if limits.spell:
            hidden_V[:] = True
            hidden_V[self._continuing(limits.spell, limits.multiline)] = False
        elif not limits.multiline:
            hidden_V[self.stopping.breaks] = True
        hidden_V[self.stopping.ends_text] = True
        hidden_V[self.vocabulary.mask_id] = True
        if limits.banned is not None:
            hidden_V[limits.banned] = True
        return hidden_V

    def _continuing(self, spell: str, multiline: bool) -> list[int]:
        """Tokens that continue a text to spell and, unless `multiline`, do more than break the line after it."""
        texts, breaks = self.vocabulary.texts, set(self.stopping.breaks.tolist())
        tokens = self.tokenizer.spelling(spell)
        if multiline or (spell.strip() and "\n" not in spell):  # these do more than break the line
            return tokens
        return [i for i in tokens if i not in breaks or "\n" not in texts[i][len(spell) :]]

    def closing_starts(self, token: int) -> list[str]:
        """The marks that a token begins with and closes something by: the first one, and so on to all."""
        text = "" if token == self.vocabulary.end_id else self.vocabulary.texts[token]
        return [text[:count] for count in range(1, len(text) - len(text.lstrip(CLOSERS)) + 1)]

    def repaired(self, control: Control, hypothesis: Hypothesis) -> bool:
        """Whether tokens of an ended hypothesis were taken back because its text breaks the document's syntax."""
        wrong = control.check(self.text(hypothesis)) if control.check else None
        if wrong is not None:
            hypothesis.reopen(wrong)
        return wrong is not None

    def starting(self, marks: str) -> IdArray:
        """The places among `closers` of the tokens that begin with these marks."""
        return self._starts.get_or_make(marks, lambda: np.searchsorted(self.closers, self.tokenizer.starting(marks)))

    def _is_hopeless(self, request: FillRequest, hypothesis: Hypothesis) -> bool:
        """Whether nothing that begins with the accepted tokens can be worth showing, or is sure enough."""
        if hypothesis.confidence < self.calibration.raw(request.give_up_below):
            return True
        if request.utility is None:
            return False
        longest = typed_characters(self.text(hypothesis)) + MOST_CHARS_AHEAD
        return hypothesis.prospect < self.calibration.raw(request.utility.least_probability(longest))


def _end(text: str, hypothesis: Hypothesis) -> int | None:
    """Where a text goes beyond what the fill is for; None if it does not."""
    ends = [find_end(text, hypothesis.follows), hypothesis.limit]
    if not hypothesis.multiline:
        ends.append(first_line_end(text))
    line, above = hypothesis.line, hypothesis.above
    if line is not None and "\n" in text:
        ends.append(thought_end(text, line) if above is None else definition_end(text, line, above))
        ends.append(overrun(text, line, hypothesis.below))
    return min((end for end in ends if end is not None), default=None)
