"""The protocol of both decoders.

A decoder answers with generators. Each yields the forward passes that it needs and receives their results; the
scheduler runs them, those of all requests together, and is the only place that looks at clocks and cancel flags. When a
request's time is up it throws `DeadlineReached` into the generator in place of the next result. `fill` catches it and
returns the part that it is sure of, `generate` the text so far; `rewrite` returns that there is no answer.
"""

from typing import Protocol

from mercury_engine.api import (
    Control,
    Fill,
    FillRequest,
    GenerateRequest,
    Generation,
    Rewrite,
    RewriteRequest,
)
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.results import fill_of
from mercury_engine.errors import RequestError
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.models.batching import ForwardSteps


class Decoder(Protocol):
    """Fills, rewrites and generates with one model. `autoregressive` and `diffusion` implement it."""

    contexts: ContextReader
    rules: GapRules

    @property
    def edit_format(self) -> str | None:
        """The family whose edit format the model rewrites in, "mercury" for an adapter; None if it cannot rewrite."""
        return None

    def write(self, request: FillRequest, control: Control) -> ForwardSteps[tuple[list[Hypothesis], GapContext | None]]:
        """The hypotheses of a fill, and the context; None where time was up before it was read."""

    def fill(self, request: FillRequest, control: Control) -> ForwardSteps[Fill]:
        """Fill the gap, by default with what `write` writes. Raises ModelCorrupt when the weights compute NaN."""
        return fill_of(*(yield from self.write(request, control)), control.check)

    def rewrite(self, request: RewriteRequest) -> ForwardSteps[Rewrite]:
        """Rewrite the region. Raises as `fill` does, and RequestError if the model cannot rewrite, as by default."""
        raise RequestError(
            "this model rewrites no regions; choose another for edits: mercury-lsp models use NAME --edits"
        )

    def generate(self, request: GenerateRequest, prompt: list[int], control: Control) -> ForwardSteps[Generation]:
        """Continue the prompt, which is in tokens.

        Raises as `fill` does, and RequestError if the model cannot, as by default, the prompt is too long or the schema
        is bad.
        """
        raise RequestError("this model fills gaps only and generates no text; choose another")

    def prepare(self, request: GenerateRequest) -> None:
        """Do what takes long before `generate`, on any thread; nothing by default.

        Raises RequestError if the schema is bad.
        """
        return

    def forget(self) -> None:
        """Free the device memory that only the decoder's own caches hold; by default it has none."""
        return
