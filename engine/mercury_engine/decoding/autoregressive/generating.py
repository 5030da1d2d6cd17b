"""Generation: continues a text without a gap, up to its end or the end of the model's context.

Drafts from n-gram lookup are verified as for fills. Each token is chosen from the distribution after all tokens before
it, whatever was drafted, so drafts change neither a greedy text nor the distribution of a sampled one. A token takes
one random number, so a seed makes the text a function of the request.

Dimensions: S tokens of a draft and one more, V vocabulary, K tokens that are left, by falling probability.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from mercury_engine.api import PART_OF_A_CHARACTER, Control, GenerateRequest, Generation, Sampling, TokenLogProbability
from mercury_engine.decoding.autoregressive.grammar import Grammar
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import checked
from mercury_engine.errors import PromptTooLong
from mercury_engine.kv_cache.cache import AdaptedTokens, BlockCache, GapContext
from mercury_engine.models.arrays import Array, FloatArray, IdArray, MaskArray, best, masked, on_host
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.text.ends import begun, first_of

SORTED_FIRST = 1024
"""Tokens sorted before all others; they nearly always hold `top_p`. Sorting a vocabulary takes some 10 ms."""

LEAST_TEMPERATURE = float(np.finfo(np.float32).tiny)
"""Below it the likeliest token is as good as certain, and float32 divides 0 by 0."""

TOKENS_OF_A_CHARACTER = 4
"""Most tokens that a character's bytes are divided among."""

PREFILLED_AT_ONCE = 512
"""Most tokens of a prompt that one pass reads; the mask of a pass grows with their square."""

PROMPT = "prompt"
"""An adapter that no network has: the cache keeps prompts read with it apart from the near prefixes of fills."""

KEPT_TOKENS = 8_000
"""Tokens of prompts that stay cached; the two latest prompts stay whole. With only these, each of four concurrent
replies read its prompt again."""


def read_prompt(cache: BlockCache, context: GapContext) -> ForwardSteps[None]:
    """Read all but the last token of the prompt, a part at a time, into the context."""
    tokens = AdaptedTokens(PROMPT, 0, KEPT_TOKENS)
    for part in [*range(PREFILLED_AT_ONCE, context.ends, PREFILLED_AT_ONCE), context.ends]:
        read = yield from cache.context([], context.near[: part + 1], [], tokens)
        context.before, context.tokens_read = read.before, context.tokens_read + read.tokens_read


class TokenSampler:
    """Chooses the tokens of one text, from left to right."""

    def __init__(self, sampling: Sampling, prompt: Iterable[int]) -> None:
        self._sampling = sampling
        self._random = np.random.default_rng(sampling.seed)
        self._counts = Counter[int]()
        """How often the text holds each token."""
        self._repeated = {*prompt} if sampling.repetition_penalty != 1 else set[int]()
        """Tokens of the prompt and of the text, where that matters."""
        penalties = sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty
        self._has_penalties = penalties != (1.0, 0.0, 0.0)

    def choose(self, logp_V: Array, hidden_V: MaskArray | None = None) -> int:
        """The next token, none of the hidden ones. Raises ModelCorrupt when its probability is NaN."""
        if hidden_V is not None:
            logp_V = masked(logp_V, hidden_V)
        if self._has_penalties:
            logp_V = self._penalised(np.array(on_host(logp_V)))
        is_certain = self._sampling.temperature < LEAST_TEMPERATURE
        token = best(logp_V) if is_certain else self._drawn(on_host(logp_V))
        checked(float(logp_V[token]))
        return token

    def accept(self, token: int) -> None:
        """Count a token of the text."""
        if self._has_penalties:
            self._counts[token] += 1
            self._repeated.add(token)

    def _penalised(self, logp_V: FloatArray) -> FloatArray:
        """The array, changed in place."""
        repeated, written = np.array([*self._repeated], np.int64), np.array([*self._counts], np.int64)
        if self._sampling.repetition_penalty != 1:
            logp_V[repeated] *= self._sampling.repetition_penalty
        times = np.array([*self._counts.values()], np.float32)
        logp_V[written] -= self._sampling.presence_penalty + self._sampling.frequency_penalty * times
        return logp_V

    def _drawn(self, logp_V: FloatArray) -> int:
        """A token drawn from what the sampling leaves of the distribution."""
        power_V = np.exp((logp_V - logp_V.max()) / self._sampling.temperature, dtype=np.float64)
        left_K = self._left(power_V)
        sums_K = np.cumsum(power_V if left_K is None else power_V[left_K])
        at = min(int(np.searchsorted(sums_K, self._random.random() * sums_K[-1], "right")), len(sums_K) - 1)
        return at if left_K is None else int(left_K[at])

    def _left(self, power_V: FloatArray) -> IdArray | None:
        """The tokens that `top_k`, `top_p` and `min_p` leave; None for all. The likeliest one has power 1."""
        sampling = self._sampling
        if not sampling.top_k and sampling.top_p >= 1:
            return np.flatnonzero(power_V >= sampling.min_p) if sampling.min_p > 0 else None
        left_K = likeliest(power_V, sampling.top_k or SORTED_FIRST)
        if sampling.top_p < 1:
            wanted = sampling.top_p * float((power_V[left_K] if sampling.top_k else power_V).sum())
            if not sampling.top_k and power_V[left_K].sum() < wanted:
                left_K = likeliest(power_V, len(power_V))
            left_K = left_K[: 1 + int(np.searchsorted(np.cumsum(power_V[left_K]), wanted))]
        return left_K[power_V[left_K] >= sampling.min_p]


