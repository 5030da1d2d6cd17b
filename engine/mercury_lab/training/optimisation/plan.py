"""The plan of a run (what it learns), its setup (how it is computed), and the schedule of the learning rate."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mercury_engine.errors import RequestError

from mercury_lab.training.examples.gaps import GapSettings
from mercury_lab.training.optimisation.loss import LateStage
from mercury_lab.training.optimisation.objective import Noise

WARM_UP_STEPS = 30
"""Steps in which the learning rate rises to its full value."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """What a run learns; stored in its checkpoints."""

    minutes: float
    files: int = 2
    gaps: int = 16
    """Gaps per file in every step."""
    canvases: int = 3
    """Maximum canvases per gap; the fourth masks the complement of the third."""
    context: int = 800
    """Characters before a gap's chunk; half as many after it."""
    learning_rate: float = 1e-3
    rank: int = 32
    decay_share: float = 0.4
    late_share: float = 0.1
    """Share of the planned time, at its end, in which canvases show the model's own guesses and right answers are
    sharpened."""
    averaging: float = 0.98
    """Decay per step of the weights' running mean, which is exported."""
    seed: int = 0

    def rate(self, elapsed: float, step: int) -> float:
        """Warm-up, constant, then linear to a twentieth over the last part of the planned time (seconds)."""
        left = 1.0 - elapsed / (60 * self.minutes)
        return self.learning_rate * min(1.0, (step + 1) / WARM_UP_STEPS) * max(0.05, min(1.0, left / self.decay_share))

    def late_stage(self, elapsed: float) -> LateStage:
        """The additions at that time (seconds)."""
        late = elapsed > 60 * self.minutes * (1 - self.late_share)
        return LateStage(guesses=True, sharpen=0.05) if late else LateStage()

    def __post_init__(self) -> None:
        least = min(self.minutes, self.files, self.gaps, self.rank, self.context, self.learning_rate)
        if least <= 0:
            raise RequestError("minutes, files, gaps, rank, context and learning rate must be above 0")

    @property
    def spans(self) -> GapSettings:
        return GapSettings(prefix_chars=self.context, suffix_chars=self.context // 2)

    @property
    def noise(self) -> Noise:
        return Noise(complement=self.canvases > 3)


@dataclass(frozen=True, slots=True)
class Setup:
    """How a run is computed; it changes the speed, not what is learned."""

    packed: bool = False
    """Whether all gaps of a step are one sequence, with FlexAttention."""
    compiled: bool = False
    workers: int = 0
    """Processes that prepare the data of later steps; 0: this process prepares each step on demand."""
    peak_tflops: float = 0.0
    """The device's peak, for the log; 0: unknown."""
    save_every: float = 60.0
    """Seconds between checkpoints."""
    validation: Path | None = None
    """A corpus folder of held-out files."""
    validation_gaps: int = 64
    validate_every: float = 900.0
    """Seconds between validations."""
    clock: Callable[[], float] = time.monotonic
