"""The silence gate decides which automatic text is shown, for the server and for evaluations alike."""

from dataclasses import dataclass, field

from mercury_engine.utility import Utility

from mercury_lsp.completion.distraction import is_stock_comment, why_distracting
from mercury_lsp.context.context import CompletionContext

MIN_STOCK_COMMENT_CONFIDENCE = 0.25
"""Least confidence of a comment with a stock phrase; below it the model has nothing to say."""

MAX_REASONS = 8
"""Most reasons that are kept for one request."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Reasons why a request about a document found nothing, or nothing more, for people to read."""

    uri: str
    reasons: list[str] = field(default_factory=list)

    def add(self, reason: str, uri: str | None = None) -> None:
        """Keep a reason, unless there are too many or `uri` is another document."""
        if uri in (None, self.uri) and reason not in self.reasons and len(self.reasons) < MAX_REASONS:
            self.reasons.append(reason)


def why_silent(
    text: str, confidence: float, is_finished: bool, context: CompletionContext, utility: Utility
) -> str | None:
    """Why a text is not shown automatically at the context's cursor, for people to read; None if it is shown."""
    if not text:
        return "the model has nothing to add"
    if confidence < MIN_STOCK_COMMENT_CONFIDENCE and is_stock_comment(text, context):
        return f"it is a stock comment, of which the model is only {confidence:.0%} sure"
    if utility.is_enough(confidence, text, is_finished):
        return why_distracting(text, context)
    if utility.of(1.0, text, is_finished) < utility.least:
        return "the text is too short to save you anything"
    if confidence >= utility.min_probability:
        return f"at {confidence:.1%} the model is not sure enough of a text as short as this"
    return f"the model is only {confidence:.0%} sure of its text"
