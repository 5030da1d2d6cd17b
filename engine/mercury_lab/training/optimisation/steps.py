"""The data of every writer step, which depends only on the seed and the step's number."""

import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from mercury_engine.models.network import ModelConfig
from torch.utils.data import DataLoader, Dataset

from mercury_lab.training.examples.mixture import GapWindow, WindowSampler
from mercury_lab.training.optimisation.loss import Layout
from mercury_lab.training.optimisation.objective import Noise, TrainingCanvas, corrupt, lay_rows
from mercury_lab.training.optimisation.packed import Overflow, Packed, Room
from mercury_lab.training.optimisation.padded import Padded

ROOM_SAMPLE_STEPS = 3
"""Steps that are sampled to measure the room that every step needs."""


@dataclass(frozen=True)
class WriterSteps(Dataset[list[Layout]]):
    """Step number -> layouts: one for all windows if rows are packed (GPU), else one per window."""

    sampler: WindowSampler
    config: ModelConfig
    files: int
    noise: Noise
    seed: int
    packed: bool
    room: Room | None = None

    def __getitem__(self, step: int) -> list[Layout]:
        """The step's layouts; none if the sampled files are too short."""
        rng = random.Random(f"{self.seed}/{step}")
        windows = self.sampler.windows(self.files, rng)
        canvases = [corrupt(self.config, window, rng, self.noise) for window in windows]
        if not self.packed:
            return self.layouts(windows, canvases)
        while len(windows) > 1:
            try:
                return [self._packed(windows, canvases)]
            except Overflow:
                windows.pop()  # rare: the room is measured on other steps
        return self.layouts(windows, canvases)

    def layouts(self, windows: Sequence[GapWindow], canvases: Sequence[Sequence[TrainingCanvas]]) -> list[Layout]:
        """Layouts of all the windows; one that does not fit even alone gets shapes of its own."""
        if not self.packed:
            return [self._padded(window, of) for window, of in zip(windows, canvases, strict=True)]
        try:
            return [self._packed(windows, canvases)] if windows else []
        except Overflow:
            half = len(windows) // 2
            if not half:
                return [replace(self, room=None)._packed(windows, canvases)]
            return self.layouts(windows[:half], canvases[:half]) + self.layouts(windows[half:], canvases[half:])

    def _padded(self, window: GapWindow, canvases: Sequence[TrainingCanvas]) -> Padded:
        return Padded(window.gaps, lay_rows(window.gaps, canvases), self.sampler.tokenizer.start_id)

    def _packed(self, windows: Sequence[GapWindow], canvases: Sequence[Sequence[TrainingCanvas]]) -> Packed:
        gaps = [gap for window in windows for gap in window.gaps]
        first, moved = 0, []
        for window, of in zip(windows, canvases, strict=False):
            moved += [replace(canvas, gap=canvas.gap + first) for canvas in of]
            first += len(window.gaps)
        return Packed(gaps, lay_rows(gaps, moved), self.sampler.tokenizer.start_id, self.room)

    def with_room(self) -> "WriterSteps":
        """These steps with room for about every step, so that the tensors of all steps have the same shapes."""
        if not self.packed:
            return self
        found = [
            layout.room for step in range(ROOM_SAMPLE_STEPS) for layout in self[step] if isinstance(layout, Packed)
        ]
        return replace(self, room=Room.covering(found)) if found else self


def prefetched(steps: Dataset[list[Any]], first: int, workers: int) -> Iterator[list[Any]]:
    """The endless steps from `first` on, prepared ahead by `workers` processes; 0: by this one, on demand."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    options: dict[str, Any] = {"prefetch_factor": 2, "multiprocessing_context": "fork"} if workers else {}
    numbers = range(first, first + (1 << 40))
    drawn = iter(DataLoader(steps, batch_size=None, sampler=numbers, num_workers=workers, **options))
    return _one_ahead(drawn) if workers else drawn


def _one_ahead(drawn: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """The same steps; each is received from its process while the one before is computed."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, drawn)
        while True:
            batch = following.result()
            following = pool.submit(next, drawn)
            yield batch
