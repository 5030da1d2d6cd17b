"""A fill of a fixed number of tokens while typing: the engine, and other ways to get as many from the same weights.

- `ours`: the engine as it is;
- `left_to_right`: its reader alone with a KV cache, one token a step;
- `recompute`: the engine's loop, but every step reads the whole context again, as a loop without caches does;
- `llama_cpp`: llama.cpp with a GGUF file of the same base model, its own prompt cache on; text before the cursor only.

No way may end its fill early: all settle the same number of tokens, so that time is all they differ in. Each has
caches of its own, warm from the key before.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mercury_engine.api import FillRequest, Source
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.loop import Denoiser
from mercury_engine.denoising.verifier import CanvasContext, Verifier
from mercury_engine.engine import Engine
from mercury_engine.kv_cache.cache import BlockCache, CachedContext
from mercury_engine.loading import ModelParts
from mercury_engine.models.arrays import Array, log_softmax
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network

NEVER_LOGIT = -1e9
"""Log-probability of the end marker; finite, because it is multiplied by weights that may be 0."""

CONTEXT_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Timed:
    """The time of one fill in one way."""

    seconds: float
    steps: int
    tokens: int
    tokens_read: int
    settled_from: Mapping[Source, int] = field(default_factory=dict)
    """Tokens by where they come from, in the engine's own ways."""


Way = Callable[[FillRequest], Timed]


class Endless(Denoiser):
    """A denoiser that always fills the last slot."""

    def write(
        self, canvases: list[Canvas], canvas_context: CanvasContext, window: int | None = None
    ) -> list[Array | None]:
        """The writer's log probabilities, without the end."""
        found = super().write(canvases, canvas_context, window)
        for written_SV in found:
            if written_SV is not None:
                written_SV[:, self.vocabulary.end_id] = NEVER_LOGIT
        return found

    def mix(
        self, request: FillRequest, canvas: Canvas, written_V: Array | None, read_V: Array, drafts_before: int
    ) -> Array:
        """The mixed log probabilities, without the end."""
        mixed_V = super().mix(request, canvas, written_V, read_V, drafts_before)
        mixed_V[self.vocabulary.end_id] = NEVER_LOGIT
        return log_softmax(mixed_V)

    def goes_beyond(self, canvas: Canvas) -> bool:
        """Allow fills that repeat the text after the gap."""
        return False


class Forgetful(Endless):
    """A denoiser that prefills the whole context again before every step but the first; it writes the same text."""

    remembered: "RememberedCache"

    def _step(
        self, request: FillRequest, live: list[Canvas], canvas_context: CanvasContext, verifier: Verifier
    ) -> ForwardSteps[None]:
        """One step, after another prefill of the whole context."""
        if live[0].steps:
            canvas_context.context = yield from self.remembered.again()
        yield from super()._step(request, live, canvas_context, verifier)


class RememberedCache(BlockCache):
    """A cache that remembers the last request, so that its context can be prefilled again."""

    def context(self, far: Any, near: Any, suffix: Any, adapted: Any = None) -> ForwardSteps[CachedContext]:
        """The context of the request."""
        self._asked = far, near, suffix, adapted
        return super().context(*self._asked)

    def again(self) -> ForwardSteps[CachedContext]:
        """The context of the last request, without any cache."""
        self.clear()
        return super().context(*self._asked)


def ours(engine: Engine) -> Way:
    return _way(_with(engine, Endless, engine.writer))


def left_to_right(engine: Engine) -> Way:
    other = _with(engine, Endless, None)
    other.denoiser.rule = replace(engine.denoiser.rule, decides="reader", drafts="none")
    return _way(other)


def recompute(engine: Engine) -> Way:
    other = _with(engine, Forgetful, engine.writer)
    remembered = RememberedCache(engine.reader, engine.cache.start_id)
    assert isinstance(other.denoiser, Forgetful)
    other.context_reader.cache = other.denoiser.remembered = remembered
    way = _way(other)

    def fill(request: FillRequest) -> Timed:
        other.cache.clear()
        return way(request)

    return fill


def llama_cpp(file: Path, threads: int) -> Way:
    """llama.cpp; raises ImportError if the binding is missing, FileNotFoundError if the file is."""
    if not file.is_file():
        raise FileNotFoundError(f"no {file}; name a GGUF file of the base model with --gguf")
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path = str(file)
    options.n_ctx, options.n_parallel, options.n_gpu_layers, options.verbosity = CONTEXT_TOKENS, 1, 0, -1
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(options)

    def fill(request: FillRequest) -> Timed:
        asked = {
            "prompt": "".join((*request.far, request.near)),
            "max_tokens": request.max_slots,
            "ignore_eos": True,
            "temperature": 0.0,
            "cache_prompt": True,
        }
        started = time.perf_counter()
        answer = server.handle_completions(asked)
        seconds = time.perf_counter() - started
        tokens = int(answer["usage"]["completion_tokens"])
        return Timed(seconds, tokens, tokens, int(answer.get("timings", {}).get("prompt_n", 0)))

    return fill


def fixed(request: FillRequest, tokens: int) -> FillRequest:
    """The request for a fill of exactly `tokens` tokens, over several lines if necessary."""
    return replace(request, max_slots=tokens, multiline=True, effort="high", give_up_below=0.0, worth=None, check=None)


def _with(engine: Engine, kind: type[Endless], writer: Network | None) -> Engine:
    """An engine on the same networks with its own cache and loop; it never gives up."""
    markers = engine.context_reader.markers
    other = Engine(ModelParts(engine.path, engine.reader, writer, engine.tokenizer, markers=markers))
    rule = engine.denoiser.rule
    other.denoiser = kind(engine.reader, writer, engine.tokenizer, rule, has_markers=markers is not None)
    return other


def _way(engine: Engine) -> Way:
    def fill(request: FillRequest) -> Timed:
        counted: list[Canvas] = []
        run = engine.denoiser.run

        def noted(request: FillRequest, canvases: list[Canvas], *rest: Any) -> ForwardSteps[None]:
            counted.extend(canvases)
            return run(request, canvases, *rest)

        engine.denoiser.run = noted  # type: ignore[method-assign]
        started = time.perf_counter()
        try:
            found = engine.fill(request)
        finally:
            engine.denoiser.run = run  # type: ignore[method-assign]
        seconds = time.perf_counter() - started
        tokens = counted[0].settled - counted[0].known
        return Timed(seconds, found.steps, tokens, found.tokens_read, found.settled_from)

    return fill
