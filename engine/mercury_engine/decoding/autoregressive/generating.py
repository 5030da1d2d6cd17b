"""Generation: continues a text without a gap, up to its end or the end of the model's context.

Drafts from n-gram lookup are verified as for fills. Each token is chosen from the distribution after all tokens before
it, whatever was drafted, so drafts change neither a greedy text nor the distribution of a sampled one.

Dimensions: V vocabulary.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from mercury_engine.api import Control, GenerateRequest, Generation
from mercury_engine.decoding.autoregressive.ngram_lookup import LONGEST_MATCH, NgramLookup
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.decoding.hypothesis import checked
from mercury_engine.decoding.options import AutoregressiveOptions
from mercury_engine.decoding.stopping import StoppingCriteria
from mercury_engine.errors import RequestError
from mercury_engine.kv_cache.cache import AdaptedTokens, CachedContext
from mercury_engine.models.arrays import Array, best
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.models.network import Network
from mercury_engine.prompt.tokenizer import Tokenizer

PREFILLED_AT_ONCE = 512
"""Most tokens of a prompt that one pass reads; the mask of a pass grows with their square."""

PROMPT = "prompt"
"""An adapter that no network has: the cache keeps prompts read with it apart from the near prefixes of fills."""

TOKENS_OF_A_CHARACTER = 4
"""Most tokens that a character's bytes are divided among."""


class Generator:
    """Generates with one model."""

    def __init__(
        self, network: Network, contexts: ContextReader, stopping: StoppingCriteria, options: AutoregressiveOptions
    ) -> None:
        self._network, self._cache, self._tokenizer = network, contexts.cache, contexts.tokenizer
        self._ends, self._lookahead = frozenset(stopping.ends_text.tolist()), options.lookahead

    def generate(self, request: GenerateRequest, control: Control) -> ForwardSteps[Generation]:
        """See `Decoder.generate`."""
        prompt = self._encoded(request) or [self._tokenizer.start_id]
        room = self._network.config.max_position_embeddings - len(prompt)
        if room < 1:
            raise RequestError(
                f"the prompt has {len(prompt):,} tokens, the model reads at most {room + len(prompt) - 1:,}; shorten it"
            )
        most = room if request.max_tokens is None else min(room, request.max_tokens)
        written = WrittenText(self._tokenizer, request.stop, control.on_text)
        context = CachedContext([], [], 0)
        with suppress(DeadlineReached):
            yield from self._read(prompt, context)
            if most > 0:
                yield from self._write(prompt, context, written, most)
        written.finish()
        return Generation(
            written.text,
            "stop" if written.ended else "length",
            prompt_tokens=len(prompt),
            cached_tokens=max(0, len(prompt) - 1 - context.tokens_read),
            tokens=len(written.ids),
            steps=written.steps,
            elapsed=0.0,
        )

    def _encoded(self, request: GenerateRequest) -> list[int]:
        encode = self._tokenizer.encode_marked if request.marked else self._tokenizer.encode
        return encode(request.prompt)

    def _read(self, prompt: list[int], context: CachedContext) -> ForwardSteps[None]:
        """Read all but the last token of the prompt, a part at a time, into the context."""
        before = tuple(prompt[:-1])
        for end in [*range(PREFILLED_AT_ONCE, len(before), PREFILLED_AT_ONCE), len(before)]:
            read = yield from self._cache.context([], (), [], AdaptedTokens(PROMPT, before[:end]))
            context.before, context.tokens_read = read.before, context.tokens_read + read.tokens_read

    def _write(
        self, prompt: list[int], context: CachedContext, written: "WrittenText", most: int
    ) -> ForwardSteps[None]:
        """Write up to `most` tokens."""
        lookup, verifier = (
            NgramLookup([prompt]),
            Verifier(self._network, context.before, prompt[-1], len(prompt) - 1),
        )
        while not written.ended and len(written.ids) < most:
            found = lookup.find((*prompt[-LONGEST_MATCH:], *written.ids)).draft
            draft = found[: min(self._lookahead, most - len(written.ids) - 1)]
            [read_SV] = yield from verifier.verify([[]], [draft])
            written.steps += 1
            first = len(written.ids)
            self._accept(written, draft, read_SV)
            verifier.push(written.ids[first:])

    def _accept(self, written: "WrittenText", draft: Sequence[int], read_SV: Sequence[Array]) -> None:
        """Accept tokens from the left while they are the draft's, and one after that."""
        for place, logp_V in enumerate(read_SV):
            token = best(logp_V)
            checked(float(logp_V[token]))
            written.add(token, is_end=token in self._ends)
            if written.ended or draft[place : place + 1] != [token]:
                break


class WrittenText:
    """The tokens written so far and their text, which ends before a stop text; tells of each part of it once."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str], on_text: Callable[[str], None] | None) -> None:
        self.ids: list[int] = []
        self.text = ""
        self.ended = False
        """Whether the model has ended it, or a stop text was reached."""
        self.steps = 0
        self._tokenizer, self._stop, self._on_text = tokenizer, [each for each in stop if each], on_text
        self._longest_stop = max(map(len, self._stop), default=0)
        self._undecoded: list[int] = []
        """Tokens at the end that are no whole character yet."""
        self._told = 0
        """Number of characters that were told."""

    def add(self, token: int, is_end: bool) -> None:
        """Add a token, or end the text with one."""
        self.ids.append(token)
        self.ended = is_end
        if not is_end:
            self._undecoded.append(token)
            self._decode()
            self._tell(self._held_back())

    def finish(self) -> None:
        """Tell what was held back."""
        self._decode(whole=True)
        self._tell(0)

    def _decode(self, whole: bool = False) -> None:
        added = self._tokenizer.decode(self._undecoded)
        if added.endswith("\ufffd") and len(self._undecoded) < TOKENS_OF_A_CHARACTER and not whole:
            return
        self._undecoded = []
        searched = max(0, len(self.text) - self._longest_stop + 1)
        self.text += added
        found = [at for each in self._stop if (at := self.text.find(each, searched)) >= 0]
        if found:
            self.text, self.ended = self.text[: min(found)], True

    def _held_back(self) -> int:
        """Length of the longest end of the text with which a stop text may begin."""
        if self.ended:
            return 0
        longest = min(self._longest_stop - 1, len(self.text))
        ends = (self.text[-size:] for size in range(longest, 0, -1))
        return next((len(end) for end in ends if any(each.startswith(end) for each in self._stop)), 0)

    def _tell(self, held_back: int) -> None:
        end = len(self.text) - held_back
        if self._on_text is not None and end > self._told:
            self._on_text(self.text[self._told : end])
            self._told = end
