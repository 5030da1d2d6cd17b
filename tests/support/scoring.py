"""How likely an engine finds texts in a gap."""

from collections.abc import Sequence

from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_lab.engine import Engine, finished


def scored(engine: Engine, gap: FillRequest, texts: Sequence[str]) -> list[float]:
    """The log-probability of each text, in nats, and of the end of a gap format after it."""
    cut, rules = engine.decoder.contexts.cut(gap), engine.decoder.rules
    context = engine.surroundings(gap, cut.read)
    stop = rules.stop_tokens(gap.follows, gap.multiline, "") if rules.has_markers else None
    rows = [engine.tokenizer.encode(cut.spell + text) for text in texts]
    verifier = Verifier(engine.reader, context, cut.known)
    return finished(verifier.score(rows, () if stop is None else stop.tokens), engine.reader)
