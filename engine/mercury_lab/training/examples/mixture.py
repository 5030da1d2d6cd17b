"""Files in a fixed mix of languages."""

import random
from collections.abc import Iterable

from mercury_engine.errors import ModelCorrupt

from mercury_lab.training.data.sources import SourceFile

PYTHON_SHARE = 0.5
"""Of the files drawn, if there are any."""


class Mixture:
    """Files in memory, sampled with a fixed share of each language. Raises ModelCorrupt if it has no file."""

    def __init__(self, files: Iterable[SourceFile]) -> None:
        self.files: dict[str, list[SourceFile]] = {}
        self._packages: dict[str, list[SourceFile]] = {}
        for file in files:
            self.files.setdefault(file.language, []).append(file)
            self._packages.setdefault(file.package, []).append(file)
        if not self.files:
            raise ModelCorrupt("there are no source files")

    def sample(self, rng: random.Random) -> SourceFile:
        others = [name for name in self.files if name != "python"]
        if "python" in self.files and (not others or rng.random() < PYTHON_SHARE):
            return rng.choice(self.files["python"])
        sizes = [len(self.files[name]) ** 0.5 for name in others]
        return rng.choice(self.files[rng.choices(others, sizes)[0]])

    def others(self, file: SourceFile, rng: random.Random) -> list[SourceFile]:
        """A few other files of the same package, preferably of the same language."""
        package = self._packages[file.package]
        found = [f for f in rng.sample(package, min(12, len(package))) if f is not file]
        return [f for f in found if f.language == file.language] or found
