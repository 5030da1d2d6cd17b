"""Times passes that decide about a few rows, until what they decide is on the host."""

import numpy as np
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.paged_reader import PagedReader
from mercury_engine.models.paged_rows import NextToken, PagedRows, TokenList

from on_gpu.clock import Clock, spread


def measure(made: TorchDecoder, clock: Clock, seconds: float) -> dict[str, object]:
    """Milliseconds of a pass of a model, the median as `pass_ms`."""
    reader, nothing = PagedReader(made), TokenList((), lambda: np.zeros(made.config.vocab_size, np.bool_))
    rows = PagedRows(reader, [0, 0, 0], reader.pool.take(2), [1], 0, [0, 0], [NextToken(nothing)] * 3)
    found = spread(clock.each(lambda: reader.read_rows([rows]), seconds))
    return found | {"pass_ms": found["p50_ms"]}
