"""Run the bundled causal model on real code, in passes over pages and by the plain loop.

Text and probabilities of both ways must be the same in float32. A key is timed inside the engine, in the model's own
dtype: from the request to its fill, with caches warm from the key before, so reading what was typed is part of it.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch
from mercury_engine.api import Fill, FillRequest
from mercury_engine.decoding.autoregressive.decoder import AutoregressiveDecoder
from mercury_engine.models.paged_reader import PagedReader
from mercury_engine.models.torch_network import TorchNetwork
from mercury_lab.engine import Engine
from mercury_lab.evaluation.gaps import GAP_KINDS, Gap, gaps

from on_gpu.clock import Clock, spread

HELD_OUT = Path(__file__).resolve().parents[2] / "tests" / "data" / "held_out"

TYPED_KEYS = 2
"""Keys that are typed into each gap and timed."""


class RealFills:
    """`count` fills of real gaps, or as many as fit in `seconds`; a rehearsal shortens contexts."""

    def __init__(self, clock: Clock, count: int, seconds: float, tiny: bool, model: str | None = None) -> None:
        self.clock, self.seconds, self.tiny, self.model = clock, seconds, tiny, model
        self.gaps = [self._short(gap) for gap in gaps(HELD_OUT, max(1, count // len(GAP_KINDS)), 0, GAP_KINDS)][:count]
        self.engine = cache(self._engine)

    def _short(self, gap: Gap) -> Gap:
        if not self.tiny:
            return gap
        request = replace(gap.request, near=gap.request.near[-80:], far=(), suffix=gap.request.suffix[:1], max_slots=8)
        return replace(gap, request=request)

    def agreement(self) -> dict[str, object]:
        """The number of compared fills, the share with equal text, and the fills' steps."""
        engine, same, steps = self.engine(torch.float32), 0, []
        end = time.monotonic() + self.seconds / 2
        for gap in self.gaps:
            if steps and time.monotonic() > end:
                break
            found, plain = engine.fill(gap.request), self._plain(engine, gap.request)
            same += found.text == plain.text and abs(found.confidence - plain.confidence) < 1e-3
            steps.append(found.steps)
        return {"compared": len(steps), "same": same / len(steps), "steps": sum(steps) / len(steps)}

    def keys(self) -> dict[str, object]:
        """Milliseconds per key and prefilled tokens; an earlier pass captures all graphs."""
        engine = self.engine(torch.float32 if self.tiny else None)
        end = time.monotonic() + self.seconds / 4
        warm = [gap for gap in self.gaps if time.monotonic() < end and self.typed_into(engine, gap)]
        timed = [key for gap in warm for key in self.typed_into(engine, gap)]
        return {
            "key": spread([milliseconds for milliseconds, _ in timed]),
            "tokens_read": sum(read for _, read in timed) / len(timed),
        }

    def typed_into(self, engine: Engine, gap: Gap) -> list[tuple[float, int]]:
        """Milliseconds of each key, and the tokens that it prefilled."""
        keys = []
        engine.fill(gap.request)
        for request in self._typed(gap):
            began = time.perf_counter()
            fill = engine.fill(request)
            self.clock.wait()
            keys.append((1e3 * (time.perf_counter() - began), fill.tokens_read))
        return keys

    def _typed(self, gap: Gap) -> Iterator[FillRequest]:
        """The gap after each typed character, as an editor's requests have it."""
        for typed in range(1, min(TYPED_KEYS, len(gap.truth)) + 1):
            slots = min(32, gap.request.max_slots)
            yield replace(gap.request, near=gap.request.near + gap.truth[:typed], max_slots=slots)

    def _engine(self, dtype: torch.dtype | None) -> Engine:
        backend = "torch" if dtype is None else "auto"
        engine = Engine.load(self.model, device=self.clock.device.type, dtype=dtype, backend=backend)
        if engine.parts.paged is None:  # on the CPU, where a rehearsal runs
            assert isinstance(engine.reader, TorchNetwork)
            return Engine(replace(engine.parts, paged=PagedReader(engine.reader.decoder)))
        return engine

    def _plain(self, engine: Engine, request: FillRequest) -> Fill:
        """The fill by the plain loop."""
        decoder = engine.decoder
        assert isinstance(decoder, AutoregressiveDecoder)
        kept, decoder.on_gpu = decoder.on_gpu, None
        try:
            return engine.fill(request)
        finally:
            decoder.on_gpu = kept
