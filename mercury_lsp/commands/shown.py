"""What an editor shows of a fill, for the commands that print one."""

from dataclasses import dataclass

from mercury_engine.api import Fill, InferenceEngine

from mercury_lsp.completion.postprocessing import postprocess
from mercury_lsp.completion.silence import gate, why_silent
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.settings import Settings


@dataclass(frozen=True, slots=True)
class Shown:
    """A fill as an editor gets it."""

    text: str
    reason: str | None
    """Why an editor would not show it unasked; None if it would."""

    @classmethod
    def of(
        cls, fill: Fill, engine: InferenceEngine, settings: Settings, context: CompletionContext, snapshot: Snapshot
    ) -> "Shown":
        """The part of a fill that belongs at the cursor, and whether it is worth showing."""
        text = postprocess(fill.text, context, snapshot)
        if text:
            utility = gate(engine.utility, settings.eagerness)
            return cls(text, why_silent(text, fill.confidence, fill.is_finished, context, utility))
        if fill.text:
            return cls(text, f"the code around the cursor already says {fill.text!r}")
        return cls(text, "the model ends the gap at once")

    def complaint(self) -> str:
        """A line that says why it is not shown; empty if it is."""
        return f"an editor would not show this unasked: {self.reason}\n" if self.reason else ""
