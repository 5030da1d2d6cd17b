"""Attention layouts: what the slots of a canvas see besides each other, and how a pass over them is requested.

| layout | before the slots | after them | slots are opened |
| --- | --- | --- | --- |
| `CausalContext` | text read causally, cached exactly | the same | up to the longest fill |
| `TwoSided` | text that sees the slots, cached approximately | the same, or masks | as many as the gap has tokens |
| `Blocks` | text read in blocks, cached exactly | nothing | up to the end of their block |
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise

import numpy as np

from mercury_engine.api import FillRequest
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.decoding.diffusion.rules import Rule
from mercury_engine.decoding.diffusion.texts import Ends, Text
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.kv_cache.masked import BlockwiseCache, TwoSidedCache, TwoSides
from mercury_engine.models.batching import ForwardResult, ForwardSteps
from mercury_engine.models.network import ForwardRequest, MaskedAttention, Network
from mercury_engine.models.row_answers import RowAnswers, RowQuestion, Tokens
from mercury_engine.prompt.tokenizer import Tokenizer

TOKENS_BEFORE, TOKENS_AFTER = 384, 128
"""Most tokens of text on each side; with a 0.5B on two cores, a pass over 512 tokens and 32 slots takes a second."""

NEAREST_BEFORE, NEAREST_AFTER = 192, 64
"""What is read first when the user has jumped elsewhere; the rest is read in a pause."""

CUT_TOKENS = 32
"""The start of a long text moves by this many tokens at a time, because each move reads the text again."""

FIRST_SLOTS = 8
"""Slots at the start of a fill, if their number is searched or the model changes it."""

LONGEST_SEEN = 4096
"""Most tokens of a text whose tokens all see each other: one pass reads them."""

OPEN_SLOTS, MOST_AHEAD = 32, 128
"""To continue such a text, this many slots are revealed before the next ones, as in LLaDA's sampler; masks after them
show the model how long the text may become."""

READ_AT_ONCE = 512
"""Most tokens of a prompt in blocks that one pass reads."""

NOTHING = TwoSides((), ())


@dataclass(slots=True)
class Around:
    """The text around the canvases of one request."""

    seen: TwoSides = NOTHING
    whole: TwoSides = NOTHING
    """The same with the part that would take too long to read."""
    context: GapContext | None = None
    """What was read; None before the first pass."""
    cache: TwoSidedCache | None = None
    """A cache of its own for a text that is continued, so that it does not depend on what was read before."""
    known: int = 0
    """Number of tokens of a prompt that are not read again."""
    told: RowAnswers | None = None
    """The answers about the first step's masks, if the search for the length has asked about them."""

    def after(self, read: int, unread: int) -> GapContext:
        """The context after the first pass, which has read so many tokens."""
        before = self.seen.before
        return GapContext([], [], read, before, before, (self.seen.after,), unread)


class CausalContext:
    """Text is read causally, and the slots are denoised with an adapter, in two frames: toward the text before them
    they count up from it, toward the text after them down to it."""

    ends: Ends = "end marker"
    attention = None
    at_once = None
    """Most texts that a pass tells of."""

    def __init__(self, network: Network, contexts: ContextReader, options: DiffusionOptions) -> None:
        self._contexts, config = contexts, network.config
        self.tokens = Tokens(config.mask_id, config.end_id if options.searches_length else None)
        self._vocabulary = config.vocab_size + 2

    def read(self, request: FillRequest, near: list[int]) -> ForwardSteps[Around]:
        """The text around a gap, after reading the part that the first pass does not read."""
        return Around(context=(yield from self._contexts.read(request, near)))

    def slots(self, around: Around, text: Text) -> int:
        """The number of slots to open after the accepted tokens."""
        return text.length - len(text.written.ids)

    def told(self, around: Around, texts: Sequence[Text], rule: Rule) -> ForwardSteps[list[RowAnswers]]:
        """The answers of one pass about the slots of all texts, for a step by the rule."""
        context = around.context
        assert context is not None
        rows = [[context.near[-1], *text.written.ids, *text.canvas.ids.tolist()] for text in texts]
        lengths, slots = [*map(len, rows)], [len(text.canvas) for text in texts]
        wanted = [range(end - 1 - each, end - 1) for end, each in zip(accumulate(lengths), slots, strict=True)]
        result: ForwardResult = yield ForwardRequest(
            np.concatenate(rows),
            context.before,
            context.ends,
            lengths if len(rows) > 1 else (),
            [*chain(*wanted)],
            _asked(texts, slots, self._vocabulary, rule, shift=1),
            block=None,
            after=context.after,
        )
        return [result.told.part(slice(*part)) for part in pairwise(accumulate(slots, initial=0))]


