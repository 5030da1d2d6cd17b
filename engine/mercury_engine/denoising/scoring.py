"""Scores texts in a gap: the reader's log-probability of each, followed by the rest of the line or the gap's end.

A reader of plain blocks has not seen the rest of the line, so its opinion of a text shows there too. A reader of a gap
format has seen it, so the text is followed by the end.

Dimensions: S slots, V vocabulary.
"""

import math
from collections.abc import Sequence

from mercury_engine.api import FillRequest
from mercury_engine.denoising.stopping import StopTokens
from mercury_engine.denoising.verifier import CanvasContext, Verifier
from mercury_engine.errors import ModelCorrupt
from mercury_engine.models.arrays import beside, logsumexp
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network
from mercury_engine.prompt.tokenizer import PrefixCut, Tokenizer

REST_CHARS = 60
"""Number of characters scored behind the gap on its line."""


def score_texts(
    reader: Network,
    tokenizer: Tokenizer,
    canvas_context: CanvasContext,
    cut: PrefixCut,
    request: FillRequest,
    texts: Sequence[str],
    ends: StopTokens | None = None,
) -> ForwardSteps[list[float]]:
    """Log-probability of each text and what follows it in nats, given all that the reader sees before the gap.

    That is one of the `ends`, or without them the rest of the line. `canvas_context` stands behind the tokens of
    `cut.read`. Raises ModelCorrupt when the weights compute NaN.
    """
    rest = rest_of_line(request.follows) if ends is None else ""
    rows = [tokenizer.encode(cut.spell + text + rest) for text in texts]
    verifier = Verifier.behind(reader, canvas_context)
    verifier.push(cut.known)
    read = yield from verifier.verify([[] for _ in rows], rows)
    scores = []
    for row, logp_SV in zip(rows, read, strict=True):
        nats = sum(float(logp_V[token]) for token, logp_V in zip(row, logp_SV, strict=False))
        scores.append(nats if ends is None else nats + logsumexp(logp_SV[-1][beside(ends.tokens, logp_SV[-1])]))
    if any(map(math.isnan, scores)):
        raise ModelCorrupt("the weights compute NaN; fetch the model again, or set mercury.model to null")
    return scores


def rest_of_line(follows: str) -> str:
    """The text behind the gap up to and with its line break, at most `REST_CHARS`."""
    return follows[: follows.find("\n") + 1 or len(follows)][:REST_CHARS]
