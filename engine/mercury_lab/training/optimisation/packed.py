"""Pack all canvases of a step, and their context, into one sequence each: for GPUs.

Only the ends of the sequences are padded. Context that gaps share is stored once: far sides with their near stacks, and
the suffix blocks after the head. Position frames are anchored so that shared keys have one position: in the prefix
frame the near stack starts at 0, in the suffix frame the head ends at -1.

Dimensions: P ranges, R rows, T tokens of a sequence, C width.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from mercury_engine.kv_cache.cache import TokenIds
from mercury_engine.models.decoder import PositionFrames, TorchDecoder
from mercury_engine.models.network import KeyValueBlock, KeyValueSegment
from torch import Tensor
from torch.nn import functional as F

from mercury_lab.training.examples.gaps import TrainingGap
from mercury_lab.training.optimisation.attention import TILE_SIZE, Ranges
from mercury_lab.training.optimisation.objective import Ints, Rows
from mercury_lab.training.optimisation.sharing import StepCost, leaders, stack, unique_blocks

KeySpan = tuple[int, int]


class Overflow(Exception):
    """A step needs longer sequences than its room allows."""


@dataclass(frozen=True, slots=True)
class Room:
    """Lengths of a step's sequences, equal in every step so that nothing is compiled twice; 0: as long as needed."""

    blocks: int = 0
    far: int = 0
    near: int = 0
    prefix: int = 0
    rows: int = 0
    suffix: int = 0

    def of(self, name: str, needed: int) -> int:
        """The padded length of a sequence."""
        room = getattr(self, name)
        if room and needed > room:
            raise Overflow(f"{name} has room for {room} tokens, the step needs {needed}")
        return room or _whole_tiles(needed)

    @classmethod
    def covering(cls, steps: Iterable["Room"], spare: float = 1.08) -> "Room":
        """Room for the largest of the steps, times `spare`."""
        sizes = [[getattr(step, name) for name in cls.__slots__] for step in steps]
        return cls(*(_whole_tiles(int(spare * max(column))) for column in zip(*sizes, strict=True)))