class _Seeing:
    """A layout whose passes read the text around the slots, each for one text."""

    ends: Ends
    at_once = 1

    def __init__(self, network: Network, attention: MaskedAttention, tokenizer: Tokenizer) -> None:
        self.attention, self.tokens, self._tokenizer = attention, Tokens(attention.mask_id), tokenizer
        self._vocabulary, self.longest = network.config.vocab_size, network.config.max_position_embeddings

    def read(self, request: FillRequest, near: list[int]) -> ForwardSteps[Around]:
        """See `CausalContext.read`: the first pass reads all of it, but a request of no steps asks for none."""
        whole, limit = self.sides(request, near), request.unread_limit
        if request.max_steps == 0:
            yield from self._read_again(whole)
        is_late = limit is not None and self._unread(whole) > limit
        return Around(self.sides(request, near, is_late) if is_late else whole, whole)

    def sides(self, request: FillRequest, near: list[int], is_late: bool = False) -> TwoSides:
        """The text to read around a gap, with `near` right before it: whole blocks, so that the ends rarely move."""
        before, after = (NEAREST_BEFORE, NEAREST_AFTER) if is_late else (TOKENS_BEFORE, TOKENS_AFTER)
        near = near[-(-max(0, len(near) - before) // CUT_TOKENS) * CUT_TOKENS :]
        above = _nearest(map(self._tokenizer.block, reversed(request.far)), before - len(near))
        below = _nearest(map(self._tokenizer.block, request.suffix if self.ends == "last slot" else ()), after)
        ahead = *(token for block in reversed(above) for token in block), *near
        return TwoSides(
            ahead or (self._tokenizer.start_id,), tuple(token for block in below for token in block)[:after]
        )

    def _unread(self, sides: TwoSides) -> int:
        """Number of tokens that the first pass would read."""
        raise NotImplementedError

    def _read_again(self, sides: TwoSides) -> ForwardSteps[None]:
        """Read a text again, unless exactly this text was read."""
        raise NotImplementedError


class TwoSided(_Seeing):
    """All tokens of a text see each other. A pass computes the slots, and what is new around them, over the keys and
    values of an earlier pass over the whole text (`kv_cache.masked`)."""

    ends: Ends = "last slot"

    def __init__(
        self, network: Network, attention: MaskedAttention, tokenizer: Tokenizer, options: DiffusionOptions
    ) -> None:
        super().__init__(network, attention, tokenizer)
        if options.searches_length:
            self.tokens = Tokens(attention.mask_id, None, attention.delete_id, attention.expand_id)
        self.longest, self._exact = min(self.longest, LONGEST_SEEN), options.exact
        self.cache = TwoSidedCache(network, int(attention.shifted), options.exact)

    def continued(self, prompt: list[int]) -> ForwardSteps[Around]:
        """The text before one without a gap; the first pass reads it."""
        yield from ()
        return Around(TwoSides(tuple(prompt), ()), cache=self.cache.empty())

    def slots(self, around: Around, text: Text) -> int:
        """See `CausalContext.slots`."""
        accepted = len(text.written.ids)
        left = text.length - accepted
        return left if around.cache is None else min(OPEN_SLOTS - accepted % OPEN_SLOTS, left)

    def told(self, around: Around, texts: Sequence[Text], rule: Rule) -> ForwardSteps[list[RowAnswers]]:
        """The answers of a pass about the text's slots."""
        [text] = texts
        if around.told is not None:
            told, around.told = around.told, None
            return [told]
        accepted, slots = text.written.ids, text.canvas.ids.tolist()
        sides, inside, cache = around.seen, [*accepted, *slots], around.cache or self.cache
        if around.cache is not None:
            ahead = min(MOST_AHEAD, text.length - len(inside))
            sides, inside = TwoSides((*sides.before, *accepted), (self.tokens.mask,) * ahead), slots
        question = _asked(texts, [len(slots)], self._vocabulary, rule, int(self.attention.shifted))
        read = 0 if around.context else cache.new(sides)
        told = yield from cache.reread(sides, inside, question)
        self._note(around, read)
        return [told]

    def told_of_masks(
        self, around: Around, text: Text, lengths: Sequence[int], rule: Rule
    ) -> ForwardSteps[list[RowAnswers]]:
        """The answers about a gap of masks, for each length; the lengths share a pass."""
        insides, questions = list[list[int]](), list[RowQuestion]()
        for slots in lengths:
            text.open(slots)
            insides.append([*text.written.ids, *text.canvas.ids.tolist()])
            questions.append(RowQuestion.of(text.hidden(slots), self._vocabulary, rule.choice.draws))
        read = 0 if around.context else self.cache.new(around.seen)
        told = yield from self.cache.reread_together(around.seen, insides, questions)
        self._note(around, read)
        return told

    def _note(self, around: Around, read: int) -> None:
        """Note what the first pass has read; stale and omitted text counts as unread."""
        if around.context is None:
            unread = 0 if self.cache.is_exact(around.whole) else max(self.cache.new(around.whole), 1)
            around.context = around.after(read, unread)

    def _unread(self, sides: TwoSides) -> int:
        return 0 if self._exact else self.cache.new(sides)

    def _read_again(self, sides: TwoSides) -> ForwardSteps[None]:
        if not self.cache.is_exact(sides):
            question = RowQuestion.of([None] * FIRST_SLOTS, self._vocabulary)
            yield from self.cache.read(sides, [self.tokens.mask] * FIRST_SLOTS, question)


class Blocks(_Seeing):
    """A text is denoised block after block: the rows of a block see each other and all earlier blocks, which stay as
    they are (`kv_cache.masked`). Blocks are counted from the start of the text, so that the first one denoised may
    begin with tokens of the text before it."""

    ends: Ends = "text below"

    def __init__(self, network: Network, attention: MaskedAttention, tokenizer: Tokenizer) -> None:
        super().__init__(network, attention, tokenizer)
        assert attention.block is not None
        self._block, self.cache = attention.block, BlockwiseCache(network, attention.block, attention.mask_id)

    def continued(self, prompt: list[int]) -> ForwardSteps[Around]:
        """The text before one without a gap, after reading its whole blocks."""
        sides = TwoSides(tuple(prompt), ())
        known = len(prompt) // self._block * self._block - self._unread(sides)
        yield from self._read_again(sides)
        return Around(sides, known=known)

    def slots(self, around: Around, text: Text) -> int:
        """See `CausalContext.slots`."""
        return self._block - (len(around.seen.before) + len(text.written.ids)) % self._block

    def told(self, around: Around, texts: Sequence[Text], rule: Rule) -> ForwardSteps[list[RowAnswers]]:
        """The answers of a pass about the slots that may be revealed next: those of a part of the block.

        Where a row predicts the token of the next one, the last row before a block tells of its first slot, alone.
        """
        [text] = texts
        ids = [*around.seen.before, *text.written.ids]
        rows = [*ids, *text.canvas.ids.tolist()]
        unread, shifted = self._unread(around.seen), self.attention.shifted
        place, part = len(ids) % self._block, self.attention.part or self._block
        start, slots = len(ids) - place, len(text.canvas) if text.is_last else part - place % part
        is_alone = shifted and not place and start > 0
        if is_alone:
            rows, start, slots = ids, start - self._block, 1
        wanted = [max(start, row - shifted) for row in range(len(ids), len(ids) + slots)]
        question = _asked(texts, [slots], self._vocabulary, rule, int(shifted))
        question = replace(question, reveal=None) if is_alone else question
        told = yield from self.cache.read(rows, start, wanted, question)
        around.context = around.context or around.after(unread, self._unread(around.whole))
        return [told]

    def _unread(self, sides: TwoSides) -> int:
        return self.cache.unread(sides.before)

    def _read_again(self, sides: TwoSides) -> ForwardSteps[None]:
        for end in [*range(READ_AT_ONCE, len(sides.before), READ_AT_ONCE), len(sides.before)]:
            blocks = sides.before[: end // self._block * self._block]
            if self.cache.unread(blocks):
                yield from self.cache.read(blocks, len(blocks), [])


Layout = CausalContext | TwoSided | Blocks


def layout_of(network: Network, contexts: ContextReader, options: DiffusionOptions) -> Layout:
    """The layout of a masked model."""
    attention = network.config.masked_attention
    if attention is None:
        return CausalContext(network, contexts, options)
    if attention.block is None:
        return TwoSided(network, attention, contexts.tokenizer, options)
    return Blocks(network, attention, contexts.tokenizer)


def _asked(texts: Sequence[Text], slots: Sequence[int], vocabulary: int, rule: Rule, shift: int) -> RowQuestion:
    """The question about the first `slots` of every text, for a step by the rule."""
    draws = rule.choice.draws or any(text.written.rank for text in texts)
    hidden = [hidden_V for text, count in zip(texts, slots, strict=True) for hidden_V in text.hidden(count)]
    question, [text, *others] = RowQuestion.of(hidden, vocabulary, draws), texts
    if rule.settles:
        masks = [text.canvas.is_mask[:count] for text, count in zip(texts, slots, strict=True)]
        question = replace(question, open_W=np.concatenate(masks))
    if others or text.is_last or text.written.rank:
        return question
    return replace(question, reveal=rule.ahead(text.canvas[: slots[0]], text.number, shift, text.random))


def _nearest(blocks: Iterator[tuple[int, ...]], budget: int) -> list[tuple[int, ...]]:
    """The first blocks, until one reaches beyond the budget."""
    found = list[tuple[int, ...]]()
    for block in blocks:
        if budget <= 0:
            break
        found.append(block)
        budget -= len(block)
    return found
