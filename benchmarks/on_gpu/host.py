"""Time that the host takes for a typed key when the reader decides on a GPU; needs no GPU.

Passes are played: they take no time and decide the text that stood in the gap, all tokens with one probability. What
is left is the work around them: tokens, context, masks, inputs, lookups, answers. What is done while a pass runs counts
only if it takes longer than the pass would. Keys are typed into real gaps after a context that is known.
"""

import cProfile
import pstats
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from mercury_engine.api import Fill, FillRequest
from mercury_engine.models.network import KeyValueBlock
from mercury_engine.models.paged_reader import ROWS, PagedReader
from mercury_engine.models.paged_rows import PagedRows
from mercury_engine.models.torch_network import TorchNetwork
from mercury_engine.utility import Utility
from mercury_lab.engine import Engine
from mercury_lab.evaluation.gaps import GAP_KINDS, Gap, gaps

from on_gpu.real_fills import HELD_OUT

KEYS = 3
"""Keys that are typed into each gap."""

SLOTS = 32

CHANCE = 0.8
"""Chance of each decided token; with it most fills are given up after two passes, as in typing."""

ROUNDS = 12
"""Times that every key is typed; its least time counts, as other programs disturb the rest."""

PASS_SECONDS = 0.27e-3
"""A pass of the bundled model, by the lower of its floors in docs/decisions/gpu.md."""

LOOKUP_FILES = 6
"""Files whose text is looked up but not read."""


class PlayedPasses:
    """Stands in for the graphs of a reader: decides the tokens of `text_ids` one behind the other, then the end."""

    def __init__(self, reader: PagedReader) -> None:
        self._reader, self.text_ids = reader, [0]
        self.count = 0
        self.beside = 0.0
        """Seconds of the host's work that a GPU's passes would have hidden."""
        self._group: Sequence[PagedRows] = ()
        self._launched = 0.0
        original = reader._pass
        reader._pass = lambda group: (setattr(self, "_group", group), original(group))[1]  # type: ignore[method-assign]
        reader.captures.run = self._run  # type: ignore[method-assign, assignment]
        reader._wait = self._wait  # type: ignore[method-assign]

    def begin(self, text_ids: list[int]) -> None:
        """Another fill begins."""
        self.text_ids, self.beside = [*text_ids, *[self._reader.end_id] * (ROWS + SLOTS)], 0.0

    def _wait(self) -> None:
        self.beside += min(PASS_SECONDS, time.perf_counter() - self._launched)

    def _run(self, shape: Any) -> None:
        self.count += 1
        host = self._reader._buffers[shape].host
        for number, request in enumerate(self._group):
            if not request.next:
                continue
            first, rows = int(host["first"][number]), len(request.next)
            decided = self.text_ids[:rows]
            right = next((i for i, token in enumerate(request.draft) if token != decided[i]), len(request.draft))
            host["token"][number, first : first + rows] = decided
            host["probability"][number, first : first + rows] = CHANCE
            host["accepted"][number] = right
            self.text_ids = self.text_ids[right + 1 :]
        self._launched = time.perf_counter()


class Key(NamedTuple):
    """A typed key's fill, the host's seconds for it, and those of them that passes would have hidden."""

    fill: Fill
    seconds: float
    beside: float


