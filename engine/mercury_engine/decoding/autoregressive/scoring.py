"""Scores texts in a gap: the log-probability of each, followed by the rest of the line or the gap's end.

A model of plain blocks has not seen the rest of the line, so its opinion of a text shows there too. A model with a gap
format has seen it, so the text is followed by the end.
"""

import math
from collections.abc import Sequence

from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.errors import ModelCorrupt
from mercury_engine.models.arrays import IdArray
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network

REST_CHARS = 60
"""Number of characters scored after the gap on its line."""


def score_gap(
    network: Network, contexts: ContextReader, rules: GapRules, gap: FillRequest, texts: Sequence[str]
) -> ForwardSteps[list[float]]:
    """Log-probability in nats of each text and what follows it, given all that a causal model sees before the gap.

    What follows is a token that ends a gap, or without a gap format the rest of the line. Raises ModelCorrupt when the
    weights compute NaN.
    """
    cut = contexts.cut(gap)
    context = yield from contexts.read(gap, cut.read)
    ends = rules.stopping.at(gap.follows, gap.multiline, "") if rules.has_markers else None
    rest = rest_of_line(gap.follows) if ends is None else ""
    rows = [contexts.tokenizer.encode(cut.spell + text + rest) for text in texts]
    scores = yield from score_rows(network, context, cut.known, rows, () if ends is None else ends.tokens)
    if any(map(math.isnan, scores)):
        raise ModelCorrupt("the weights compute NaN; fetch the model again, or set mercury.model to null")
    return scores


def score_rows(
    network: Network,
    context: GapContext,
    known: Sequence[int],
    rows: list[list[int]],
    ends: Sequence[int] | IdArray = (),
) -> ForwardSteps[list[float]]:
    """`Verifier.score` of rows after a context and known tokens; all are read in one pass."""
    verifier = Verifier.after(network, context)
    verifier.push(known)
    return (yield from verifier.score(rows, ends))


def rest_of_line(follows: str) -> str:
    """The text after the gap up to and with its line break, at most `REST_CHARS`."""
    return follows[: follows.find("\n") + 1 or len(follows)][:REST_CHARS]