def _whole_tiles(size: int) -> int:
    return -(-max(size, 1) // TILE_SIZE) * TILE_SIZE


@dataclass(slots=True)
class _Axis:
    """The keys of a side under construction: the token that each is taken from, and its position."""

    source: list[Ints] = field(default_factory=list)
    position: list[Ints] = field(default_factory=list)
    size: int = 0

    def add(self, spans: Sequence[KeySpan], first: int) -> KeySpan:
        """Append the tokens `start` to `end` of every span, from position `first` on; returns their span here."""
        begin = self.size
        for start, end in spans:
            self.source.append(np.arange(start, end))
            self.position.append(np.arange(end - start) + first + self.size - begin)
            self.size += end - start
        return begin, self.size

    def keys(self, room: int) -> "_Keys":
        return _Keys(*(_filled(np.concatenate([*part, _NONE]), room) for part in (self.source, self.position)))


_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Keys:
    """Arrays [T]: the token that each key is taken from, and its position."""

    source: Ints
    position: Ints

    def side(self, network: TorchDecoder, read: KeyValueBlock) -> KeyValueSegment:
        """The side, gathered from one prefilled sequence."""
        device = read.keys.device
        source = torch.from_numpy(self.source).to(device)
        picked = KeyValueBlock(read.keys.index_select(3, source), read.values.index_select(3, source))
        return network.placed(picked, torch.from_numpy(self.position).to(device))


@dataclass(frozen=True, slots=True)
class _Sequence:
    """Padded rows to compute: ids [R], positions in both frames, the ranges of keys that they see [P,R], all keys."""

    ids: Ints
    near: Ints
    away: Ints | None
    low: Ints
    high: Ints
    keys: int

    @classmethod
    def of(
        cls,
        ids: Ints,
        frames: tuple[Ints, Ints | None],
        ranges: Sequence[tuple[Ints, Ints]],
        own: int,
        keys: int,
        room: int,
    ) -> "_Sequence":
        """The rows padded to `room`; padding sees only itself, and row 0 is key `own`."""
        near, away = frames
        rest = np.arange(len(ids), room) + own
        low = [np.concatenate((first, rest)) for first, _ in ranges]
        high = [np.concatenate((last, rest + (number == 0))) for number, (_, last) in enumerate(ranges)]
        away = None if away is None else _filled(away, room)
        return cls(_filled(ids, room), _filled(near, room), away, np.stack(low), np.stack(high), keys)

    def frames(self, network: TorchDecoder) -> PositionFrames:
        device = network.device
        near, away = (None if p is None else torch.from_numpy(p)[None, None, None] for p in (self.near, self.away))
        assert near is not None
        low, high = (torch.from_numpy(r).to(device, torch.int32) for r in (self.low, self.high))
        angles = network.angles(near.to(device)), None if away is None else network.angles(away.to(device))
        return PositionFrames(*angles, None, Ranges.of(low, high, self.keys).attend)


class Packed:
    """Gaps and the rows of their canvases, laid out once and computed with a few large operations."""

    def __init__(self, gaps: Sequence[TrainingGap], rows: Rows, start_id: int, room: Room | None = None) -> None:
        """Raises Overflow if the room is too small."""
        self.rows, self.work = rows, StepCost.of(gaps, rows)
        self._room, self._used = room or Room(), dict.fromkeys(Room.__slots__, 0)
        at = self._lay_blocks(gaps, start_id)
        prefixes = self._lay_near(gaps, at)
        self._lay_rows(gaps, at, prefixes)

    @property
    def room(self) -> Room:
        """The lengths of the sequences."""
        return Room(**self._used)

    def _take(self, name: str, needed: int) -> int:
        self._used[name] = self._room.of(name, needed)
        return self._used[name]

    def _lay_blocks(self, gaps: Sequence[TrainingGap], start_id: int) -> dict[TokenIds, KeySpan]:
        """Lay out the start token alone, and every block after a start token; returns each block's span."""
        at: dict[TokenIds, KeySpan] = {(): (0, 1)}
        parts: list[TokenIds] = [(start_id,)]
        size = 1
        for block in unique_blocks(gaps):
            at[block] = size + 1, size + 1 + len(block)
            parts.append((start_id, *block))
            size += 1 + len(block)
        ids = np.array([token for part in parts for token in part])
        first = np.repeat(np.cumsum([0, *map(len, parts[:-1])]), [len(part) for part in parts])
        room, place = self._take("blocks", size), np.arange(size)
        self._blocks = _Sequence.of(ids, (place - first, None), [(first, place + 1)], 0, room, room)
        return at

    def _lay_near(self, gaps: Sequence[TrainingGap], at: dict[TokenIds, KeySpan]) -> list[KeySpan]:
        """Lay out near stacks after their far sides; returns for every gap the span of both in the prefix."""
        far, prefix = _Axis(), _Axis()
        leader = leaders(gaps)
        sides = {i: [at[()], *(at[b] for b in gaps[i].far if b)] for i in set(leader)}
        behind: dict[tuple[TokenIds, ...], KeySpan] = {}
        begin: dict[int, int] = {}
        ids: list[int] = []
        of: list[int] = []
        for i in sorted(sides):
            if (blocks := tuple(gaps[i].far)) not in behind:
                behind[blocks] = far.add(sides[i], -_size(sides[i]))
            begin[i] = len(ids)
            ids += stack(gaps[i])
            of += [i] * len(stack(gaps[i]))
        keys, room = self._take("far", far.size), self._take("near", len(ids))
        self._far = far.keys(keys)
        place, first = np.arange(len(ids)), np.array([begin[i] for i in of], np.int64)
        seen = np.array([behind[tuple(gaps[i].far)] for i in of], np.int64).reshape(-1, 2)
        ranges = [(first + keys, place + keys + 1), (seen[:, 0], seen[:, 1])]
        self._near = _Sequence.of(np.array(ids, np.int64), (place - first, None), ranges, keys, keys + room, room)
        base = self._used["blocks"]
        start = {
            i: prefix.add([*side, (base + begin[i], base + begin[i] + len(stack(gaps[i])))], -_size(side))[0]
            for i, side in sides.items()
        }
        self._prefix = prefix.keys(self._take("prefix", prefix.size))
        return [(start[i], start[i] + _size(sides[i]) + len(stack(gap))) for i, gap in zip(leader, gaps, strict=True)]

    def _lay_rows(self, gaps: Sequence[TrainingGap], at: dict[TokenIds, KeySpan], prefixes: list[KeySpan]) -> None:
        """Lay out the canvases: a row sees its canvas, the prefix, the suffix's head and the blocks after that."""
        rows, suffix = self.rows, _Axis()
        heads, behind = [], []
        shared: dict[tuple[TokenIds, ...], KeySpan] = {}
        for gap in gaps:
            head, *others = [block for block in gap.suffix if block] or [()]
            heads.append(suffix.add([at[head]], -_size([at[head]])))
            if tuple(others) not in shared:
                shared[tuple(others)] = suffix.add([at[block] for block in others], 0)
            behind.append(shared[tuple(others)])
        before, room = self._used["prefix"], self._take("rows", len(rows.ids))
        keys = before + room + self._take("suffix", suffix.size)
        self._suffix = suffix.keys(self._used["suffix"])
        own = np.arange(len(rows.ids)) - rows.place + before
        sides = [np.array(prefixes), np.array(heads) + before + room, np.array(behind) + before + room]
        ranges = [(own, own + rows.length), *((side[rows.gap, 0], side[rows.gap, 1]) for side in sides)]
        ends = np.array([len(gap.near) - 1 for gap in gaps])
        head_sizes = np.array([end - start for start, end in heads])
        frames = ends[rows.gap] + rows.place, rows.place - rows.length - head_sizes[rows.gap]
        self._rows = _Sequence.of(rows.ids, frames, ranges, before, keys, room)

    @torch.no_grad()
    def read(self, network: TorchDecoder) -> tuple[KeyValueSegment, KeyValueSegment]:
        """Prefix and suffix sides of all gaps."""
        blocks = _read(network, self._blocks, [])
        near = _read(network, self._near, [self._far.side(network, blocks)])
        both = KeyValueBlock(torch.cat((blocks.keys, near.keys), 3), torch.cat((blocks.values, near.values), 3))
        return self._prefix.side(network, both), self._suffix.side(network, blocks)

    def write(self, network: TorchDecoder, context: tuple[KeyValueSegment, KeyValueSegment], ids_R: Tensor) -> Tensor:
        """Hidden states [R,C] of the rows."""
        prefix, suffix = context
        ids = F.pad(ids_R, (0, self._used["rows"] - len(ids_R)))[None]
        hidden, _ = network.run(network.embed(ids), self._rows.frames(network), [prefix], [suffix], adapted=True)
        return hidden[0, : len(ids_R)]


def _read(network: TorchDecoder, sequence: _Sequence, past: list[KeyValueSegment]) -> KeyValueBlock:
    ids = torch.from_numpy(sequence.ids).to(network.device)
    x = network.embed(ids)[None]
    block = network.run(x, sequence.frames(network), past, (), adapted=False)[1]
    assert block is not None
    return block


def _filled(values: Ints, room: int) -> Ints:
    return np.concatenate((values, np.zeros(room - len(values), np.int64)))


def _size(spans: Sequence[KeySpan]) -> int:
    return sum(end - start for start, end in spans)
