"""The engine in this process: one model on one device, and the thread on which it answers.

It is not thread-safe: only a control's cancel flag may be set from another thread.
"""

import asyncio
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mercury_engine.api import (
    MAX_REGION_CHARS,
    MAX_REGION_LINES,
    MAX_SLOTS,
    MAX_WINDOW_CHARS,
    MAX_WINDOW_LINES,
    Answer,
    ChatFormat,
    Control,
    FillRequest,
    GenerateRequest,
    Request,
    RewriteRequest,
)
from mercury_engine.decoding.autoregressive.decoder import AutoregressiveDecoder
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.decoding.decoder import Decoder
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.options import AutoregressiveOptions, DiffusionOptions
from mercury_engine.errors import Cancelled, DeviceError, RequestError
from mercury_engine.kv_cache.cache import BlockCache
from mercury_engine.loading import Backend, Device, ModelParts, load_model
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.memory import collect_and_return_memory, is_out_of_memory
from mercury_engine.prompt.chat_template import ChatTemplate, chat_template_of
from mercury_engine.prompt.words import ModelWords, required
from mercury_engine.scheduler import Scheduler
from mercury_engine.serving import Serving

if TYPE_CHECKING:
    import torch


class Engine:
    """Implements `InferenceEngine`: `Engine.load()` once, then `answer` for every request."""

    def __init__(self, parts: ModelParts, contexts: ContextReader | None = None) -> None:
        """`contexts`: another way to read contexts than the model's own."""
        self.parts, self.path, self.name = parts, parts.folder, parts.reader.config.name
        self.utility, self.device, self.backend = parts.utility, parts.reader.device, parts.reader.backend
        self.tokenizer, self.reader = parts.tokenizer, parts.reader
        contexts = contexts or _contexts_of(parts)
        self.cache = contexts.cache
        """Keys and values of the contexts read so far."""
        self.decoder = _decoder_of(parts, contexts)
        self.edit_format = self.decoder.edit_format
        self._serving: Serving | None = None
        """The engine's thread, once something is to be answered there."""
        self._is_closed = False

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
        """Load a model folder; None is the bundled model.

        `threads` is the number of CPU threads; None is half the processors. A dtype selects the plain torch network.
        Raises ModelNotFound and ModelCorrupt; both say how to fix it.
        """
        return cls(load_model(path_or_name, device, threads, dtype, backend))

    @property
    def chat_format(self) -> ChatFormat | None:
        if self._chat_template is None:
            return None
        return "tool_call" if self._chat_template.has_tool_calls else "plain"

    @property
    def words(self) -> ModelWords:
        return ModelWords(self.name, self.tokenizer, self._chat_template)

    @cached_property
    def _chat_template(self) -> ChatTemplate | None:
        return chat_template_of(self.path, self.tokenizer)

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        """See `InferenceEngine.answer`; on the engine's thread."""
        if self._is_closed:
            raise Cancelled(f"{self.name} is closed; load it again")
        if self._serving is None:
            # A scheduler is made for each call: kept, it and the engine would refer to each other, and the weights be
            # freed late.
            self._serving = Serving(lambda more: Scheduler(self.reader, self.steps).answer_all(more))
        serving = self._serving  # the engine may be closed meanwhile
        if isinstance(request, GenerateRequest):  # 2 MB of text or schema take seconds, in which others are answered
            request = await asyncio.to_thread(self._prepared, request)
        return await serving.answer(request, control or Control())

    def rest(self) -> None:
        """Return memory that fills have freed, on the engine's thread. Takes some 30 ms."""
        if self._serving is None:
            self._rest()
        else:
            self._serving.call(self._rest)

    def close(self) -> None:
        self._is_closed = True
        if self._serving is not None:
            self._serving.close()
            self._serving = None  # it refers to the engine, whose weights would be freed late

    def _rest(self) -> None:
        self.reader.rest()
        collect_and_return_memory()

    def steps(self, request: Request, control: Control) -> ForwardSteps[Answer]:
        """What answers a request, for a scheduler to run."""
        try:
            return (yield from self._decoded(request, control))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            self.cache.clear()
            self.decoder.forget()
            self._rest()
            raise DeviceError(
                f"no memory left on {self.device} ({error}); what was cached is freed, try again, or set "
                'mercury.device to "cpu" or mercury.effort lower'
            ) from error

    def _decoded(self, request: Request, control: Control) -> ForwardSteps[Answer]:
        _check(request)
        if isinstance(request, RewriteRequest):
            return self.decoder.rewrite(request)
        if isinstance(request, GenerateRequest):
            return self.decoder.generate(request, self._prompt(request), control)
        return self.decoder.fill(request, control)

    def _prepared(self, request: GenerateRequest) -> GenerateRequest:
        """The request with its prompt in tokens, once all else that takes long is done. Raises RequestError."""
        prompt = self._prompt(request)
        self.decoder.prepare(request)
        return replace(request, ids=tuple(prompt))

    def _prompt(self, request: GenerateRequest) -> list[int]:
        """A prompt's tokens without the one that begins every text. Raises RequestError."""
        if request.ids is not None:
            return [*request.ids]
        if request.chat is None:
            encode = self.tokenizer.encode_marked if request.marked else self.tokenizer.encode
            ids = encode(request.prompt)
        else:
            ids = required(self._chat_template, self.name).encode(request.chat)
        return ids[1:] if ids[:1] == [self.tokenizer.start_id] else ids


def _contexts_of(parts: ModelParts) -> ContextReader:
    """What reads a model's contexts, with a cache of its own."""
    start = parts.tokenizer.start_id if parts.markers is None else parts.markers.start
    cache = BlockCache(parts.reader, start)
    sees_after = isinstance(parts.options, DiffusionOptions) and parts.reader.config.adapter_rank > 0
    return ContextReader(cache, parts.tokenizer, parts.markers, sees_after)


def _decoder_of(parts: ModelParts, contexts: ContextReader) -> Decoder:
    """The decoder of a model."""
    rules = GapRules(parts.tokenizer, parts.reader.config, parts.calibration, parts.markers is not None)
    if isinstance(parts.options, AutoregressiveOptions):
        return AutoregressiveDecoder(contexts, rules, parts.options, parts.edit_family)
    from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder  # 13 ms, for few models
    from mercury_engine.decoding.diffusion.layouts import layout_of

    layout = layout_of(parts.reader, contexts, parts.options)
    return DiffusionDecoder(layout, contexts, rules, parts.options)


def _check(request: Request) -> None:
    """Raise RequestError for a request that asks for too much."""
    if isinstance(request, FillRequest) and not 1 <= request.max_slots <= MAX_SLOTS:
        raise RequestError(f"max_slots is {request.max_slots}; allowed are 1 to {MAX_SLOTS}")
    if isinstance(request, RewriteRequest):
        lines, characters = request.text.count("\n"), len(request.text)
        is_window = request.cursor is not None
        most_lines = MAX_WINDOW_LINES if is_window else MAX_REGION_LINES
        most_characters = MAX_WINDOW_CHARS if is_window else MAX_REGION_CHARS
        if characters > most_characters or lines > most_lines:
            raise RequestError(
                f"a region has at most {most_lines} lines and {most_characters} characters; this one is larger"
            )
