"""A fill of a fixed number of tokens while typing: the engine, and other ways to get as many from the same weights.

- `ours`: the engine as it is;
- `left_to_right`: the same without drafts, one token a step;
- `recompute`: the engine's loop, but every step reads the whole context again, as a loop without caches does;
- `llama_cpp`: llama.cpp with a GGUF file of the same base model, its own prompt cache on; text before the cursor only.

No way may end its fill early: all write the same number of tokens, so that time is all they differ in. Each has
caches of its own, warm from the key before.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mercury_engine.api import Control, FillRequest, Source
from mercury_engine.decoders import decoder_of
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import AutoregressiveOptions
from mercury_engine.decoding.stopping import StopTokens
from mercury_lab.engine import Engine, finished

CONTEXT_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Timed:
    """The time of one fill in one way."""

    seconds: float
    steps: int
    tokens: int
    tokens_read: int
    accepted_from: Mapping[Source, int] = field(default_factory=dict)
    """Tokens by where they come from, in the engine's own ways."""


Way = Callable[[FillRequest], Timed]


class EndlessRules(GapRules):
    """Rules under which no fill ends before its last slot."""

    def stop_tokens(self, hypothesis: Hypothesis) -> StopTokens | None:
        """None: it cannot end."""
        return None

    def leaves_gap(self, hypothesis: Hypothesis) -> bool:
        """Allow fills that repeat the text after the gap."""
        return False


def ours(engine: Engine) -> Way:
    return _way(_endless(engine))


def left_to_right(engine: Engine) -> Way:
    return _way(_endless(engine.varied(AutoregressiveOptions(lookahead=0))))


def recompute(engine: Engine) -> Way:
    """The engine's own way, and before every step but the first one more prefill of the whole context."""
    other = _endless(engine)
    way = _way(other)

    def fill(request: FillRequest) -> Timed:
        other.cache.clear()
        found = way(request)
        seconds, read = found.seconds, found.tokens_read
        for _ in range(found.steps - 1):
            other.cache.clear()
            prefill = way(replace(request, max_steps=0))
            seconds, read = seconds + prefill.seconds, read + prefill.tokens_read
        return replace(found, seconds=seconds, tokens_read=read)

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
    return replace(request, max_slots=tokens, multiline=True, effort="high", give_up_below=0.0, utility=None)


def _endless(engine: Engine) -> Engine:
    """An engine on the same networks, with a cache of its own, that never gives up."""
    other = engine.varied()
    has_markers = engine.parts.markers is not None
    rules = EndlessRules(engine.tokenizer, engine.reader.config, engine.parts.calibration, has_markers)
    other.decoder = decoder_of(other.parts, other.decoder.contexts, rules)
    return other


def _way(engine: Engine) -> Way:
    def fill(request: FillRequest) -> Timed:
        started = time.perf_counter()
        [found], context = finished(engine.decoder.write(request, Control()), engine.reader)
        seconds = time.perf_counter() - started
        assert context is not None, "there is no deadline"
        tokens, read = len(found.ids) - found.known, context.cached.tokens_read
        return Timed(seconds, found.steps, tokens, read, found.accepted_from)

    return fill
