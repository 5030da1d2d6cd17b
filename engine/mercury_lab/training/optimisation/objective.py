"""Corrupt a gap's canvases for the writer to learn: which slots are masked, which are wrong, and their weights.

Dimensions: R rows (of all canvases, one after the other), S slots of a canvas.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from mercury_engine.models.network import ModelConfig

from mercury_lab.training.examples.gaps import TrainingGap
from mercury_lab.training.examples.mixture import GapWindow

Ints = npt.NDArray[np.int64]

GUESSED_SHARE = 0.25
"""Share of masked slots that show the model's own guess in the last part of a run."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How canvases are corrupted."""

    full: float = 0.9
    """Share of gaps with a fully masked canvas, which is where fills of one to four steps happen."""
    complement: bool = False
    """Whether a fourth canvas masks the complement of the random one."""
    wrong: float = 0.12
    """Share of visible tokens that are replaced by wrong ones, with loss on them."""
    exact: float = 0.25
    """Share of gaps whose canvas is as long as the target, without a tail of end markers."""
    fade: float = 0.95
    """Factor on a masked slot's weight for every masked slot between it and the last visible one to its left."""
    keep: float = 0.15
    """Weight of visible tokens that are right, which the writer should keep."""


@dataclass(frozen=True, slots=True)
class TrainingCanvas:
    """One corrupted canvas of gap number `gap`: ids to feed, ids to predict, loss weight of every slot."""

    gap: int
    inputs: list[int]
    targets: list[int]
    weights: list[float]
    masked: list[bool]
    guessed: tuple[bool, ...] = ()
    """Masked slots that show the model's own guess in the last part of a run; empty: none."""


def corrupt(config: ModelConfig, window: GapWindow, rng: random.Random, noise: Noise) -> list[TrainingCanvas]:
    """For every gap, canvases of one length: settled from the left as in fills, masked at random, fully masked."""
    return [
        canvas
        for number, gap in enumerate(window.gaps)
        for canvas in _canvases(number, gap, window.slots, config, rng, noise)
    ]


def _canvases(
    number: int, gap: TrainingGap, slots: int, config: ModelConfig, rng: random.Random, noise: Noise
) -> list[TrainingCanvas]:
    tail = 0 if rng.random() < noise.exact else max(1, slots - len(gap.target))
    length = min(slots, len(gap.target) + tail)
    targets = (gap.target + [config.end_id] * tail)[:length]
    value = slot_values(targets, tail, config)
    rate = min(0.95, max(0.05, rng.gauss(0.5, 0.2)))
    settled = rng.randint(1, max(1, min(length, len(gap.target)) - 1))
    drawn = [rng.random() < rate for _ in targets]
    masks = [[slot >= settled for slot in range(length)], drawn]
    if noise.complement and any(drawn) and not all(drawn):
        masks.append([not masked for masked in drawn])
    found = [_canvas(number, gap, targets, value, masked, config, rng, noise) for masked in masks]
    if rng.random() < noise.full:
        found.append(masked_canvas(number, targets, value, [True] * length, config, noise))
    return [replace(c, guessed=tuple(h and rng.random() < GUESSED_SHARE for h in c.masked)) for c in found]


def slot_values(targets: list[int], tail: int, config: ModelConfig) -> list[float]:
    """Every slot's weight before fading: all end markers together weigh as much as one token."""
    return [1.0 if t != config.end_id else 1.0 / tail for t in targets]


def _canvas(
    number: int,
    gap: TrainingGap,
    targets: list[int],
    value: list[float],
    masked: list[bool],
    config: ModelConfig,
    rng: random.Random,
    noise: Noise,
) -> TrainingCanvas:
    """The canvas with some visible tokens replaced by tokens of the near prefix or of the whole vocabulary."""
    plain = masked_canvas(number, targets, value, masked, config, noise)
    inputs, weights = plain.inputs, plain.weights
    for slot, h in enumerate(masked):
        if not h and rng.random() < noise.wrong:
            near = rng.random() < 0.5
            wrong = rng.choice(gap.near) if near else rng.randrange(17, config.vocab_size)
            if wrong != targets[slot]:
                inputs[slot], weights[slot] = wrong, value[slot]
    return plain


def masked_canvas(
    number: int,
    targets: list[int],
    value: list[float],
    masked: list[bool],
    config: ModelConfig,
    noise: Noise,
) -> TrainingCanvas:
    """A canvas whose visible tokens are all right."""
    inputs = [config.mask_id if h else t for h, t in zip(masked, targets, strict=True)]
    weights, run = [], 0
    for h, v in zip(masked, value, strict=True):
        weights.append(v * noise.fade**run if h else v * noise.keep)
        run = run + 1 if h else 0
    return TrainingCanvas(number, inputs, list(targets), weights, list(masked))


@dataclass(frozen=True, slots=True)
class Rows:
    """All canvases as one list of rows, arrays [R]; row 0 of a canvas feeds the last token of the near prefix.

    A row's masked state predicts the slot of the next row; the last row of a canvas predicts none (weight 0).
    """

    ids: Ints
    gap: Ints
    canvas: Ints
    place: Ints
    """The row's index in its canvas."""
    length: Ints
    """Number of rows of its canvas."""
    target: Ints
    weight: npt.NDArray[np.float32]
    guess: npt.NDArray[np.bool_]
    """Whether, in the last part of a run, the row feeds the prediction of the row before it."""
    full: npt.NDArray[np.bool_]
    """Whether its canvas is fully masked."""

    @property
    def slots(self) -> int:
        """The number of canvas tokens, visible or masked."""
        return int((self.place > 0).sum())


def lay_rows(gaps: Sequence[TrainingGap], canvases: Sequence[TrainingCanvas]) -> Rows:
    """The rows of all canvases in order; the canvases of one gap must be adjacent."""
    columns: dict[str, list[int | float | bool]] = {name: [] for name in Rows.__slots__}
    for number, canvas in enumerate(canvases):
        slots = len(canvas.inputs)
        parts: dict[str, Sequence[int | float | bool]] = {
            "ids": [gaps[canvas.gap].near[-1], *canvas.inputs],
            "gap": [canvas.gap] * (slots + 1),
            "canvas": [number] * (slots + 1),
            "place": range(slots + 1),
            "length": [slots + 1] * (slots + 1),
            "target": [*canvas.targets, 0],
            "weight": [*canvas.weights, 0.0],
            "guess": [False, *(canvas.guessed or [False] * slots)],
            "full": [all(canvas.masked)] * (slots + 1),
        }
        for name, part in parts.items():
            columns[name].extend(part)
    kinds: dict[str, type] = {"weight": np.float32, "guess": np.bool_, "full": np.bool_}
    return Rows(**{name: np.array(column, kinds.get(name, np.int64)) for name, column in columns.items()})
