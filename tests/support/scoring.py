"""How likely an engine finds texts in a gap."""

from collections.abc import Sequence

from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.scoring import score_gap
from mercury_lab.engine import Engine, finished


def scored(engine: Engine, gap: FillRequest, texts: Sequence[str]) -> list[float]:
    """The log-likelihood of each text, in nats, for a causal reader."""
    return finished(score_gap(engine.reader, engine.decoder.contexts, engine.decoder.rules, gap, texts), engine.reader)
