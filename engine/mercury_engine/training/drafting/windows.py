"""The text that the writer learns to draft from: windows of files, and the places in them where a draft begins."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch.utils.data import Dataset

from mercury_engine.errors import ModelCorrupt
from mercury_engine.prompt.layout import path_block
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.training.data import filters
from mercury_engine.training.data.corpus import SourceFile
from mercury_engine.training.examples.gaps import PATH_SHARE
from mercury_engine.training.examples.mixture import Mixture

FILE_START_SHARE = 0.3
"""Share of windows that are placed at the start of their file, in addition to those that fall there by chance."""

MAX_TOKEN_CHARS = 12
"""Characters per token; text of this length per token is long enough for any window."""

MIN_TOKEN_CHARS = 3
"""Characters per token; a window starts at least this length per token before the end of a long file."""


@dataclass(frozen=True, slots=True)
class DraftingSettings:
    """How drafting is taught."""

    slots: int = 6
    """Masked slots per canvas."""
    places: int = 28
    """Canvases per window; they share the window's prefill."""
    tokens: int = 320
    """Maximum tokens per window."""
    min_prefix: int = 16
    """Tokens before the first place."""
    text_weight: float = 0.4
    """Weight of the target tokens' cross entropy."""
    divergence_weight: float = 0.6
    """Weight of the divergence from the reader's distributions."""
    slot_decay: float = 0.8
    """Weight of a slot relative to the slot before it."""
    reader_share: float = 0.5
    """Share of windows whose targets are the reader's own continuation, once the run uses them."""
    reader_from: float = 0.5
    """Share of the planned time after which the run uses the reader's own continuations."""

    def slot_weights(self) -> list[float]:
        """The weight of each slot; they sum to 1."""
        raw = [self.slot_decay**slot for slot in range(self.slots)]
        return [weight / sum(raw) for weight in raw]


@dataclass(frozen=True, slots=True)
class Window:
    """A run of tokens, and the places in it in order: each is the index of its canvas's known token."""

    tokens: tuple[int, ...]
    places: tuple[int, ...]
    target_draw: float = 0.0
    """Uniform in [0, 1); below `DraftingSettings.reader_share`, the targets may be the reader's continuation."""


def sample_window(
    tokenizer: Tokenizer, file: SourceFile, settings: DraftingSettings, rng: random.Random
) -> Window | None:
    """A window of the file, from its start or from the start of a line; None if the file is too short."""
    text = file.text.replace("\r\n", "\n")
    at_start = rng.random() < FILE_START_SHARE
    at = 0 if at_start else rng.randrange(max(1, len(text) - MIN_TOKEN_CHARS * settings.tokens))
    begin = text.rfind("\n", 0, at) + 1
    path = path_block(file.path, file.language) if rng.random() < PATH_SHARE else ""
    shown = path + text[begin : begin + MAX_TOKEN_CHARS * settings.tokens]
    tokens = tuple(tokenizer.encode(shown)[: settings.tokens])
    possible = range(settings.min_prefix, len(tokens) - settings.slots)
    if len(possible) < settings.places:
        return None
    return Window(tokens, tuple(sorted(rng.sample(possible, settings.places))), rng.random())


@dataclass(frozen=True)
class WindowSteps(Dataset[list[Window]]):
    """Step number -> windows, at most one per file; the same seed and number give the same windows."""

    tokenizer: Tokenizer
    mixture: Mixture
    files: int
    settings: DraftingSettings
    seed: int

    def __getitem__(self, step: int) -> list[Window]:
        """Empty if all sampled files are too short."""
        rng = random.Random(f"{self.seed}/draft/{step}")
        found = [sample_window(self.tokenizer, self.mixture.sample(rng), self.settings, rng) for _ in range(self.files)]
        return [window for window in found if window is not None]


def held_out_windows(tokenizer: Tokenizer, folder: Path, settings: DraftingSettings, places: int) -> list[Window]:
    """Always the same windows, from the folder's files in turn, with about `places` places in total.

    Raises ModelCorrupt if no file is long enough.
    """
    rng, files, found = random.Random("held out"), source_files(folder), list[Window]()
    for turn in range(2 * max(1, places // settings.places)):
        for file in files:
            if len(found) * settings.places < places and (window := sample_window(tokenizer, file, settings, rng)):
                found.append(window)
        if turn == 0 and not found:
            raise ModelCorrupt(f"no source file in {folder} is long enough to measure drafts on; name another folder")
    return found


def source_files(folder: Path) -> list[SourceFile]:
    """The source files in a folder of packages, one of each package in turn."""
    packages: dict[str, list[SourceFile]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        content = path.read_bytes() if path.is_file() and "/" in name else b""
        language = filters.language_of(name, content) if content else None
        if language:
            package = name.partition("/")[0]
            packages.setdefault(package, []).append(SourceFile(name, package, language, content.decode()))
    return list(_in_turn(packages.values()))


def _in_turn(groups: Iterable[Sequence[SourceFile]]) -> Iterable[SourceFile]:
    """The first file of every group, then the second of each group that has one, and so on."""
    groups = list(groups)
    for number in range(max(map(len, groups), default=0)):
        yield from (group[number] for group in groups if number < len(group))
