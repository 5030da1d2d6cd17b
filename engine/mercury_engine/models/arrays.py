"""Arithmetic on log-probabilities where they were computed: NumPy arrays on a CPU, torch tensors on a GPU.

Functions of `namespace(array)` are alike in NumPy and torch. Torch is imported for tensors only.

Dimensions: V vocabulary.
"""

import math
from collections.abc import Sequence, Sized
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = Any
"""A NumPy array, or a torch tensor on the device of its network."""

FloatArray = NDArray[np.float32]
IdArray = NDArray[np.int64]
MaskArray = NDArray[np.bool_]


def namespace(array: Array) -> ModuleType:
    """The module whose functions take this array."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def on_host(array: Array) -> NDArray[Any]:
    """The array as a NumPy array; waits for the device."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def beside(values: Any, array: Array) -> Array:
    """The values as an array on the device of `array`."""
    return (
        np.asarray(values) if isinstance(array, np.ndarray) else namespace(array).as_tensor(values, device=array.device)
    )


def log_softmax(logits: Array) -> Array:
    """Log-probabilities [...,V] of logits [...,V]; NaN where all of a row are -inf."""
    if not isinstance(logits, np.ndarray):
        return logits.log_softmax(-1)
    return log_softmax_in_place(np.array(logits))


def log_softmax_in_place(logits: NDArray[Any]) -> NDArray[Any]:
    """`log_softmax` of an array that nobody else needs.

    A row at a time: each large temporary array is mapped again, and the page faults took 3 ms for eight rows of a
    vocabulary of 151,936.
    """
    powers = np.empty(logits.shape[-1], logits.dtype)
    with np.errstate(invalid="ignore", divide="ignore"):
        for place in np.ndindex(logits.shape[:-1]):
            row = logits[place]
            row -= row.max()
            row -= np.log(np.exp(row, out=powers).sum())
    return logits


def logsumexp(values_V: Array) -> float:
    """Logarithm of the sum of the exponentials; -inf for no values."""
    if not len(values_V):
        return -math.inf
    if not isinstance(values_V, np.ndarray):
        return float(values_V.logsumexp(0))
    top = float(values_V.max())
    return top if math.isinf(top) else top + math.log(float(np.exp(values_V - top).sum()))


def best(values_V: Array, rank: int = 0) -> int:
    """The index of the largest value, or of the one with this many larger ones."""
    for _ in range(rank):
        values_V = replaced(values_V, [int(values_V.argmax())], -math.inf)
    return int(values_V.argmax())


def replaced(values_V: Array, indices: Sequence[int] | IdArray, value: float) -> Array:
    """A copy with one value at the indices."""
    copy = values_V.copy() if isinstance(values_V, np.ndarray) else values_V.clone()
    copy[beside(indices, copy)] = value
    return copy


def masked(values: Array, hidden: MaskArray) -> Array:
    """A copy with -inf where `hidden`, which is broadcast."""
    return namespace(values).where(beside(hidden, values), -math.inf, values)


def rows_at(array: Array, numbers: Sequence[int]) -> Array:
    """Rows of an array by their numbers; adjacent ones are a view, for which nothing is sent to a GPU."""
    first, count = (numbers[0] if len(numbers) else 0), len(numbers)
    if [*numbers] == [*range(first, first + count)]:
        return array[first : first + count]
    return array[beside([*numbers], array)]


def joined(parts: Sequence[Array]) -> Array:
    """The arrays one after another along their first dimension."""
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concatenate(parts)


def parted(array: Array, lengths_of: Sequence[Sized]) -> list[Array]:
    """The array in consecutive parts along its first dimension, as long as the given objects."""
    ends = [*accumulate(map(len, lengths_of), initial=0)]
    return [array[start:end] for start, end in pairwise(ends)]
