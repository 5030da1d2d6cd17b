"""The C library as a class: it takes the weights, then runs each pass in one call.

Dimensions: R rows, C width, L layers, H key heads, G query heads per key head, D head width, T tokens.
"""

import weakref
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mercury_kernels.cpu.blocks import GROUP, BlockMatrix, Floats, form_of, head_form_of
from mercury_kernels.cpu.library import library as suitable_library

FLOAT = 4
"""Bytes of a scale, or of a large dimension, behind a stored key or value."""

WHOLE_MODEL = -1

StoredArray = NDArray[Any]
"""Keys or values: uint16, the bits of bfloat16, as a pass returns them, or int8 as `keep` and `place` store them."""

ALL_ROWS, WRITER_ROWS, FIRST_ADAPTER = 0, 1, 2
"""Pieces of a matrix: the low-rank products that are added for all rows, for the writer's, and with an adapter."""

MAX_ADAPTERS = 2
"""Adapters that a model may have at once."""

CANDIDATES = 64
"""Most likely tokens that `Layers.answers` finds for a row."""

MatrixName = Literal["qkv", "out", "gate_up", "down", "head"]

MATRICES: tuple[MatrixName, ...] = ("qkv", "out", "gate_up", "down")

VectorName = Literal["attention_norm", "feed_norm", "query_norm", "key_norm", "bias", "last_norm"]

VECTORS: tuple[VectorName, ...] = get_args(VectorName)

KeysValues = tuple[StoredArray, StoredArray]
"""Stored keys and values, from `keep` or `place`."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a pass that see each other and their own sides, before and after their gap.

    `mask_RR` is added to the rows' scores for each other.
    """

    rows: int
    before: Sequence[KeysValues]
    after: Sequence[KeysValues] = ()
    mask_RR: Floats | None = None


