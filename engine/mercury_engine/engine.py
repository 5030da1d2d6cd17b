"""The engine: one model on one device. It fills gaps and scores texts, for one request or several at a time.

Not thread-safe; its one caller owns it. Only a request's cancel flag may be set from another thread.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mercury_engine.api import (
    MAX_REGION_CHARS,
    MAX_REGION_LINES,
    MAX_SLOTS,
    Answer,
    Effort,
    Fill,
    FillRequest,
    NewRequests,
    Request,
    Rewrite,
    RewriteRequest,
    ScoreRequest,
    TellOutcome,
    one_by_one,
)
from mercury_engine.denoising.calibration import Calibration
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.context_reader import ContextReader
from mercury_engine.denoising.loop import Denoiser
from mercury_engine.denoising.regions import RegionReader
from mercury_engine.denoising.rewriting import Rewriter
from mercury_engine.denoising.scoring import score_texts
from mercury_engine.denoising.verifier import CanvasContext
from mercury_engine.errors import DeviceError, RequestError
from mercury_engine.kv_cache.cache import BlockCache, CachedContext
from mercury_engine.loading import ModelParts, load_model
from mercury_engine.models import batching
from mercury_engine.models.backend import Backend, Device
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.memory import collect_and_return_memory, is_out_of_memory
from mercury_engine.prompt.tokenizer import PrefixCut
from mercury_engine.results import Cut, beginnings, fill_from, ranked, rewrite_from
from mercury_engine.scheduler import Scheduler

if TYPE_CHECKING:
    import torch

    from mercury_engine.cuda.device_loop import DeviceLoop
    from mercury_engine.cuda.verifying_loop import VerifyingLoop

_SLOTS: dict[Effort, int] = {"instant": 8, "low": 16, "medium": 32, "high": MAX_SLOTS}
"""Longest canvas by effort."""


class Engine:
    """Fills gaps: `Engine.load()` once, then `fill` for every request."""

    def __init__(self, parts: ModelParts) -> None:
        self.path, self.name = parts.folder, parts.reader.config.name
        self.worth, self.choice = parts.worth, parts.choice
        self.device = parts.reader.device
        self.tokenizer, self.reader, self.writer = parts.tokenizer, parts.reader, parts.writer
        start = parts.tokenizer.start_id if parts.markers is None else parts.markers.start
        cache = BlockCache(parts.reader, start)
        self.context_reader = ContextReader(cache, parts.tokenizer, parts.markers)
        self.denoiser = Denoiser(
            parts.reader,
            parts.writer,
            parts.tokenizer,
            parts.rule,
            parts.calibration,
            parts.markers is not None,
        )
        self.rewriter = Rewriter(parts.reader, self.denoiser.vocabulary.texts)
        self.regions = RegionReader(self.context_reader, self.denoiser.stopping, parts.edit_format)
        self.loop = _device_loop(parts, self.denoiser)
        self.verifying = _verifying_loop(parts, self.context_reader, self.denoiser)

    @classmethod
    def load(
        cls,
        path_or_name: str | Path | None = None,
        *,
        device: Device = "auto",
        threads: int | None = None,
        dtype: "torch.dtype | None" = None,
        backend: Backend = "auto",
    ) -> Self:
        """Load a model folder; None is the bundled model. A plain Llama or Qwen2 folder loads as a reader.

        `threads` is the number of CPU threads; None is half the processors. A dtype selects the plain torch network.
        Raises ModelNotFound and ModelCorrupt; both say how to fix it.
        """
        return cls(load_model(path_or_name, device, threads, dtype, backend))

    @property
    def backend(self) -> str:
        """The name of the implementation that runs the model, for people to read."""
        if self.verifying is not None:
            return f"{self.reader.backend}, pages"
        return self.reader.backend if self.loop is None else f"{self.reader.backend}, device loop"

    @property
    def gap_format(self) -> str | None:
        """The family whose gap format the model reads in; None for blocks without markers."""
        return self.context_reader.markers.family if self.context_reader.markers is not None else None

    @property
    def edit_format(self) -> str | None:
        """The family whose edit format the model was trained on, or "mercury" with an adapter for edits; else None."""
        return self.regions.family

    @property
    def calibration(self) -> Calibration:
        """Maps confidences to chances."""
        return self.denoiser.calibration

    @property
    def cache(self) -> BlockCache:
        """Keys and values of the contexts read so far."""
        return self.context_reader.cache

    def fill(self, request: FillRequest) -> Fill:
        """Fill the gap; from a context larger than `prompt.budget` allows, only the nearest part is read.

        Raises Cancelled when the request's flag is set, RequestError when it asks for too much, ModelCorrupt when the
        weights compute NaN, and DeviceError when memory is full. The engine stays usable after each.
        """
        fill = self._scheduler().answer(request)
        assert isinstance(fill, Fill)
        return fill

    def beginnings(self, request: FillRequest) -> list[Cut]:
        """Every beginning of the fill that might be shown, the shortest first; for fitting what is worth showing."""
        written = batching.finished(self._written(request, time.perf_counter()), self.reader)
        return beginnings(written[0][0], self.denoiser) if written else []

    def score(self, request: FillRequest, texts: Sequence[str]) -> list[float]:
        """The reader's log-likelihood, in nats, of each text in the gap followed by the rest of its line.

        All texts are read in one pass. Only the request's context and cancel flag matter. Raises as `fill` does.
        """
        nats = self._scheduler().answer(ScoreRequest(request, tuple(texts)))
        assert isinstance(nats, list)
        return nats

    def rewrite(self, request: RewriteRequest) -> Rewrite:
        """The lines that should stand in place of a region after the user's recent edits.

        Not finished, so without an answer, at the deadline, where the text runs on, or where the chance falls too low.
        Raises as `fill` does.
        """
        rewrite = self._scheduler().answer(request)
        assert isinstance(rewrite, Rewrite)
        return rewrite

    def answer_all(self, more: NewRequests, done: TellOutcome) -> None:
        """Answer all requests from `more` until it returns none and all are done; report each outcome to `done`.

        Running requests share forward passes; an answer does not depend on the other requests. `more` is called before
        every pass. With the device loop, requests are answered one after another.
        """
        if self.loop is not None:
            one_by_one(self, more, done)
        else:
            self._scheduler().answer_all(more, done)

    def rest(self) -> None:
        """Return memory that fills have freed, while no request is expected. Takes some 30 ms."""
        self.reader.rest()
        collect_and_return_memory()

    def surroundings(self, request: FillRequest, near: list[int], settled: int) -> CanvasContext:
        """What a canvas behind the tokens of `near` sees, with its first slots settled; prefills only what is new."""
        return batching.finished(self.context_reader.read(request, near, settled), self.reader)

    def _scheduler(self) -> Scheduler:
        # Made for each call: kept, it and the engine would refer to each other and the weights be freed late.
        return Scheduler(self.reader, self._answer)

    def _answer(self, request: Request, started: float) -> ForwardSteps[Answer]:
        try:
            if isinstance(request, ScoreRequest):
                return (yield from self._score(request))
            if isinstance(request, RewriteRequest):
                return (yield from self._rewrite(request, started))
            return (yield from self._fill(request, started))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            self.cache.clear()
            if self.loop is not None:
                self.loop.filler.forget()
            if self.verifying is not None:
                self.verifying.contexts.forget()
            self.rest()
            raise DeviceError(
                f"no memory left on {self.device} ({error}); what was cached is freed, try again, or set "
                'mercury.device to "cpu" or mercury.maxSlots lower'
            ) from error

    def _score(self, request: ScoreRequest) -> ForwardSteps[list[float]]:
        cut = self.context_reader.cut(request.gap)
        context = yield from self.context_reader.read(request.gap, cut.read, len(cut.known))
        gap, ends = request.gap, None
        if self.context_reader.markers is not None:
            ends = self.denoiser.stopping.at(gap.follows, gap.multiline, "")
        return (yield from score_texts(self.reader, self.tokenizer, context, cut, gap, request.texts, ends))

    def _rewrite(self, request: RewriteRequest, started: float) -> ForwardSteps[Rewrite]:
        if len(request.text) > MAX_REGION_CHARS or request.text.count("\n") > MAX_REGION_LINES:
            raise RequestError(
                f"a region has at most {MAX_REGION_LINES} lines and {MAX_REGION_CHARS} characters; this one is larger"
            )
        deadline = None if request.deadline_ms is None else started + request.deadline_ms / 1e3
        found = yield from batching.until(deadline, self.regions.read(request))
        if found is None:
            return Rewrite(request.text, 0.0, 0.0, steps=0, elapsed=time.perf_counter() - started)
        draft = yield from self.rewriter.run(request, found.region, found.context, started)
        return rewrite_from(draft, found, request, self.regions, started)

    def _fill(self, request: FillRequest, started: float) -> ForwardSteps[Fill]:
        if not 1 <= request.max_slots <= MAX_SLOTS:
            raise RequestError(f"max_slots is {request.max_slots}; allowed are 1 to {MAX_SLOTS}")
        written = yield from self._written(request, started)
        if written is None:
            return Fill("", 0.0, steps=0, elapsed=time.perf_counter() - started)
        canvases, context = written
        return ranked([fill_from(c, request, self.denoiser, started, context) for c in canvases])

    def _written(self, request: FillRequest, started: float) -> ForwardSteps[tuple[list[Canvas], CachedContext] | None]:
        """The canvases after the last step and what they saw; None if the deadline came before the first."""
        cut = self.context_reader.cut(request)
        canvases = [self._canvas(request, cut, choice) for choice in range(max(1, request.candidates))]
        if self.verifying is not None and self.verifying.takes(request, canvases):
            found = yield from self.verifying.run(request, canvases[0], cut.read, started)
            return None if found is None else (canvases, found.context)
        deadline = None if request.deadline_ms is None else started + request.deadline_ms / 1e3
        prefill = self.context_reader.read(request, cut.read, len(cut.known))
        context = yield from batching.until(deadline, prefill)
        if context is None:
            return None
        if self.loop is not None and self.loop.takes(request, canvases):
            self.loop.run(request, canvases[0], context, started)
        else:
            yield from self.denoiser.run(request, canvases, context, started)
        return canvases, context.context

    def _canvas(self, request: FillRequest, cut: PrefixCut, choice: int) -> Canvas:
        """An open canvas that begins with the known tokens, followed by as much of the draft as fits."""
        slots = min(request.max_slots, _SLOTS[request.effort])
        mask = self.reader.config.mask_id
        draft = self.tokenizer.encode(cut.spell + request.draft)[:slots] if request.draft and not choice else []
        ids = [*cut.known, *draft, *[mask] * (slots - len(draft))]
        on_step = None if choice else request.on_step
        known, vocabulary, follows = len(cut.known), self.denoiser.vocabulary, request.follows
        line = request.near.rpartition("\n")[2] if request.multiline and request.worth else None
        return Canvas(
            vocabulary,
            ids,
            known,
            cut.spell,
            draft,
            choice,
            on_step=on_step,
            follows=follows,
            line=line,
            multiline=request.multiline,
        )


def _device_loop(parts: ModelParts, denoiser: Denoiser) -> "DeviceLoop | None":
    """The loop that runs on a GPU where a writer decides; None elsewhere."""
    if parts.writer is None or denoiser.rule.decides != "writer":
        return None
    from mercury_engine.cuda.device_loop import device_loop  # imports torch

    return device_loop(parts.writer, denoiser)


def _verifying_loop(parts: ModelParts, context_reader: ContextReader, denoiser: Denoiser) -> "VerifyingLoop | None":
    """The loop that verifies drafts on a GPU where the reader decides; None elsewhere."""
    if parts.paged is None:
        return None
    from mercury_engine.cuda.verifying_loop import VerifyingLoop  # imports torch

    return VerifyingLoop(parts.paged, context_reader, denoiser)
