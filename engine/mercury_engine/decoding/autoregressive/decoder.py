"""The decoder of causal models: drafts, verified and accepted several tokens a pass; rewriting; text."""

from contextlib import suppress

from mercury_engine.api import (
    Control,
    Fill,
    FillRequest,
    GenerateRequest,
    Generation,
    Rewrite,
    RewriteRequest,
)
from mercury_engine.decoding.autoregressive.drafting import LONGEST_MATCH, Drafters, NgramLookup
from mercury_engine.decoding.autoregressive.fit import Fit, writes_on
from mercury_engine.decoding.autoregressive.generating import GeneratedText, most_tokens, read_prompt
from mercury_engine.decoding.autoregressive.grammar import Grammars
from mercury_engine.decoding.autoregressive.regions import RegionReader
from mercury_engine.decoding.autoregressive.rewriting import Rewriter
from mercury_engine.decoding.autoregressive.speculation import Speculation
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.decoding.decoder import Decoder
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis, NextCharacters, hypotheses_of
from mercury_engine.decoding.options import AutoregressiveOptions
from mercury_engine.decoding.results import fill_of
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.prompt.edit_families import Family


class AutoregressiveDecoder(Decoder):
    """Implements `Decoder` for causal models."""

    def __init__(
        self, contexts: ContextReader, rules: GapRules, options: AutoregressiveOptions, edit_family: Family | None
    ) -> None:
        self.contexts, self.rules, drafters = contexts, rules, Drafters(contexts.tokenizer)
        self.speculation = Speculation(contexts.cache.network, drafters, options)
        self.fit = Fit(contexts, rules, self.speculation)
        self.rewriter = Rewriter(contexts.cache.network, rules.texts)
        self.grammars, self._lookahead = Grammars(rules), options.lookahead
        self.regions = RegionReader(contexts, drafters, rules, edit_family)

    @property
    def edit_format(self) -> str | None:
        return self.regions.edit_format

    def write(self, request: FillRequest, control: Control) -> ForwardSteps[tuple[list[Hypothesis], GapContext | None]]:
        cut, context = self.contexts.cut(request), None
        hypotheses = hypotheses_of(request, self.rules, cut, writes_on(request))
        first, *others = hypotheses
        with suppress(DeadlineReached):
            # several passes would read them again, and a request that fills nothing has none that reads them
            leaves = not others and not first.writes_on and request.max_steps != 0
            context = yield from self.contexts.read(request, cut.read, leaves)
            if request.foresees and context.ahead is not None:
                first.foreseen = NextCharacters(self.rules.texts)
            yield from self.speculation.write(hypotheses, context, control)
        return hypotheses, context

    def fill(self, request: FillRequest, control: Control) -> ForwardSteps[Fill]:
        hypotheses, context = yield from self.write(request, control)
        is_late = any(each.is_open for each in hypotheses)
        if context is not None and not is_late:  # a deadline is told only once: nothing would stop what follows
            with suppress(DeadlineReached):
                yield from self.fit.judge(hypotheses, context, control)
        return fill_of(hypotheses, context, control.check)

    def rewrite(self, request: RewriteRequest) -> ForwardSteps[Rewrite]:
        return self.rewriter.rewrite(request, self.regions)

    def generate(self, request: GenerateRequest, prompt: list[int], control: Control) -> ForwardSteps[Generation]:
        cache, ids = self.contexts.cache, tuple(prompt) or (self.rules.tokenizer.start_id,)
        most = most_tokens(cache.network.config.max_position_embeddings, request, ids)
        grammar = None if request.schema is None else self.grammars.of(request.schema)
        text, context = GeneratedText(request, ids, grammar, self.rules, control), GapContext([], [], 0, ids, ids)
        with suppress(DeadlineReached):
            yield from read_prompt(cache, context)
            lookup, before, verifier = NgramLookup([ids]), ids[-LONGEST_MATCH:], Verifier(cache.network, context)
            while not text.ended and len(text.ids) < most:
                found = text.forced() or lookup.find((*before, *text.ids)).draft
                draft = found[: min(self._lookahead, most - len(text.ids) - 1)]
                verifier.push(text.accept(draft, (yield from verifier.verify(draft))))
        return text.generation(len(ids), max(0, context.ends - context.tokens_read))

    def prepare(self, request: GenerateRequest) -> None:
        if request.schema is not None:
            self.grammars.of(request.schema)  # which is kept
