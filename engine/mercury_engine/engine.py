"""The engine: one model on one device, and the fills that it is asked for, one or several at a time.

Not thread-safe; its one caller owns it. Only a request's cancel flag may be set from another thread.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

import torch

from mercury_engine.api import PART_OF_A_CHARACTER, Answer, Effort, Fill, FillRequest, Request, ScoreRequest
from mercury_engine.cuda.device_loop import device_loop
from mercury_engine.denoising.calibration import Calibration
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.loop import Denoiser, DenoisingRule
from mercury_engine.denoising.ngram_lookup import IndexedText, NgramLookup, TokenArray
from mercury_engine.denoising.scoring import score_texts
from mercury_engine.denoising.truncation import truncated, word_start
from mercury_engine.denoising.verifier import CanvasContext
from mercury_engine.errors import Cancelled, DeviceError, ModelCorrupt, ModelNotFound, RequestError
from mercury_engine.kv_cache.cache import BlockCache, TokenIds
from mercury_engine.lru import fresh, keep
from mercury_engine.models import batching, weights
from mercury_engine.models.backend import Backend, give_back_freed, give_back_memory, networks
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network
from mercury_engine.prompt.budget import (
    LOOKUP_BLOCKS,
    LOOKUP_TOKENS,
    NEW_LOOKUP_BLOCKS,
    far_part,
    near_part,
    suffix_part,
)
from mercury_engine.prompt.layout import rest_and_below
from mercury_engine.prompt.tokenizer import PrefixCut, Tokenizer
from mercury_engine.scheduler import RunningRequest
from mercury_engine.turns import NewRequests, TellOutcome, one_by_one

BUNDLED_MODEL = Path(__file__).parent / "assets" / "mercury-135m"

MAX_SLOTS = 64

MANY_TOKENS_READ = 32
"""Tokens whose reading leaves so much freed memory with glibc that it is worth 10 ms to give it back."""

MOST_SHARED_ROWS = 32
"""Rows of a forward that shares a pass with others; more gain nothing by it, and the others would wait for them."""

REMEMBERED_LOOKUPS = 8
"""Contexts that are kept ready to be looked through."""

EVEN_CHANCE = 0.5
"""A text of a lower chance to be kept is likelier wrong than right."""

_log = logging.getLogger(__name__)

_SLOTS: dict[Effort, int] = {"instant": 8, "low": 16, "medium": 32, "high": MAX_SLOTS}


class Engine:
    """Fills gaps: `Engine.load()` once, then `fill` for every request."""

    def __init__(
        self,
        reader: Network,
        writer: Network | None,
        tokenizer: Tokenizer,
        *,
        path: Path,
        gate: float = 0.0,
        rule: DenoisingRule | None = None,
        calibration: Calibration | None = None,
    ):
        self.path, self.name = path, reader.config.name
        self.calibration = calibration or Calibration()
        self.gate = self.calibration.kept(gate)
        self.device = str(reader.embedding.device)
        self.tokenizer, self.reader, self.writer = tokenizer, reader, writer
        self.cache = BlockCache(reader, tokenizer.start_id)
        self.denoiser = Denoiser(reader, writer, tokenizer, rule or DenoisingRule())
        self.loop = device_loop(writer, self.denoiser)
        self._lookups: OrderedDict[tuple[tuple[TokenIds, ...], tuple[str, ...]], NgramLookup] = OrderedDict()

    @classmethod
    def load(
        cls,
        path_or_name: str | Path | None = None,
        *,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        threads: int | None = None,
        dtype: torch.dtype | None = None,
        backend: Backend = "auto",
    ) -> Self:
        """Load a model folder; None is the bundled model. A plain Llama or Qwen2 folder loads as a reader.

        Raises ModelNotFound and ModelCorrupt, both naming the mend. `threads` counts CPU threads; None is half
        the processors. A dtype asks for plain torch.
        """
        folder = find(path_or_name)
        where = _device(device)
        tokenizer = Tokenizer(folder)
        vocabulary = weights.read_config(folder).vocab_size
        if tokenizer.size > vocabulary:
            raise ModelCorrupt(
                f"tokenizer.json in {folder} has {tokenizer.size} tokens, the weights {vocabulary}; "
                "the files do not belong together"
            )
        reader, writer = networks(folder, where, dtype, threads, backend)
        settings = weights.read_settings(folder)
        try:
            rule = DenoisingRule(**settings.rule)
        except (TypeError, ValueError) as error:
            raise ModelCorrupt(f"{folder / 'settings.json'} is not valid ({error}); fetch the model again") from error
        if writer is None and rule.decides == "writer":
            raise ModelCorrupt(f"settings.json in {folder} lets a writer decide, but there is none; fetch it again")
        if writer is not None and "writer" in (rule.drafts, rule.decides):
            writer.prepare()
        calibration = Calibration(settings.calibration)
        return cls(reader, writer, tokenizer, path=folder, gate=settings.gate, rule=rule, calibration=calibration)

    @property
    def backend(self) -> str:
        """What runs the model, for people to read."""
        return self.reader.backend if self.loop is None else f"{self.reader.backend}, device loop"

    def fill(self, request: FillRequest) -> Fill:
        """Text for the gap; of a longer context than `limits` allows, what lies nearest to it is read.

        Raises Cancelled when the request's flag is set, RequestError when it asks too much, ModelCorrupt when the
        weights compute no numbers, and DeviceError when memory is full; the engine can be asked again after each.
        """
        fill = self._answered(request)
        assert isinstance(fill, Fill)
        return fill

    def score(self, request: FillRequest, texts: Sequence[str]) -> list[float]:
        """How likely the reader finds each text in the gap and the rest of its line behind it, in nats.

        All are read in one pass. Of the request only the context and the cancel flag matter. Raises as `fill` does.
        """
        nats = self._answered(ScoreRequest(request, tuple(texts)))
        assert isinstance(nats, list)
        return nats

    def answer_all(self, more: NewRequests, done: TellOutcome) -> None:
        """Answer what `more` hands over until it hands over nothing and all are done; `done` is told of each.

        Answers under way share forward passes, and what comes out does not depend on the others. `more` is called
        before every pass. Where the loop is on the device one comes after another.
        """
        if self.loop is not None:
            one_by_one(self, more, done)
            return
        under_way: list[RunningRequest] = []
        while under_way := [*under_way, *map(self._begin, more())]:
            self._advance(under_way)
            for each in under_way:
                if each.outcome is not None:
                    done(each.request, each.outcome)
            under_way = [each for each in under_way if each.outcome is None]

    def _answered(self, request: Request) -> Answer:
        answering = self._begin(request)
        while answering.outcome is None:
            self._advance([answering])
        if isinstance(answering.outcome, Exception):
            raise answering.outcome
        return answering.outcome

    def _begin(self, request: Request) -> RunningRequest:
        return RunningRequest(request, self._steps(request, time.perf_counter()))

    @torch.inference_mode()
    def _advance(self, under_way: Sequence[RunningRequest]) -> None:
        """Carry answers on: those that want few rows by the same forward pass, the first of the others by its own."""
        for each in under_way:
            if each.waits_for is None:
                each.start()
        few = [each for each in under_way if each.waits_for is not None and each.waits_for.rows <= MOST_SHARED_ROWS]
        many = [each for each in under_way if each.waits_for is not None and each.waits_for.rows > MOST_SHARED_ROWS]
        for together in filter(None, (few, many[:1])):
            self._pass(together)

    def _pass(self, together: Sequence[RunningRequest]) -> None:
        """One forward pass; when it fails, all of these fail."""
        asked = [each.waits_for for each in together if each.waits_for is not None]
        try:
            given = batching.run(self.reader, asked)
        except Exception as error:
            for answering in together:
                answering.fail(error)
        else:
            for answering, each in zip(together, given, strict=True):
                answering.take(each)

    def _steps(self, request: Request, started: float) -> ForwardSteps[Answer]:
        try:
            if isinstance(request, ScoreRequest):
                return (yield from self._scored(request))
            return (yield from self._filled(request, started))
        except (torch.OutOfMemoryError, MemoryError) as error:
            self.cache.clear()
            if self.loop is not None:
                self.loop.filler.forget()
            self.rest()
            raise DeviceError(
                f"no memory left on {self.device} ({error}); what was cached is freed, try again, or set "
                'mercury.device to "cpu" or mercury.maxSlots lower'
            ) from error

    def _scored(self, request: ScoreRequest) -> ForwardSteps[list[float]]:
        cut = self.tokenizer.cut(request.gap.near)
        place = yield from self._read(request.gap, cut.read, len(cut.known))
        return (yield from score_texts(self.reader, self.tokenizer, place, cut, request.gap, request.texts))

    def _filled(self, request: FillRequest, started: float) -> ForwardSteps[Fill]:
        if not 1 <= request.max_slots <= MAX_SLOTS:
            raise RequestError(f"max_slots is {request.max_slots}; allowed are 1 to {MAX_SLOTS}")
        request = replace(request, give_up_below=self.calibration.raw(request.give_up_below))
        cut = self.tokenizer.cut(request.near)
        deadline = None if request.deadline_ms is None else started + request.deadline_ms / 1e3
        place = yield from batching.until(deadline, self._read(request, cut.read, len(cut.known)))
        if place is None:
            return Fill("", 0.0, steps=0, elapsed=time.perf_counter() - started)
        canvases = [self._canvas(request, cut, choice) for choice in range(max(1, request.candidates))]
        if self.loop is not None and self.loop.takes(request, canvases):
            self.loop.run(request, canvases[0], place, started)
        else:
            yield from self.denoiser.run(request, canvases, place, started)
        fills = [self._fill(request, canvas, started, place.context.tokens_read) for canvas in canvases]
        return _ranked(fills)

    def rest(self) -> None:
        """Nobody asks for a while: give back memory that fills have freed. Takes some 30 ms."""
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        give_back_memory()

    @torch.inference_mode()
    def surroundings(self, request: FillRequest, near: list[int], settled: int) -> CanvasContext:
        """What a canvas behind the tokens of `near` sees, its first slots being settled; reads what is new of it."""
        return batching.finished(self._read(request, near, settled), self.reader)

    def _read(self, request: FillRequest, near: list[int], settled: int) -> ForwardSteps[CanvasContext]:
        ids = near_part(near) or (self.tokenizer.start_id,)
        line, below = rest_and_below(request.suffix)
        far = far_part([self.tokenizer.block(block) for block in (*reversed(below), *request.far)])
        suffix = suffix_part([self.tokenizer.block(block) for block in (*line, *below)])
        context = yield from self.cache.context(far, ids[:-1], suffix)
        if context.tokens_read > MANY_TOKENS_READ and self.device == "cpu":
            give_back_freed()
        return CanvasContext(context, ids, settled, self._ngrams_in(far, request))

    def _ngrams_in(self, far: list[TokenIds], request: FillRequest) -> NgramLookup:
        lookup_text = request.lookup_text[-LOOKUP_BLOCKS:]
        key = (tuple(far), lookup_text)
        if (found := fresh(self._lookups, key)) is not None:
            return found
        runs = [*self._runs(lookup_text, request)]
        made = NgramLookup(far, IndexedText(runs[::-1], LOOKUP_TOKENS) if runs else None)
        return made if len(runs) < len(lookup_text) else keep(self._lookups, key, made, REMEMBERED_LOOKUPS)

    def _runs(self, blocks: Sequence[str], request: FillRequest) -> Iterator[TokenArray]:
        """Tokens of text elsewhere, the last block first; with a deadline only so many that were never asked for."""
        new = 0
        for block in reversed(blocks):
            if request.cancel.is_set():
                raise Cancelled("superseded by a newer request")
            new += not self.tokenizer.has_run(block)
            if request.deadline_ms is not None and new > NEW_LOOKUP_BLOCKS:
                break
            yield self.tokenizer.run(block)

    def _canvas(self, request: FillRequest, cut: PrefixCut, choice: int) -> Canvas:
        """An open canvas that begins with the known tokens; the draft stands on it, for as far as it reaches."""
        slots = min(request.max_slots, _SLOTS[request.effort])
        mask = self.reader.config.mask_id
        draft = self.tokenizer.encode(cut.spell + request.draft)[:slots] if request.draft and not choice else []
        ids = [*cut.known, *draft, *[mask] * (slots - len(draft))]
        on_step = None if choice else request.on_step
        known, vocabulary, follows = len(cut.known), self.denoiser.vocabulary, request.follows
        return Canvas(vocabulary, ids, known, cut.spell, draft, choice, on_step=on_step, follows=follows)

    def _fill(self, request: FillRequest, canvas: Canvas, started: float, tokens_read: int) -> Fill:
        behind = sure(canvas, request.give_up_below)
        text = self.denoiser.text(canvas)
        if not canvas.ended:
            text = truncated(text, behind)
        return Fill(
            text=text,
            confidence=self.calibration.kept(canvas.confidence),
            steps=canvas.steps,
            elapsed=time.perf_counter() - started,
            unsure_from=self._unsure_from(canvas, text),
            tokens_read=tokens_read,
        )

    def _unsure_from(self, canvas: Canvas, text: str) -> int | None:
        """Where the text stops being likelier right than wrong, by the calibrated chance of all up to there."""
        slots = canvas.sure_slots(self.calibration.raw(EVEN_CHANCE))
        ids = canvas.ids[canvas.known : slots]
        characters = max(0, len(self.tokenizer.decode(ids).rstrip(PART_OF_A_CHARACTER)) - len(canvas.begun))
        return word_start(text, characters) if characters < len(text) else None


def _ranked(fills: list[Fill]) -> Fill:
    """The surest fill, the others that differ in text behind it by falling confidence.

    Behind the first, which is the best guess everywhere, a fill that another one begins with is dropped: one that gave
    up at the token that was to set it apart is as sure as what all of them have in common.
    """
    best, *others = fills
    texts = [fill.text for fill in fills]
    others = [other for other in others if not any(t != other.text and t.startswith(other.text) for t in texts)]
    different: dict[str, Fill] = {}
    for fill in sorted((best, *others), key=lambda f: -f.confidence):
        if fill.text:
            different.setdefault(fill.text, fill)
    first, *others = [*different.values()] or [best]
    return replace(first, others=tuple(others))


def sure(canvas: Canvas, least: float) -> str | None:
    """Take back the last slots of a canvas that gave up, until its confidence is at least `least`.

    Returns the best guess for what follows the part that is left, "" for the end; None when nothing was taken back.
    """
    behind = None
    while canvas.confidence < least and canvas.settled and canvas.chances:
        at = len(canvas.chances) - 1
        behind = "" if canvas.ended else canvas.vocabulary.texts[canvas.ids[at]]
        canvas.ended = False
        canvas.confidence = min(1.0, canvas.confidence / max(canvas.chances.pop(), 1e-12))
        canvas.settled = min(canvas.settled, at)
    return behind


def find(path_or_name: str | Path | None) -> Path:
    """The model's folder: a path, or a name in the user's model folder; None is the bundled one."""
    if path_or_name is None:
        if not (BUNDLED_MODEL / "config.json").is_file():
            raise ModelNotFound(f"the bundled model is missing from {BUNDLED_MODEL}; reinstall mercury-lsp")
        return BUNDLED_MODEL
    path = Path(path_or_name).expanduser()
    named = Path.home() / ".local" / "share" / "mercury-lsp" / "models"
    for folder in (path, named / path):
        if folder.is_dir():
            return folder
    raise ModelNotFound(
        f"no model folder {path_or_name}, nor one of that name in {named}; set mercury.model to a folder with "
        "config.json, or leave it out"
    )


def _device(wanted: str) -> torch.device:
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
        if wanted == "cpu":
            _log.info("no CUDA device: the model runs on the CPU")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise RequestError("device is 'cuda' but torch finds no CUDA device; set mercury.device to 'cpu' or 'auto'")
    return torch.device(wanted)
