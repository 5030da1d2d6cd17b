"""Paged memory for the cached keys and values of all layers.

Dimensions: L layers, N pages, H key heads, P tokens per page, D head width, T tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class PageRun:
    """Consecutive pages and the number of tokens in each."""

    pages: list[int]
    counts: list[int]


class PagePool:
    """Rotated keys and values [L,N,H,P,D] at a fixed address; page 0 is scrap and never handed out."""

    def __init__(
        self, layers: int, heads: int, width: int, pages: int, dtype: torch.dtype, device: torch.device, size: int = 64
    ) -> None:
        assert pages > 1
        assert size >= 16
        assert size & (size - 1) == 0
        shape = (layers, pages, heads, size, width)
        self.keys, self.values = (torch.zeros(shape, dtype=dtype, device=device) for _ in range(2))
        self.size = size
        self._free = list(range(pages - 1, 0, -1))

    @property
    def free(self) -> int:
        return len(self._free)

    def needed(self, tokens: int) -> int:
        """Number of pages that hold this many tokens."""
        return -(-tokens // self.size)

    def take(self, count: int) -> list[int]:
        """Numbers of pages that belong to the caller until given back; so many must be free."""
        assert count <= len(self._free)
        taken = self._free[len(self._free) - count :]
        del self._free[len(self._free) - count :]
        return taken

    def give(self, pages: list[int]) -> None:
        self._free += pages

    def put(self, pages: list[int], start: int, keys: Tensor, values: Tensor) -> None:
        """Write keys and values [L,H,T,D] into a run of pages, from its token `start` on."""
        at = torch.arange(start, start + keys.shape[2], device=self.keys.device)
        page, place = torch.tensor(pages, device=self.keys.device)[at // self.size], at % self.size
        for target, source in ((self.keys, keys), (self.values, values)):
            target[:, page, :, place] = source.permute(2, 0, 1, 3).to(target.dtype)

    def copy(self, source: list[int], target: list[int]) -> None:
        numbers = [torch.tensor(pages, device=self.keys.device) for pages in (source, target)]
        for each in (self.keys, self.values):
            each[:, numbers[1]] = each[:, numbers[0]]

    def counts(self, tokens: int) -> list[int]:
        """Number of tokens in each page of a run of `tokens`."""
        return [min(self.size, tokens - start) for start in range(0, tokens, self.size)]
