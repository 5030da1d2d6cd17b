"""Inputs and outputs of captured work, at fixed addresses; a CUDA graph replays addresses.

Dimensions: B requests, R rows, M = B*R, W table columns.
"""

from collections.abc import Collection
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from mercury_kernels.operands import Drafts, Table

Shapes = dict[str, tuple[int, ...]]

MOST_PAIRS = 256
"""Tokens with a share in unread text that the rows of a request may have together."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A fixed shape: rows, table columns, requests."""

    rows: int
    columns: int
    batch: int


class Block:
    """Fields at fixed addresses, in one block of int32 that is copied at once; those of `back` return to the host."""

    def __init__(self, back: Shapes, more: Shapes, reals: Collection[str], device: torch.device) -> None:
        """`reals` are the names of the fields of float32."""
        shapes = back | more
        self._back_size = sum(map(_aligned, back.values()))
        total = sum(map(_aligned, shapes.values()))
        self._block = torch.zeros(total, dtype=torch.int32, device=device)
        same = device.type == "cpu"
        self._host = self._block if same else torch.zeros(total, dtype=torch.int32, pin_memory=True)
        self._given = self._host.numpy()[self._back_size :]
        self.host = {name: view.numpy() for name, view in _views(self._host, shapes, reals).items()}
        self.fields = _views(self._block, shapes, reals)

    def send(self) -> None:
        """Copy everything to the device."""
        if self._host is not self._block:
            self._block.copy_(self._host, non_blocking=True)

    def clear(self) -> None:
        """Set all but the fields of `back` to zero."""
        self._given.fill(0)

    def fetch(self) -> None:
        """Start copying the fields of `back` to the host; they are valid after the stream is synchronised."""
        if self._host is not self._block:
            self._host[: self._back_size].copy_(self._block[: self._back_size], non_blocking=True)


class RowBuffers(Block):
    """Everything that a pass over rows of drafts reads and writes."""

    def __init__(self, bucket: Bucket, device: torch.device) -> None:
        b, r, w = bucket.batch, bucket.rows, bucket.columns
        each = b, r
        back: Shapes = {"token": each, "probability": each, "accepted": (b,)}
        more: Shapes = dict.fromkeys(("ids", "positions", "slots", "limits"), each) | {"own": (b,)}
        more |= {"pages": (b, w), "counts": (b, w), "ends": (b,), "first": (b,)}
        more |= dict.fromkeys(("draft", "ban", "stop", "share", "pair_first", "pair_last"), each)
        more |= {"pair_token": (b * MOST_PAIRS,), "pair_share": (b * MOST_PAIRS,)}
        super().__init__(back, more, ("probability", "share", "pair_share"), device)
        d = self.fields
        self.ids, self.positions, self.slots = (d[name].view(-1) for name in ("ids", "positions", "slots"))
        self.table = Table(d["pages"], d["counts"], d["ends"], d["own"], d["limits"].view(-1))
        self.drafts = Drafts(*(d[field.name] for field in fields(Drafts)))


def _aligned(shape: tuple[int, ...]) -> int:
    """Number of elements of a field, rounded up so that every field starts at a multiple of 16 bytes."""
    return -(-int(np.prod(shape)) // 4) * 4


def _views(block: Tensor, shapes: Shapes, reals: Collection[str]) -> dict[str, Tensor]:
    views, start = {}, 0
    for name, shape in shapes.items():
        view = block[start : start + int(np.prod(shape))].view(shape)
        views[name] = view.view(torch.float32) if name in reals else view
        start += _aligned(shape)
    return views
