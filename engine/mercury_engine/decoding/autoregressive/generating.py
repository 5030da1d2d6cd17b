"""Generation: continues a text without a gap, up to its end or the end of the model's context.

Drafts from n-gram lookup are verified as for fills. Each token is chosen from the distribution after all tokens before
it, whatever was drafted, so drafts change neither a greedy text nor the distribution of a sampled one.

Dimensions: S tokens of a draft and one more, V vocabulary.
"""

from collections.abc import Sequence
from contextlib import suppress

from mercury_engine.api import PART_OF_A_CHARACTER, Control, GenerateRequest, Generation, TokenLogProbability
from mercury_engine.decoding.autoregressive.drafting import LONGEST_MATCH, NgramLookup
from mercury_engine.decoding.autoregressive.grammar import Grammar, Grammars
from mercury_engine.decoding.autoregressive.sampling import TokenSampler, log_probability
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.context_reader import GapContext
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.errors import PromptTooLong
from mercury_engine.kv_cache.cache import AdaptedTokens, BlockCache, CachedContext
from mercury_engine.models.arrays import Array
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.text.ends import begun, first_of

TOKENS_OF_A_CHARACTER = 4
"""Most tokens that a character's bytes are divided among."""

PREFILLED_AT_ONCE = 512
"""Most tokens of a prompt that one pass reads; the mask of a pass grows with their square."""

PROMPT = "prompt"
"""An adapter that no network has: the cache keeps prompts read with it apart from the near prefixes of fills."""

KEPT_TOKENS = 8_000
"""Tokens of prompts that stay cached; the two latest prompts stay whole. With only these, each of four concurrent
replies read its prompt again."""


class Generator:
    """Generates with one model."""

    def __init__(self, cache: BlockCache, rules: GapRules, lookahead: int) -> None:
        self._cache, self._rules, self._lookahead, self._grammars = cache, rules, lookahead, Grammars(rules)

    def prepare(self, request: GenerateRequest) -> None:
        """See `Decoder.prepare`: compiles the schema, which is kept."""
        if request.schema is not None:
            self._grammars.of(request.schema)

    def generate(self, request: GenerateRequest, prompt: list[int], control: Control) -> ForwardSteps[Generation]:
        prompt = prompt or [self._rules.tokenizer.start_id]
        most = most_tokens(self._cache.network.config.max_position_embeddings, request, prompt)
        grammar = None if request.schema is None else self._grammars.of(request.schema)
        text = GeneratedText(request, prompt, grammar, self._rules, control)
        context = GapContext(CachedContext([], [], 0), tuple(prompt), tuple(prompt))
        with suppress(DeadlineReached):
            yield from self._read(context)
            if most > 0:
                yield from self._write(text, context, most)
        return text.generation(len(prompt), max(0, context.ends - context.cached.tokens_read))

    def _read(self, context: GapContext) -> ForwardSteps[None]:
        """Read all but the last token of the prompt, a part at a time, into the context."""
        cached, end = context.cached, context.ends
        for part in [*range(PREFILLED_AT_ONCE, end, PREFILLED_AT_ONCE), end]:
            tokens = AdaptedTokens(PROMPT, context.near[:part], KEPT_TOKENS)
            read = yield from self._cache.context([], (), [], tokens)
            cached.before, cached.tokens_read = read.before, cached.tokens_read + read.tokens_read

    def _write(self, text: "GeneratedText", context: GapContext, most: int) -> ForwardSteps[None]:
        """Write up to `most` tokens."""
        lookup, before = NgramLookup([context.text]), context.text[-LONGEST_MATCH:]
        verifier = Verifier(self._cache.network, context)
        while not text.ended and len(text.ids) < most:
            found = text.forced() or lookup.find((*before, *text.ids)).draft
            draft = found[: min(self._lookahead, most - len(text.ids) - 1)]
            verifier.push(text.accept(draft, (yield from verifier.verify(draft))))


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