def likeliest(values_V: FloatArray, count: int) -> IdArray:
    """The indices of the largest values, by falling value."""
    if count >= len(values_V):
        return np.argsort(-values_V, kind="stable")
    first_K = np.argpartition(-values_V, count - 1)[:count]
    return first_K[np.argsort(-values_V[first_K], kind="stable")]


def log_probability(logp_V: Array, token: int, alternatives: int, piece: Callable[[int], bytes]) -> TokenLogProbability:
    """What the model, before penalties and temperature, found of a token and of the likeliest ones in its place.

    `piece`: the bytes of a token.
    """
    host_V = on_host(logp_V)
    others = likeliest(host_V, alternatives).tolist() if alternatives else []

    def found(token: int, others: tuple[TokenLogProbability, ...] = ()) -> TokenLogProbability:
        data = piece(token)
        return TokenLogProbability(data.decode("utf-8", "replace"), float(host_V[token]), tuple(data), others)

    return found(token, tuple(map(found, others)))


class StreamedText:
    """Takes tokens. What may be the beginning of a stop text is told only once it is none."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str], control: Control) -> None:
        self.text = ""
        self._tokenizer, self._stop, self._on_text = tokenizer, [each for each in stop if each], control.on_text
        self._longest_stop = max(map(len, self._stop), default=0)
        self._undecoded: list[int] = []
        """Tokens at the end that are no whole character yet."""
        self._is_stopped = False
        self._told = 0
        """Number of characters that were told."""

    def add(self, token: int) -> bool:
        """Add a token; returns whether the text has reached a stop text, which is cut off."""
        self._undecoded.append(token)
        self._decode()
        self._tell(0 if self._is_stopped else max((begun(self.text, each) for each in self._stop), default=0))
        return self._is_stopped

    def finish(self) -> str:
        """Tell what was held back; returns the text."""
        self._decode(whole=True)
        self._tell(0)
        return self.text

    def _decode(self, whole: bool = False) -> None:
        added = self._tokenizer.decode(self._undecoded)
        if added.endswith(PART_OF_A_CHARACTER) and len(self._undecoded) < TOKENS_OF_A_CHARACTER and not whole:
            return
        self._undecoded = []
        searched = max(0, len(self.text) - self._longest_stop + 1)
        self.text += added
        end = first_of(self.text, self._stop, searched)
        if end is not None:
            self.text, self._is_stopped = self.text[:end], True

    def _tell(self, held_back: int) -> None:
        end = len(self.text) - held_back
        if end > self._told:
            if self._on_text is not None:
                self._on_text(self.text[self._told : end])
            self._told = end


class GeneratedText:
    """One text while it is written."""

    def __init__(
        self,
        request: GenerateRequest,
        prompt: Sequence[int],
        grammar: Grammar | None,
        rules: GapRules,
        control: Control,
    ) -> None:
        self.ids: list[int] = []
        """Its tokens; the last may be the one that ended it."""
        self.ended = False
        """Whether the model has ended it, or it has reached a stop text or the end of its grammar."""
        self._steps = 0
        self._log_probabilities: list[TokenLogProbability] = []
        self._streamed = StreamedText(rules.tokenizer, request.stop, control)
        self._sampler, self._grammar = TokenSampler(request.sampling, prompt), grammar
        self._rules, self._alternatives = rules, request.alternatives

    def forced(self) -> list[int]:
        """Tokens that the grammar forces."""
        return [] if self._grammar is None else self._grammar.forced()

    def accept(self, draft: Sequence[int], read_SV: Sequence[Array]) -> list[int]:
        """Choose tokens from the left while they are the draft's, and one after that; returns them."""
        self._steps += 1
        first = len(self.ids)
        for place, logp_V in enumerate(read_SV):
            token = self._chosen(logp_V)
            if self.ended or draft[place : place + 1] != [token]:
                break
        return self.ids[first:]

    def generation(self, prompt_tokens: int, cached_tokens: int) -> Generation:
        """The text so far, as the answer."""
        return Generation(
            self._streamed.finish(),
            "stop" if self.ended else "length",
            prompt_tokens,
            cached_tokens,
            len(self.ids),
            self._steps,
            log_probabilities=tuple(self._log_probabilities),
        )

    def _chosen(self, logp_V: Array) -> int:
        """The next token, added to the text unless it ends it."""
        token = self._sampler.choose(logp_V, None if self._grammar is None else self._grammar.hidden())
        self.ids.append(token)
        if token in self._rules.ends_text:
            self.ended = True
            return token
        if self._alternatives is not None:
            self._log_probabilities.append(
                log_probability(logp_V, token, self._alternatives, self._rules.tokenizer.piece)
            )
        self._sampler.accept(token)
        is_stopped = self._streamed.add(token)
        self.ended = is_stopped or (self._grammar is not None and self._grammar.accept(token))
        return token


def most_tokens(longest: int, request: GenerateRequest, prompt: Sequence[int]) -> int:
    """Most tokens to write after a prompt, in a text of at most `longest`. Raises PromptTooLong."""
    if len(prompt) >= longest:
        raise PromptTooLong(
            f"the prompt has {len(prompt):,} tokens, the model reads at most {longest - 1:,}; shorten it"
        )
    room = longest - len(prompt)
    return room if request.max_tokens is None else min(room, request.max_tokens)
