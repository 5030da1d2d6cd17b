"""Which of several fills of one line is the answer: the one that fits the code around it best.

A model with a gap format is surest of what that suggests, often a text after which the lines below make no sense. So a
text's fit is the sum of two log-probabilities: of the text in the gap, and of the text with the lines below it, written
left to right by the model without seeing them. The gap is also filled with the lines below inside the format, as the
model was pretrained, which finds other texts. Without a gap format the ranking gained nothing
(docs/decisions/denoising.md).
"""

from dataclasses import replace

from mercury_engine.api import Control, FillRequest
from mercury_engine.decoding.autoregressive.ends import is_asked, lines_below
from mercury_engine.decoding.autoregressive.speculation import Speculation
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network


class LineRanking:
    """Ranks the texts of one model, which has a gap format."""

    def __init__(self, network: Network, contexts: ContextReader, rules: GapRules, speculation: Speculation) -> None:
        self._network, self._contexts, self._rules, self._speculation = network, contexts, rules, speculation

    def rank(
        self, request: FillRequest, control: Control, hypotheses: list[Hypothesis], context: GapContext
    ) -> ForwardSteps[None]:
        """Add what the model writes as it was pretrained, and note how well each text fits."""
        cut = self._contexts.cut(request)
        whole = yield from self._contexts.read_whole(request, cut.read)
        context.cached.tokens_read += whole.cached.tokens_read
        other, *_ = self._rules.begin(request, cut)
        yield from self._speculation.write(request, replace(control, on_step=None), [other], whole)
        hypotheses.append(other)
        encode = self._contexts.tokenizer.encode
        texts = [cut.spell + self._rules.text(each) for each in hypotheses]
        ends = self._rules.stopping.at(request.follows, request.multiline, "")
        assert ends is not None, "a gap format has a token that ends the gap"
        in_gap = Verifier(self._network, context, cut.known)
        scores = yield from in_gap.score([encode(text) for text in texts], ends.tokens)
        above = yield from self._contexts.read_above(request, cut.read)
        context.cached.tokens_read += above.cached.tokens_read
        left_to_right, below = Verifier(self._network, above, cut.known), lines_below("".join(request.suffix))
        written = yield from left_to_right.score([encode(text + below) for text in texts])
        for hypothesis, *nats in zip(hypotheses, scores, written, strict=True):
            hypothesis.fit = sum(nats)


def is_ranked(request: FillRequest) -> bool:
    """Whether the candidates of a fill are ranked: those of one line of code that was asked for, with lines below."""
    if request.candidates < 2 or request.multiline or not is_asked(request):
        return False
    return bool(lines_below("".join(request.suffix)))
