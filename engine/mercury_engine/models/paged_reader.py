"""The reader on a GPU: contexts lie in pages, and one captured pass reads rows of several requests and decides them.

A pass takes up to 16 rows of a request: unread tokens, accepted ones and a draft. It writes their keys and values
after the near stack, so nothing is joined or copied, and returns the tokens up to the first wrong draft. Longer runs
are read by passes of more rows, which decide nothing. `prepare` captures all graphs; on a CPU there are none.

Dimensions as in `network.py`.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch
from mercury_kernels import ops
from mercury_kernels.buffers import MOST_PAIRS, Bucket, RowBuffers
from mercury_kernels.capture import Captures
from mercury_kernels.ops import RowPositions
from mercury_kernels.pages import PagePool, PageRun

from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import KeyValueBlock
from mercury_engine.models.paged_rows import Decided, PagedRows
from mercury_engine.models.token_masks import TokenMasks
from mercury_engine.models.triton import TritonWeights, forward

ROWS = 16
"""Most rows of a request in a pass that decides; fewer take as long, for it is the smallest tile of a product."""

PREFILL_ROWS = (64, 128, 256)
"""Rows of the passes that only read."""

PAGE_BUCKETS = (8, 16, 32, 64, 192)
"""Pages that a request may see; the most that `prompt.budget` allows take 140."""

BATCHES = (1, 4, 16)
"""Requests in a pass."""

PAGE_TOKENS = 64
"""Tokens in a page of keys and values."""

LISTS = 64
"""Lists of tokens on the device; a pass may use this many less one, which is empty."""

MEMORY_SHARE = 8
"""Pages take at most one part in so many of the memory that is free."""

LEAST_PAGES = 320
"""Pages for one request, which may hold on to two near stacks beside its own."""

MOST_PAGES = LEAST_PAGES * BATCHES[-1]
"""Pages for as many requests as share a pass."""


class PagedReader:
    """Reads rows for requests. One caller at a time.

    `pages` is the context memory in pages of `page_size` tokens; None: by the memory that is free.
    """

    def __init__(self, decoder: TorchDecoder, pages: int | None = None, page_size: int = PAGE_TOKENS) -> None:
        config, self.device, self._decoder = decoder.config, decoder.device, decoder
        self.weights = TritonWeights.of(decoder)
        heads, width, dtype = config.num_key_value_heads, config.head_dim, decoder.embedding.dtype
        size = 2 * config.num_hidden_layers * heads * page_size * width * dtype.itemsize
        count = pages or _affordable_pages(self.device, size)
        self.pool = PagePool(config.num_hidden_layers, heads, width, count, dtype, self.device, page_size)
        self.end_id, self.longest = config.end_id, PAGE_BUCKETS[-1] * page_size
        self._angles = ops.rotary_table(self.longest, width, config.rope_theta, self.device)
        self._lists = TokenMasks(config.vocab_size, self.device, LISTS)
        shapes = [Bucket(ROWS, columns, batch) for columns in PAGE_BUCKETS for batch in BATCHES]
        shapes += [Bucket(rows, columns, 1) for columns in PAGE_BUCKETS for rows in PREFILL_ROWS]
        self._shapes = shapes
        self.captures = Captures(self.device)
        self._buffers: dict[Bucket, RowBuffers] = {}

    @torch.inference_mode()
    def prepare(self) -> None:
        """Capture the passes of every shape, so that no request waits for one."""
        for shape in self._shapes:
            self._prepare(shape)

    @torch.inference_mode()
    def place(self, pages: list[int], blocks: Sequence[KeyValueBlock], start: int) -> PageRun:
        """Rotate adjacent blocks into the pages, the first token at position `start`."""
        done = 0
        for block in blocks:
            first = start + done
            rotated = self._decoder.rotated(block, first)
            self.pool.put(pages, done, rotated.keys[:, 0], rotated.values[:, 0])
            done += block.tokens
        return PageRun(pages, self.pool.counts(done))

    @torch.inference_mode()
    def read_rows(self, requests: Sequence[PagedRows]) -> list[Decided]:
        """See `RowReader.read_rows`; as many requests as possible share a pass."""
        found: dict[int, Decided] = {}
        for group in _groups(requests):
            found |= zip(group, self._pass([requests[number] for number in group]), strict=True)
        return [found[number] for number in range(len(requests))]

    def _pass(self, group: Sequence[PagedRows]) -> list[Decided]:
        shape = self._shape(group)
        buffers = self._prepare(shape)
        host = buffers.host
        buffers.clear()
        host["draft"].fill(-1)
        for number, request in enumerate(group):
            self._write(request, number, host)
            self._write_next(request, number, host)
        buffers.send()
        self.captures.run(shape)
        try:
            for request in group:
                if request.meanwhile is not None and self._is_running():
                    request.meanwhile()
        finally:
            self._wait()  # whatever happens, as the next pass writes to the same buffers
        return [_decided(request, number, host) for number, request in enumerate(group)]

    def _is_running(self) -> bool:
        """Whether the pass still runs, so that the host has time; on a CPU as if it did."""
        return self.device.type != "cuda" or not torch.cuda.current_stream(self.device).query()

    def _wait(self) -> None:
        """Return when the pass is over and what it decided is on the host."""
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()

    def _shape(self, group: Sequence[PagedRows]) -> Bucket:
        rows = max(len(request.ids) for request in group)
        decides, columns = bool(group[0].next), max(len(request.pages) for request in group)
        shape = ROWS if decides else _covering(PREFILL_ROWS, rows)
        assert rows <= shape
        return Bucket(shape, _covering(PAGE_BUCKETS, columns), _covering(BATCHES, len(group)))

    def _prepare(self, shape: Bucket) -> RowBuffers:
        if shape not in self._buffers:
            self._buffers[shape] = RowBuffers(shape, self.device)
        buffers = self._buffers[shape]
        self.captures.prepare(shape, partial(self._run, buffers, shape.rows == ROWS))
        return buffers

    def _run(self, buffers: RowBuffers, decides: bool) -> None:
        """The captured work."""
        places = RowPositions(buffers.positions, *self._angles)
        hidden = forward(self.weights, buffers.ids, places, self.pool, buffers.slots, buffers.table)
        if decides:
            weights, lists = self.weights, self._lists.table
            ops.accept(hidden, weights.head, lists, buffers.drafts, self.end_id, weights.norm, weights.eps)
            buffers.fetch()

    def _write(self, request: PagedRows, number: int, host: dict[str, np.ndarray]) -> None:
        """The request's rows and pages in the inputs; rows after them go to the scrap page."""
        rows, far, size = len(request.ids), len(request.far), self.pool.size
        position = request.start + np.arange(rows)
        own = np.array(request.pages[far:])
        host["ids"][number, :rows], host["positions"][number, :rows] = request.ids, position
        host["slots"][number, :rows] = own[position // size] * size + position % size
        host["limits"][number, :rows] = position + 1
        counts = [*request.far, *self.pool.counts(request.start + rows)]
        host["pages"][number, : len(counts)], host["counts"][number, : len(counts)] = (
            request.pages[: len(counts)],
            counts,
        )
        host["own"][number], host["ends"][number] = far, len(counts)

    def _write_next(self, request: PagedRows, number: int, host: dict[str, np.ndarray]) -> None:
        """What may follow the request's last rows."""
        last, first = len(request.ids), len(request.ids) - len(request.next)
        host["first"][number] = first
        if request.next:
            host["draft"][number, first : last - 1] = request.draft
        at = number * MOST_PAIRS
        for row, each in enumerate(request.next, first):
            host["ban"][number, row] = self._lists.number(*each.ban)
            host["stop"][number, row] = 0 if each.stop is None else self._lists.number(*each.stop)
            host["share"][number, row], end = each.share, at + len(each.pairs)
            host["pair_first"][number, row], host["pair_last"][number, row] = at, end
            host["pair_token"][at:end], host["pair_share"][at:end] = [*each.pairs], [*each.pairs.values()]
            at = end
        assert at <= (number + 1) * MOST_PAIRS


def _decided(request: PagedRows, number: int, host: dict[str, np.ndarray]) -> Decided:
    if not request.next:
        return Decided()
    first = int(host["first"][number])
    rows = slice(first, first + int(host["accepted"][number]) + 1)
    return Decided(host["token"][number, rows].tolist(), host["probability"][number, rows].tolist())


def _groups(requests: Sequence[PagedRows]) -> Iterator[list[int]]:
    """Numbers of the requests that share a pass: those that decide, as far as all their lists of tokens fit."""
    group: list[int] = []
    names: set[object] = set()
    for number, request in enumerate(requests):
        if not request.next:
            yield [number]
            continue
        own = {each.name for following in request.next for each in following.lists}
        if group and (len(group) == BATCHES[-1] or len(names | own) >= LISTS):
            yield group
            group, names = [], set()
        group, names = [*group, number], names | own
    if group:
        yield group


def _affordable_pages(device: torch.device, page_bytes: int) -> int:
    if device.type != "cuda":
        return LEAST_PAGES
    free, _ = torch.cuda.mem_get_info(device)
    return max(LEAST_PAGES, min(MOST_PAGES, free // MEMORY_SHARE // page_bytes))


def _covering(buckets: Sequence[int], count: int) -> int:
    return next(bucket for bucket in buckets if bucket >= count)
