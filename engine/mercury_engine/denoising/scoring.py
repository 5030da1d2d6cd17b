"""Scores texts in a gap: the reader's log-probability of each, followed by the rest of the line.

Dimensions: S slots, V vocabulary.
"""

import math
from collections.abc import Sequence

from mercury_engine.api import FillRequest
from mercury_engine.denoising.verifier import CanvasContext, Verifier
from mercury_engine.errors import ModelCorrupt
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
) -> ForwardSteps[list[float]]:
    """Log-probability of each text and the rest of the line in nats, given all that the reader sees before the gap.

    `canvas_context` stands behind the tokens of `cut.read`. Raises ModelCorrupt when the weights compute NaN.
    """
    rest = rest_of_line(request.follows)
    rows = [tokenizer.encode(cut.spell + text + rest) for text in texts]
    verifier = Verifier(reader, canvas_context.context.before, canvas_context.last, canvas_context.ends)
    verifier.push(cut.known)
    read = yield from verifier.verify([[] for _ in rows], rows)
    scores = []
    for row, logp_SV in zip(rows, read, strict=True):
        scores.append(sum(float(logp_V[token]) for token, logp_V in zip(row, logp_SV, strict=False)))
    if any(map(math.isnan, scores)):
        raise ModelCorrupt("the weights compute NaN; fetch the model again, or set mercury.model to null")
    return scores


def rest_of_line(follows: str) -> str:
    """The text behind the gap up to and with its line break, at most `REST_CHARS`."""
    return follows[: follows.find("\n") + 1 or len(follows)][:REST_CHARS]
