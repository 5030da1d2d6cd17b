"""Inputs and outputs of captured work, at fixed addresses; a CUDA graph replays addresses.

Dimensions: B requests, R canvas rows, M = B*R, W table columns.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mercury_kernels.operands import Slots, Table


@dataclass(frozen=True, slots=True)
class Bucket:
    """A fixed shape: canvas rows, table columns, requests."""

    rows: int
    columns: int
    batch: int


class Buffers:
    """Everything that a chunk reads and writes, as one block of int32 that is copied at once."""

    def __init__(self, bucket: Bucket, device: torch.device) -> None:
        b, r, w = bucket.batch, bucket.rows, bucket.columns
        shapes = {"ids": (b, r), "chance": (b, r), "open": (b,), "steps": (b,)}
        back = sum(_aligned(shape) for shape in shapes.values())
        shapes |= {"rows": (b,), "bound": (b,), "most": (b,), "near": (b, r), "away": (b, r), "places": (b, r)}
        shapes |= {"ban": (b, r), "pages": (b, w), "counts": (b, w), "ends": (b, 2)}
        total = sum(_aligned(shape) for shape in shapes.values())
        self._block = torch.zeros(total, dtype=torch.int32, device=device)
        same = device.type == "cpu"
        self._host = self._block if same else torch.zeros(total, dtype=torch.int32, pin_memory=True)
        self._back = (self._host[:back], self._block[:back])
        self.host = {name: view.numpy() for name, view in _views(self._host, shapes).items()}
        d = _views(self._block, shapes)
        self.slots = Slots(d["ids"], d["rows"], d["bound"], d["most"], d["chance"], d["open"], d["steps"])
        self.near, self.away, self.places, self.ban = (d[n].view(-1) for n in ("near", "away", "places", "ban"))
        self.table = Table(d["pages"], d["counts"], d["ends"])

    def send(self) -> None:
        """Copy everything to the device."""
        if self._host is not self._block:
            self._block.copy_(self._host, non_blocking=True)

    def fetch(self) -> None:
        """Start copying ids, chances, open slots and steps back; they are valid after the stream is synchronised."""
        if self._host is not self._block:
            self._back[0].copy_(self._back[1], non_blocking=True)


def _aligned(shape: tuple[int, ...]) -> int:
    """Number of elements of a field, rounded up so that every field starts at a multiple of 16 bytes."""
    return -(-int(np.prod(shape)) // 4) * 4


def _views(block: Tensor, shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    views, start = {}, 0
    for name, shape in shapes.items():
        view = block[start : start + int(np.prod(shape))].view(shape)
        views[name] = view.view(torch.float32) if name in ("chance", "bound") else view
        start += _aligned(shape)
    return views