class Layers:
    """All layers of a decoder. Not thread-safe.

    Raises OSError if no build of the library suits the processor, ValueError for a shape that it cannot run.
    """

    def __init__(
        self,
        layers: int,
        width: int,
        inner: int,
        heads: int,
        groups: int,
        head_width: int,
        eps: float,
        threads: int,
        *,
        wide: int = 0,
        factors: tuple[float, float, float] | None = None,
        library: Any = None,
    ) -> None:
        """Layers without weights.

        `wide` is the number of large dimensions in the keys of every head, a multiple of 16, see `put_large`. `factors`
        are those of attention scores, of what a layer adds to its rows, and of logits; by default D ** -0.5, 1 and 1.
        `library` is a result of `library.load`; by default, the best one for the processor.
        """
        self._library = library or suitable_library()
        lanes: int = self._library.mercury_lanes()
        if width % GROUP or inner % GROUP or (heads * groups * head_width) % GROUP or head_width % (4 * lanes):
            raise ValueError(
                f"the kernels cannot run width {width}, feed-forward width {inner} and head width {head_width}"
            )
        assert wide % lanes == 0 and wide <= head_width
        self.layers, self.width, self.heads, self.head_width, self.wide = layers, width, heads, head_width, wide
        self.threads = threads
        self.stored_widths = head_width + FLOAT * (1 + wide), head_width + FLOAT
        """Bytes of a stored key and of a stored value."""
        self.outputs = 0
        asked, kept = heads * groups * head_width, heads * head_width
        self.shapes: dict[MatrixName, tuple[int, int]] = {
            "qkv": (asked + 2 * kept, width),
            "out": (width, asked),
            "gate_up": (2 * inner, width),
            "down": (width, inner),
        }
        """Number of outputs and inputs of each of a layer's matrices."""
        sizes = layers, width, inner, heads, groups, head_width, wide
        self._handle = self._library.mercury_new(*sizes, eps, *(factors or (head_width**-0.5, 1, 1)), threads)
        if not self._handle:
            raise MemoryError("no memory or no threads for the model")
        # not at the interpreter's exit, when a thread may still be running; the system frees the memory then
        weakref.finalize(self, self._library.mercury_free, self._handle).atexit = False

    def put_matrix(self, layer: int, which: MatrixName, parts: Sequence[BlockMatrix], *, split: bool = False) -> None:
        """Set a matrix, given as its parts in the order of outputs.

        With `split`, a head of one part computes logits from the high 4 bits of 8-bit codes alone where they are far
        below the largest.

        Raises ValueError for another shape than the layers', and for values or scales that are not finite in float16.
        """
        outputs = sum(part.outputs for part in parts)
        shape = outputs, parts[0].inputs
        wanted = self.shapes.get(which, (outputs, self.width))
        if shape != wanted:
            raise ValueError(f"{which} has shape {list(shape)}, the layers take {list(wanted)}")
        place = (self._handle, WHOLE_MODEL, 0) if which == "head" else (self._handle, layer, MATRICES.index(which))
        form = head_form_of(parts[0].type) if split else form_of([part.type for part in parts])
        self._made(self._library.mercury_matrix(*place, *shape, form))
        first = 0
        for part in parts:
            assert part.rows.strides[1] == 1
            given = part.type.number, part.rows.strides[0], _address(part.rows)
            laid = self._library.mercury_blocks(*place, first, part.outputs, *given)
            assert laid, f"the kernels lay out no {part.type.name} in this form"
            if laid < 0:
                raise ValueError(f"the kernels take no values of {which} that are not finite in float16")
            first += part.outputs
        if which == "head":
            self.outputs = outputs

    def put_vector(self, layer: int, which: VectorName, values: Floats) -> None:
        """Set a norm [C], a norm of queries or keys [D] before their rotation, or the bias [out] of "qkv"."""
        sizes = {"query_norm": self.head_width, "key_norm": self.head_width, "bias": self.shapes["qkv"][0]}
        assert values.shape == (sizes.get(which, self.width),)
        given = _floats(values)
        self._made(self._library.mercury_vector(self._handle, layer, VECTORS.index(which), _address(given)))

    def put_large(self, layer: int, dimensions_HW: NDArray[np.int32]) -> None:
        """Set the dimensions of each head's keys that are too large to share eight bits with the others.

        They come in pairs that rotate together, d and d + D / 2, and are stored and multiplied in float32.
        """
        chosen = np.ascontiguousarray(dimensions_HW, np.int32)
        assert chosen.shape == (self.heads, self.wide)
        self._made(self._library.mercury_large(self._handle, layer, _address(chosen)))

    def put_low_rank(self, layer: int, which: MatrixName, down: Floats, up: Floats, piece: int) -> None:
        """Add a low-rank product to a matrix: down [N,in], up [out,N]; the kernels round them to bfloat16.

        Piece ALL_ROWS is for all rows, WRITER_ROWS for the writer's, and FIRST_ADAPTER + n for the passes of adapter n.
        """
        assert 0 <= piece < FIRST_ADAPTER + MAX_ADAPTERS
        both = _floats(down), _floats(up)
        place = self._handle, layer, MATRICES.index(which)
        self._made(self._library.mercury_low_rank(*place, piece, len(down), *map(_address, both)))

    def run(
        self,
        x_RC: Floats,
        near: tuple[Floats, Floats],
        away: tuple[Floats, Floats] | None,
        parts: Sequence[Part],
        adapter: int | None = None,
    ) -> tuple[Floats, StoredArray, StoredArray]:
        """A pass in one piece, see `run_in_parts`."""
        steps = self.run_in_parts(x_RC, near, away, parts, adapter, self.layers)
        try:
            next(steps)
        except StopIteration as end:
            result: tuple[Floats, StoredArray, StoredArray] = end.value
            return result
        raise AssertionError("all layers at once do not pause")

    def run_in_parts(
        self,
        x_RC: Floats,
        near: tuple[Floats, Floats],
        away: tuple[Floats, Floats] | None,
        parts: Sequence[Part],
        adapter: int | None,
        at_once: int,
    ) -> Generator[None, None, tuple[Floats, StoredArray, StoredArray]]:
        """Rows float32 [R,C] after all layers and the last norm, and their unrotated keys and values.

        Keys (without their bias) and values are the bits of bfloat16 [L,1,H,R,D]. The parts' rows follow one another;
        a part's result does not depend on the other parts. A reader's row has the same result, to the bit, whether the
        rows before it are in its part or were placed as a side behind the others. Angles are cosines and sines float32
        [R,D] in the prefix frame (`near`) and in the suffix frame (`away`). With `away` the pass is the writer's,
        without it the reader's. `adapter` is the number of the adapter that changes the rows. The pass pauses after
        every `at_once` layers; other passes may run meanwhile.
        """
        assert len(x_RC) == sum(part.rows for part in parts)
        assert away is not None or not any(part.after for part in parts), (
            "only the writer's rows see the text behind the gap"
        )
        shape = self.layers, 1, self.heads, len(x_RC), self.head_width
        out, keys, values = np.array(x_RC, np.float32, order="C"), *(np.empty(shape, np.uint16) for _ in range(2))
        angles = [_floats(angle) for frame in (near, away) if frame is not None for angle in frame]
        pointers = [*map(_address, angles)] + [None] * (4 - len(angles))
        kept: list[Any] = []
        asked = np.array([self._part(part, kept) for part in parts], np.int64)
        chosen = -1 if adapter is None else adapter
        given = _address(out), *pointers, chosen, _address(asked), len(parts), _address(keys), _address(values)
        for first in range(0, self.layers, at_once):
            if first:
                yield
            self._made(self._library.mercury_run(self._handle, *given, first, min(first + at_once, self.layers)))
        return out, keys, values

    def keep(self, keys: StoredArray, values: StoredArray) -> KeysValues:
        """Unrotated keys and values [L,1,H,T,D] of a pass in their smallest form, to be placed later.

        The result is int8 [L,1,H,T,bytes], see `stored_widths`. Any run of its tokens may be placed.
        """
        shape = keys.shape[3], self.head_width
        return self.place([(keys, values)], (np.ones(shape, np.float32), np.zeros(shape, np.float32)))

    def place(self, blocks: Sequence[KeysValues], angles: tuple[Floats, Floats]) -> KeysValues:
        """Join blocks of unrotated keys and values into a side whose tokens are rotated by the angles [T,D].

        The blocks are all from `run`, [L,1,H,T,D], or all from `keep`. A side is int8 [L,1,H,T,bytes], see
        `stored_widths`, and any run of its tokens is a side too.
        """
        dtype = blocks[0][0].dtype
        assert dtype in (np.uint16, np.int8) and all(each.dtype == dtype for block in blocks for each in block)
        kept = dtype == np.int8
        widths = self.stored_widths if kept else (self.head_width, self.head_width)
        assert all((keys.shape[4], values.shape[4]) == widths for keys, values in blocks)
        lying = [(_in_rows(keys), _in_rows(values)) for keys, values in blocks]
        sides = np.array([_side(*block, 0) for block in lying], np.int64)
        cos, sin = (_floats(angle) for angle in angles)
        assert len(cos) == sum(keys.shape[3] for keys, _ in blocks)
        shape = self.layers, 1, self.heads, len(cos)
        kept_keys, kept_values = (np.empty((*shape, width), np.int8) for width in self.stored_widths)
        pointers = [_address(each) for each in (cos, sin, kept_keys, kept_values)]
        self._library.mercury_place(self._handle, _address(sides), len(sides), int(kept), *pointers)
        return kept_keys, kept_values

    def head(self, x_RC: Floats, out: Floats | None = None) -> Floats:
        """Logits float32 [R,outputs] of rows [R,C]; the first columns of `out`, float32 [R,more], if it is given."""
        rows = _floats(x_RC)
        if out is None:
            out = np.empty((len(rows), self.outputs), np.float32)
        assert out.flags.c_contiguous and out.dtype == np.float32
        assert len(out) == len(rows) and out.shape[1] >= self.outputs
        self._made(self._library.mercury_head(self._handle, len(rows), _address(rows), _address(out), out.shape[1]))
        return out

    def answers(
        self,
        logits_WV: Floats,
        banned_N: NDArray[np.uint32],
        list_W: NDArray[np.int32],
        asked_A: NDArray[np.int32],
        draws: bool,
    ) -> tuple[NDArray[Any], ...]:
        """What is asked of every row, in one pass over the logits.

        banned_N: bit lists uint32 [N, ceil(V / 32)]; list_W: the list of each row, or -1. asked_A: tokens whose logits
        are told. Returns the most likely allowed token int32 [W]; float32 [W] its logit, the log-sums of the allowed
        and of all logits, and the entropy in nats; with `draws` the `CANDIDATES` most likely tokens [W,K] and their
        logits, else [W,0]; and the logits asked for [W,A].
        """
        rows, tokens = logits_WV.shape
        assert logits_WV.flags.c_contiguous and banned_N.flags.c_contiguous and len(list_W) == rows
        assert banned_N.dtype == np.uint32 and list_W.dtype == asked_A.dtype == np.int32
        assert not len(banned_N) or banned_N.shape[1] == -(-tokens // 32)
        assert int(list_W.max(initial=-1)) < len(banned_N) and int(asked_A.max(initial=0)) < tokens
        width = CANDIDATES if draws else 0
        token_W, candidate_WK = np.empty(rows, np.int32), np.empty((rows, width), np.int32)
        figures_W4, logit_WK, asked_WA = (np.empty((rows, n), np.float32) for n in (4, width, len(asked_A)))
        drawn = (candidate_WK, logit_WK) if draws else (None, None)
        places = banned_N, list_W, asked_A, token_W, figures_W4, *drawn, asked_WA
        pointers = [None if each is None else _address(each) for each in places]
        self._library.mercury_answers(self._handle, _address(logits_WV), rows, tokens, len(asked_A), *pointers)
        return token_W, *figures_W4.T, candidate_WK, logit_WK, asked_WA

    def _part(self, part: Part, kept: list[Any]) -> tuple[int, int, int, int]:
        """The C struct; it points into objects added to `kept`, which must outlive the call."""
        both = ((part.before, 0), (part.after, 1))
        sides = [(_in_rows(k), _in_rows(v), behind) for of, behind in both for k, v in of if k.shape[3]]
        assert all(keys.dtype == values.dtype == np.int8 for keys, values, _ in sides)
        assert all((keys.shape[4], values.shape[4]) == self.stored_widths for keys, values, _ in sides)
        array = np.array([_side(*side) for side in sides], np.int64)
        mask = None if part.mask_RR is None else _floats(part.mask_RR)
        kept += [sides, array, mask]
        return _address(array), 0 if mask is None else _address(mask), part.rows, len(sides)

    def _made(self, worked: int) -> None:
        if not worked:
            raise MemoryError("no memory for the model")


def _side(keys: StoredArray, values: StoredArray, behind: int) -> tuple[int, ...]:
    """The C struct: the places of keys and values and their strides by layer and head, the tokens, which frame."""
    places = ((_address(each), each.strides[0], each.strides[2]) for each in (keys, values))
    return *next(places), *next(places), keys.shape[3], behind


def _in_rows(of: StoredArray) -> StoredArray:
    """Keys or values with the tokens of each layer and head contiguous; copied only if need be."""
    size = of.itemsize
    return of if of.strides[3:] == (of.shape[4] * size, size) else np.ascontiguousarray(of)


def _floats(values: NDArray[Any]) -> Floats:
    return np.ascontiguousarray(values, np.float32)


def _address(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)