class HostTime:
    """Keys typed into gaps of real files, with unread text to look up."""

    def __init__(self, folder: str | None = None, gaps_of_each_kind: int = 5) -> None:
        loaded = Engine.load(folder, device="cpu", dtype=torch.float32)
        network = loaded.reader
        assert isinstance(network, TorchNetwork)
        self.reader = PagedReader(network.decoder)
        self.engine = Engine(replace(loaded.parts, paged=self.reader))
        self.passes = PlayedPasses(self.reader)
        network.read_together = self._read_nothing  # type: ignore[method-assign, assignment]
        self.keys = [keys for gap in gaps(HELD_OUT, gaps_of_each_kind, 0, GAP_KINDS) if (keys := _typed(gap))]

    def measure(self, profile: bool = False) -> dict[str, Any]:
        """Milliseconds a key, by the number of its steps.

        `profile` prints in which functions another round's time goes.
        """
        rounds = [self._round() for _ in range(ROUNDS)]
        steps = np.array([key.fill.steps for key in rounds[0]])
        assert all([key.fill.text for key in each] == [key.fill.text for key in rounds[0]] for each in rounds)
        if profile:
            profiler = cProfile.Profile()
            self._round(profiler)
            pstats.Stats(profiler).sort_stats("tottime").print_stats(45)
        least = 1e3 * np.min([[(key.seconds - key.beside, key.seconds) for key in each] for each in rounds], 0)
        return _figures(least[:, 0], steps) | {"work_ms": float(np.median(least[:, 1]))}

    def _round(self, profiler: cProfile.Profile | None = None) -> list["Key"]:
        """Every key, behind contexts that were read just before."""
        self.engine.decoder.forget()
        found = []
        for (first, rest), *keys in self.keys:
            self._fill(first, rest, None)
            found += [self._fill(request, text, profiler) for request, text in keys]
        return found

    def _fill(self, request: FillRequest, text: str, profiler: cProfile.Profile | None) -> "Key":
        self.passes.begin(self.engine.tokenizer.encode(self.engine.decoder.contexts.cut(request).spell + text))
        if profiler is not None:
            profiler.enable()
        began = time.perf_counter()
        fill = self.engine.fill(request)
        seconds = time.perf_counter() - began
        if profiler is not None:
            profiler.disable()
        return Key(fill, seconds, self.passes.beside)

    def _read_nothing(self, forwards: Sequence[Any]) -> list[tuple[torch.Tensor, KeyValueBlock]]:
        """Blocks of zeros."""
        config = self.engine.reader.config
        layers, heads, width = config.num_hidden_layers, config.num_key_value_heads, config.head_dim
        blocks = [torch.zeros(layers, 1, heads, forward.rows, width) for forward in forwards]
        return [(torch.zeros(each.shape[3], config.hidden_size), KeyValueBlock(each, each)) for each in blocks]


def _typed(gap: Gap) -> list[tuple[FillRequest, str]]:
    """The gap as it is, then after each typed character, each with the rest of the text that stood there."""
    files = sorted(HELD_OUT.rglob("*.py"))[:LOOKUP_FILES]
    lookup = tuple(path.read_text(encoding="utf-8") for path in files)
    base = replace(gap.request, lookup_text=lookup, max_slots=SLOTS, utility=Utility())
    counts = range(min(KEYS, len(gap.truth) - 1) + 1)
    typed = [(replace(base, near=base.near + gap.truth[:count]), gap.truth[count:]) for count in counts]
    return typed if len(typed) > 1 else []


def _figures(times: np.ndarray, steps: np.ndarray) -> dict[str, Any]:
    """What was measured; `of_10000_squares` is a key of two steps as a multiple of `_squares_ms`."""
    by_steps = {f"{n}_steps_ms": float(np.median(times[steps == n])) for n in range(1, 5) if (steps == n).any()}
    return {
        "keys": len(times),
        "steps": float(steps.mean()),
        "key_ms": float(np.median(times)),
        "key_p90_ms": float(np.quantile(times, 0.9)),
        "step_ms": float(times.sum() / max(1, steps.sum())),
        **by_steps,
        "of_10000_squares": by_steps.get("2_steps_ms", float(np.median(times))) / _squares_ms(),
    }


def _squares_ms() -> float:
    """The least time in which this machine's Python sums the squares of 10,000 numbers."""
    times = []
    for _ in range(200):
        began = time.perf_counter()
        sum(i * i for i in range(10_000))
        times.append(time.perf_counter() - began)
    return 1e3 * min(times)
