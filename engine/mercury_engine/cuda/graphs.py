"""Denoises canvases on a GPU: steps and decisions stay on the device, the host sees each chunk.

A denoising step is a CUDA graph, one for each bucket of canvas length, context and batch, and a chunk is a few of them:
no more than open slots are left. The inputs of a chunk are sent in one copy and its results fetched in another. On a
CPU the same code runs step by step.
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from mercury_kernels import ops
from mercury_kernels.buffers import Bucket, Buffers
from mercury_kernels.capture import Captures
from mercury_kernels.ops import Frames, TokenChoice
from mercury_kernels.pages import PagePool, PageRun

from mercury_engine.errors import RequestError
from mercury_engine.models.canvas_chunks import CanvasChunk, FilledCanvas
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import KeyValueSegment
from mercury_engine.models.token_masks import TokenMasks
from mercury_engine.models.triton import TritonWeights, forward

SLOT_BUCKETS = (8, 16, 32, 64, 96)
PAGE_BUCKETS = (8, 16, 32, 64, 128, 192)
"""Pages that a request may see, including its canvas."""
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64)

PAGE_TOKENS = 64
"""Tokens in a page of keys and values."""


class GraphDenoiser:
    """Implements `ChunkDenoiser`. One caller at a time.

    `pages` is the context memory in pages of `page_size` tokens; `positions` bounds the length of a near prefix;
    `chunk` is the number of steps between two checks by the host; `most` is the number of graphs kept.
    """

    def __init__(
        self,
        decoder: TorchDecoder,
        *,
        pages: int = 512,
        positions: int = 8192,
        chunk: int = 4,
        most: int = len(SLOT_BUCKETS) * len(PAGE_BUCKETS) + 12,
        page_size: int = PAGE_TOKENS,
    ) -> None:
        config, self.device = decoder.config, decoder.device
        self.mask_id, self.end_id, self.chunk = config.mask_id, config.end_id, chunk
        self.weights = TritonWeights.of(decoder)
        heads, width = config.num_key_value_heads, config.head_dim
        self.pool = PagePool(
            config.num_hidden_layers, heads, width, pages, decoder.embedding.dtype, self.device, page_size
        )
        self._origin, self._positions = SLOT_BUCKETS[-1] + 1, positions
        self._angles = ops.rotary_table(-self._origin, positions, width, config.rope_theta, self.device)
        self.captures = Captures(self.device, most)
        self._buffers: dict[Bucket, Buffers] = {}
        self._placed: OrderedDict[int, tuple[PageRun, KeyValueSegment]] = OrderedDict()
        self._canvases: list[list[int]] = []
        self.token_masks = TokenMasks(len(self.weights.table), self.mask_id, self.device)

    def run_chunk(self, chunks: Sequence[CanvasChunk]) -> list[FilledCanvas]:
        """See `ChunkDenoiser.run_chunk`. Raises RequestError when the canvases exceed the buckets."""
        return self._run(chunks, 1)

    def fill(self, canvases: Sequence[CanvasChunk]) -> list[FilledCanvas]:
        """Denoise all canvases together until no slot is open. Raises as `run_chunk` does."""
        return self._run(canvases, self.bucket(canvases).rows)

    @torch.inference_mode()
    def _run(self, jobs: Sequence[CanvasChunk], chunks: int) -> list[FilledCanvas]:
        bucket = self.bucket(jobs)
        buffers = self.prepare(bucket)
        self._load(jobs, bucket, buffers)
        judged = any(job.drafts for job in jobs)
        for number in range(chunks):
            self._run_chunk(bucket, buffers, _steps_left(buffers, jobs) + (judged and not number))
            if not buffers.host["open"].any():
                break
        return _filled(buffers, jobs)

    def _run_chunk(self, bucket: Bucket, buffers: Buffers, left: int) -> None:
        """As many steps as a chunk has, or as are left, and fetch what they did."""
        for _ in range(min(self.chunk, left)):
            self.captures.run(bucket)
            if self.device.type == "cpu" and not buffers.host["open"].any():
                break
        buffers.fetch()
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()

    def prepare_all(self) -> None:
        """Capture the steps of one canvas in every bucket, so that no request waits for one."""
        for slots in SLOT_BUCKETS:
            for columns in PAGE_BUCKETS:
                self.prepare(Bucket(slots + 1, columns, 1))

    def forget(self) -> None:
        """Free the pages of all sides; they are copied again when they are needed."""
        while self._placed:
            self.pool.give(self._placed.popitem()[1][0].pages)

    def step(self, buffers: Buffers) -> None:
        """One denoising step of every canvas in the buffers."""
        frames = Frames(buffers.near, buffers.away, *self._angles, self._origin)
        hidden = forward(self.weights, buffers.slots.ids.view(-1), frames, self.pool, buffers.places, buffers.table)
        choice: TokenChoice = ops.choices(
            hidden, self.weights.head, self.token_masks.table, buffers.ban, self.weights.norm, self.weights.eps
        )
        ops.commit(buffers.slots, choice, self.mask_id, self.end_id)

    @torch.inference_mode()
    def prepare(self, bucket: Bucket) -> Buffers:
        """The bucket's buffers, with its step captured."""
        if bucket not in self.captures:
            self._buffers[bucket] = Buffers(bucket, self.device)
        self.captures.prepare(bucket, partial(self.step, self._buffers[bucket]))
        self._buffers = {known: kept for known, kept in self._buffers.items() if known in self.captures}
        return self._buffers[bucket]

    def bucket(self, jobs: Sequence[CanvasChunk]) -> Bucket:
        """The smallest bucket that holds all jobs."""
        slots = max(len(job.ids) for job in jobs)
        own = self.pool.needed(slots + 1)
        columns = max(own + sum(self.pool.needed(_tokens(s)) for s in (*job.before, *job.after)) for job in jobs)
        if max(job.ends for job in jobs) + slots >= self._positions:
            raise RequestError(f"a near prefix of more than {self._positions - slots} tokens; send it in far blocks")
        fit = [
            next((size for size in sizes if size >= wanted), 0)
            for sizes, wanted in ((SLOT_BUCKETS, slots), (PAGE_BUCKETS, columns), (BATCH_BUCKETS, len(jobs)))
        ]
        if not all(fit):
            raise RequestError(
                f"{slots} slots, {columns * self.pool.size} tokens of context and {len(jobs)} canvases at once; allowed"
                f" are {SLOT_BUCKETS[-1]}, {PAGE_BUCKETS[-1] * self.pool.size} and {BATCH_BUCKETS[-1]}: send less"
            )
        return Bucket(fit[0] + 1, fit[1], fit[2])

    def _load(self, jobs: Sequence[CanvasChunk], bucket: Bucket, buffers: Buffers) -> None:
        """Copy sides into pages, write all inputs and send them."""
        self._reserve(bucket)
        host = buffers.host
        host["rows"][:] = 0
        host["ends"][:] = 0
        used: set[int] = {id(side) for job in jobs for side in (*job.before, *job.after)}
        for number, job in enumerate(jobs):
            self._write(job, number, host, used)
        host["open"][:] = [len(_wanted(job, self.mask_id)) for job in jobs] + [0] * (bucket.batch - len(jobs))
        host["steps"][:] = 0
        buffers.send()

    def _write(self, job: CanvasChunk, number: int, host: dict[str, np.ndarray], used: set[int]) -> None:
        """One job's row in every field."""
        rows, size = len(job.ids) + 1, self.pool.size
        canvas = self._canvases[number][: self.pool.needed(rows)]
        before = [self._place(side, used) for side in job.before]
        after = [self._place(side, used) for side in job.after]
        own = PageRun(canvas, self.pool.counts(rows))
        columns = [*before, own, *after]
        pages, counts = [p for c in columns for p in c.pages], [n for c in columns for n in c.counts]
        place = np.arange(rows)
        host["ids"][number, :rows] = [job.last, *job.ids]
        host["probability"][number] = 1.0
        host["probability"][number, [slot + 1 for slot in job.drafts]] = 0.0
        host["rows"][number], host["bound"][number], host["most"][number] = rows, job.bound, job.most
        host["near"][number, :rows], host["away"][number, :rows] = job.ends + place, place - rows
        host["places"][number] = 0  # rows after the canvas go to the scrap page
        host["places"][number, :rows] = np.array(canvas)[place // size] * size + place % size
        host["ban"][number] = job.mask
        if job.first_mask is not None and (wanted := _wanted(job, self.mask_id)):
            host["ban"][number, wanted[0]] = job.first_mask
        host["pages"][number, : len(pages)], host["counts"][number, : len(pages)] = pages, counts
        host["ends"][number] = sum(len(c.pages) for c in (*before, own)), len(pages)

    def _reserve(self, bucket: Bucket) -> None:
        """Reserve separate pages for every canvas of the bucket."""
        size = self.pool.needed(bucket.rows)
        for canvas in self._canvases[: bucket.batch]:
            canvas += self._take(max(0, size - len(canvas)), set())
        while len(self._canvases) < bucket.batch:
            self._canvases.append(self._take(size, set()))

    def _place(self, side: KeyValueSegment, used: set[int]) -> PageRun:
        """The pages of the side's keys and values; copied there if the side is new."""
        if id(side) not in self._placed:
            tokens = _tokens(side)
            pages = self._take(self.pool.needed(tokens), used)
            self.pool.write(pages, side.keys[:, 0], side.values[:, 0])
            self._placed[id(side)] = (
                PageRun(pages, self.pool.counts(tokens)),
                side,
            )  # kept, so that its id stays its own
        self._placed.move_to_end(id(side))
        return self._placed[id(side)][0]

    def _take(self, count: int, used: set[int]) -> list[int]:
        """Take free pages; sides unused for longest make room, except those in use. Raises RequestError."""
        for known in [k for k in self._placed if k not in used]:
            if self.pool.free >= count:
                break
            self.pool.give(self._placed.pop(known)[0].pages)
        if self.pool.free < count:
            raise RequestError(f"context memory of {self.pool.keys.shape[1]} pages is full; make it larger")
        return self.pool.take(count)


def _tokens(side: KeyValueSegment) -> int:
    assert side.bias is None
    return side.keys.shape[3]


def _wanted(job: CanvasChunk, mask_id: int) -> list[int]:
    """Slots that are open or drafts."""
    return [slot for slot, token in enumerate(job.ids) if token == mask_id or slot in job.drafts]


def _steps_left(buffers: Buffers, jobs: Sequence[CanvasChunk]) -> int:
    """The most steps that any canvas may still take: each commits a slot at least."""
    host = buffers.host
    return max(min(int(host["open"][n]), job.most - int(host["steps"][n])) for n, job in enumerate(jobs))


def _filled(buffers: Buffers, jobs: Sequence[CanvasChunk]) -> list[FilledCanvas]:
    host = buffers.host
    return [
        FilledCanvas(
            host["ids"][number, 1 : len(job.ids) + 1].tolist(),
            host["probability"][number, 1 : len(job.ids) + 1].tolist(),
            int(host["steps"][number]),
            not host["open"][number],
        )
        for number, job in enumerate(jobs)
    ]
