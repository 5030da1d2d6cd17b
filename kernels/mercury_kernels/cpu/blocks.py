"""GGUF's blocks of quantised weights: their types, their values, and the form in which the kernels lay them out.

The formulas are those of dequantize_row_* in ggml-quants.c (github.com/ggml-org/ggml).

Dimensions: N rows, B blocks in a row, G groups of 32 in a block, and 32 weights in a group.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

GROUP = 32
"""Number of inputs that share a scale."""

_CENTRED = 16
"""Added to a form's number of bits: the weights have a scale, and no low end. See `linear.h`."""

_PLAIN8 = 8
"""The form that takes every type."""

_SPLIT8 = _CENTRED + 4
"""The form of a head of 8-bit codes whose low bits are read where they matter."""

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class BlockType:
    """A type of blocks, by its name and number in GGUF."""

    name: str
    number: int
    weights: int
    """Weights in a block."""
    size: int
    """Bytes of a block."""
    form: int
    """The kernels' form with the fewest bits that holds the weights."""
    read: Callable[[Bytes], Floats]
    """Bytes [N,B,size] to values [N,B,weights]."""


@dataclass(frozen=True, slots=True)
class BlockMatrix:
    """A matrix [outputs,inputs] as blocks; its bytes [outputs,bytes of a row] may be a mapped file's."""

    type: BlockType
    rows: Bytes

    @property
    def outputs(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def inputs(self) -> int:
        """Number of columns."""
        return self.rows.shape[1] // self.type.size * self.type.weights

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs and inputs."""
        return self.outputs, self.inputs

    @classmethod
    def of_floats(cls, values: Floats) -> "BlockMatrix":
        """A matrix of float32 values [outputs,inputs]."""
        return cls(F32, np.ascontiguousarray(values, np.float32).view(np.uint8))

    def __getitem__(self, outputs: NDArray[np.int64]) -> "BlockMatrix":
        """Some of the rows, copied."""
        return BlockMatrix(self.type, self.rows[outputs])

    def floats(self) -> Floats:
        """The values [outputs,inputs]."""
        blocks = np.ascontiguousarray(self.rows).reshape(self.outputs, -1, self.type.size)
        return self.type.read(blocks).reshape(self.shape)


def form_of(types: Collection[BlockType]) -> int:
    """The form of a matrix whose parts have these types."""
    forms = {type.form for type in types}
    if len(forms) == 1:
        return forms.pop()
    return _CENTRED + 8 if forms <= {_CENTRED + 5, _CENTRED + 8} else _PLAIN8


def head_form_of(type: BlockType) -> int:
    """The form of a head of this type: codes of more than 5 bits are split."""
    return _SPLIT8 if type.form in (_PLAIN8, _CENTRED + 6, _CENTRED + 8) else type.form


def _halves(blocks: Bytes, at: int) -> Floats:
    """The float16 at a place of each block: [N,B,1]."""
    return np.ascontiguousarray(blocks[..., at : at + 2]).view(np.float16).astype(np.float32)


def _nibbles(of: Bytes) -> Bytes:
    """The low 4 bits of all bytes, then the high ones."""
    return np.concatenate((of & 15, of >> 4), -1)


def _bits(of: Bytes) -> Bytes:
    """Each bit as a byte, the lowest of a byte first."""
    return np.unpackbits(of, axis=-1, bitorder="little")


def _q4_0(blocks: Bytes) -> Floats:
    return (_nibbles(blocks[..., 2:]) - np.float32(8)) * _halves(blocks, 0)


def _q4_1(blocks: Bytes) -> Floats:
    return _nibbles(blocks[..., 4:]) * _halves(blocks, 0) + _halves(blocks, 2)


def _q5_0(blocks: Bytes) -> Floats:
    codes = _nibbles(blocks[..., 6:]) | _bits(blocks[..., 2:6]) << 4
    return (codes - np.float32(16)) * _halves(blocks, 0)


def _q5_1(blocks: Bytes) -> Floats:
    codes = _nibbles(blocks[..., 8:]) | _bits(blocks[..., 4:8]) << 4
    return codes * _halves(blocks, 0) + _halves(blocks, 2)


def _q8_0(blocks: Bytes) -> Floats:
    return blocks[..., 2:].view(np.int8) * _halves(blocks, 0)


def _pairs_of_groups(of: Bytes) -> Bytes:
    """Codes [N,B,8,32] of bytes [N,B,128]: 32 bytes hold a group in their low 4 bits and the next in the others."""
    pairs = of.reshape(*of.shape[:2], 4, 1, GROUP)
    return np.concatenate((pairs & 15, pairs >> 4), 3).reshape(*of.shape[:2], 8, GROUP)


def _scaled(codes: NDArray[Any], blocks: Bytes) -> Floats:
    """Weights of Q4_K and Q5_K: the scales and low ends of the groups are products of a float16 and 6 bits."""
    first, second, third = (blocks[..., at : at + 4] for at in (4, 8, 12))
    scales = np.concatenate((first & 63, third & 15 | first >> 6 << 4), -1) * _halves(blocks, 0)
    lows = np.concatenate((second & 63, third >> 4 | second >> 6 << 4), -1) * _halves(blocks, 2)
    return codes * scales[..., None] - lows[..., None]


def _q4_k(blocks: Bytes) -> Floats:
    return _scaled(_pairs_of_groups(blocks[..., 16:]), blocks)


def _q5_k(blocks: Bytes) -> Floats:
    fifth = np.moveaxis(_bits(blocks[..., 16:48, None]), -1, 2)
    return _scaled(_pairs_of_groups(blocks[..., 48:]) | fifth << 4, blocks)


def _q6_k(blocks: Bytes) -> Floats:
    shape = *blocks.shape[:2], 2, 4, GROUP
    low = blocks[..., :128].reshape(*shape[:3], 2, GROUP)
    high = blocks[..., 128:192].reshape(*shape[:3], 1, GROUP) >> np.array([[0], [2], [4], [6]], np.uint8) & 3
    codes = np.concatenate((low & 15, low >> 4), 3) | high << 4
    scales = blocks[..., 192:208].view(np.int8) * _halves(blocks, 208)
    return (codes.reshape(*blocks.shape[:2], 16, 16) - np.float32(32)) * scales[..., None]


def rounded(values: Floats) -> NDArray[np.uint16]:
    """The bits of bfloat16 nearest to finite values; NumPy has no such type. Ties go to even bits."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def widened(bits: NDArray[np.uint16]) -> Floats:
    """The values in float32 of bfloat16, given as bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


F32 = BlockType("F32", 0, 1, 4, _PLAIN8, lambda blocks: blocks.view(np.float32).copy())
F16 = BlockType("F16", 1, 1, 2, _PLAIN8, lambda blocks: cast(Floats, blocks.view(np.float16).astype(np.float32)))
BF16 = BlockType("BF16", 30, 1, 2, _PLAIN8, lambda blocks: widened(blocks.view(np.uint16)))
Q4_1 = BlockType("Q4_1", 3, 32, 20, 4, _q4_1)
"""A scale and a low end in float16, then GROUP codes, see `_nibbles`."""
Q8_0 = BlockType("Q8_0", 8, 32, 34, _CENTRED + 8, _q8_0)
"""A scale in float16, then GROUP signed codes."""

TYPES = {
    made.number: made
    for made in (
        *(F32, F16, BF16, Q4_1, Q8_0),
        BlockType("Q4_0", 2, 32, 18, 4, _q4_0),
        BlockType("Q5_0", 6, 32, 22, _CENTRED + 5, _q5_0),
        BlockType("Q5_1", 7, 32, 24, 5, _q5_1),
        BlockType("Q4_K", 12, 256, 144, 4, _q4_k),
        BlockType("Q5_K", 13, 256, 176, 5, _q5_k),
        BlockType("Q6_K", 14, 256, 210, _CENTRED + 6, _q6_k),
    )
}
"""The types that can be loaded, by number."""
