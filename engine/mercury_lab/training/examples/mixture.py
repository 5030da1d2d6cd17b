"""Sample a step's gaps: files in a fixed mix of languages, and a window of gaps in each file."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

from mercury_engine.errors import ModelCorrupt
from mercury_engine.prompt.tokenizer import Tokenizer

from mercury_lab.training.data.corpus import SourceFile
from mercury_lab.training.examples.gaps import GapSampler, GapSettings, TrainingGap

CANVAS_SLOT_CHOICES = (8, 16, 16, 16, 24, 24, 32, 64)
"""Slots of canvases with a tail of end markers, by frequency; all gaps of a window have the same."""

LONG_CANVAS_SLOTS = 32
"""Slots; windows with more have half as many gaps."""


@dataclass(frozen=True, slots=True)
class GapWindow:
    """Nearby gaps of one file, and the slots of their canvases with a tail."""

    gaps: list[TrainingGap]
    slots: int


class Mixture:
    """A corpus in memory, sampled with a fixed share of each language. Raises ModelCorrupt if it has no file."""

    def __init__(self, files: Iterable[SourceFile], python_share: float = 0.5) -> None:
        self.python_share = python_share
        self.files: dict[str, list[SourceFile]] = {}
        self._packages: dict[str, list[SourceFile]] = {}
        for file in files:
            self.files.setdefault(file.language, []).append(file)
            self._packages.setdefault(file.package, []).append(file)
        if not self.files:
            raise ModelCorrupt("the corpus holds no source files; run the corpus step again")

    def sample(self, rng: random.Random) -> SourceFile:
        others = [name for name in self.files if name != "python"]
        if "python" in self.files and (not others or rng.random() < self.python_share):
            return rng.choice(self.files["python"])
        sizes = [len(self.files[name]) ** 0.5 for name in others]
        return rng.choice(self.files[rng.choices(others, sizes)[0]])

    def others(self, file: SourceFile, rng: random.Random) -> list[SourceFile]:
        """A few other files of the same package, preferably of the same language."""
        package = self._packages[file.package]
        found = [f for f in rng.sample(package, min(12, len(package))) if f is not file]
        return [f for f in found if f.language == file.language] or found


@dataclass(frozen=True, slots=True)
class WindowSampler:
    """Samples windows of `gaps` gaps each."""

    tokenizer: Tokenizer
    mixture: Mixture
    gaps: int
    spans: GapSettings

    def windows(self, files: int, rng: random.Random) -> list[GapWindow]:
        """The windows of `files` files; they depend on the generator only, not on earlier calls."""
        sampler, found = GapSampler(self.tokenizer, rng, self.spans), list[GapWindow]()
        for _ in range(files):
            file = self.mixture.sample(rng)
            slots = rng.choice(CANVAS_SLOT_CHOICES)
            count = self.gaps if slots <= LONG_CANVAS_SLOTS else max(1, self.gaps // 2)
            found.append(GapWindow(sampler.gaps(file, count, self.mixture.others(file, rng)), slots))
        return [window for window in found if window.gaps]
