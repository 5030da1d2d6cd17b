"""What a run does and with which means, and how learning changes over its time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mercury_engine.errors import RequestError
from mercury_engine.training.examples.gaps import GapSettings
from mercury_engine.training.optimisation.loss import LateStage
from mercury_engine.training.optimisation.objective import Noise
from mercury_engine.training.optimisation.optimizer import OptimizerName

WARM_UP_STEPS = 30
"""Steps."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """What one run does; stored with its checkpoints."""

    minutes: float
    files: int = 2
    gaps: int = 16
    """Of a file, in every step."""
    canvases: int = 3
    """Of a gap at most; the fourth hides what the third shows."""
    edits: float = 0.12
    """Share of gaps that are edits."""
    context: int = 800
    """Characters before a gap's chunk; half as many behind it."""
    optimizer: OptimizerName = "adamw"
    learning_rate: float = 1e-3
    rank: int = 32
    decay_share: float = 0.4
    final_share: float = 0.1
    """Of the planned time, at the end: canvases show the model's own guesses, right answers are sharpened."""
    averaging: float = 0.98
    """Decay per step of the running mean of the weights, which is what is exported."""
    seed: int = 0

    def rate(self, elapsed: float, step: int) -> float:
        """Warm-up, constant, then linear to a twentieth over the last part of the planned time (seconds)."""
        left = 1.0 - elapsed / (60 * self.minutes)
        return self.learning_rate * min(1.0, (step + 1) / WARM_UP_STEPS) * max(0.05, min(1.0, left / self.decay_share))

    def final(self, elapsed: float) -> LateStage:
        """What is added at that time (seconds)."""
        late = elapsed > 60 * self.minutes * (1 - self.final_share)
        return LateStage(guesses=True, sharpen=0.05) if late else LateStage()

    def __post_init__(self) -> None:
        least = min(self.minutes, self.files, self.gaps, self.rank, self.context, self.learning_rate)
        if least <= 0 or not 0 <= self.edits < 1:
            raise RequestError("minutes, files, gaps, rank, context and learning rate are above 0, edits in [0, 1)")

    @property
    def spans(self) -> GapSettings:
        return GapSettings(prefix_chars=self.context, suffix_chars=self.context // 2)

    @property
    def noise(self) -> Noise:
        return Noise(complement=self.canvases > 3)


@dataclass(frozen=True, slots=True)
class Setup:
    """With what a run is computed; changes its speed, not what is learned."""

    packed: bool = False
    """All gaps of a step as one sequence, with FlexAttention."""
    compiled: bool = False
    workers: int = 0
    """Processes that draw the data of later steps; 0: this one draws each step when its turn comes."""
    peak_tflops: float = 0.0
    """Of the device, for the log."""
    save_every: float = 60.0
    """Seconds between checkpoints."""
    validation: Path | None = None
    """A corpus folder of held-out files."""
    validation_gaps: int = 64
    validate_every: float = 900.0
    """Seconds."""
    clock: Callable[[], float] = time.monotonic
