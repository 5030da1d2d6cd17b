"""Which of several texts a gap holds: the reader's log-probability of each, the rest of the line read behind it.

Dimensions: V vocabulary.
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
"""So much of what follows the gap on its line has a say."""


def score_texts(
    reader: Network,
    tokenizer: Tokenizer,
    place: CanvasContext,
    cut: PrefixCut,
    request: FillRequest,
    texts: Sequence[str],
) -> ForwardSteps[list[float]]:
    """Nats of each text with the rest of the line; above it the near prefix, and before that what stands below.

    `place` stands behind the tokens of `cut.read`. Raises ModelCorrupt when the weights compute no numbers.
    """
    rest = rest_of_line(request.follows)
    rows = [tokenizer.encode(cut.spell + text + rest) for text in texts]
    stack = Verifier(reader, place.context.before, place.last, place.ends)
    stack.push(cut.known)
    looked = yield from stack.look([[] for _ in rows], rows)
    found = []
    for row, logp_SV in zip(rows, looked, strict=True):
        found.append(sum(float(logp_V[token]) for token, logp_V in zip(row, logp_SV, strict=False)))
    if any(map(math.isnan, found)):
        raise ModelCorrupt("the weights compute no numbers; fetch the model again, or set mercury.model to null")
    return found


def rest_of_line(follows: str) -> str:
    """What stands behind the gap up to the line break, which is part of it."""
    return follows[: follows.find("\n") + 1 or len(follows)][:REST_CHARS]
