"""The silence gate: which text that nobody asked for is shown. Whatever shows or judges suggestions asks here."""

from mercury_engine.utility import Utility

from mercury_lsp.completion.distraction import is_distracting
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.settings import Eagerness

COST_FACTORS: dict[Eagerness, float] = {"low": 2.0, "medium": 1.0, "high": 0.5}
"""How much a wrong text costs this user, and how much a text must save, relative to the model's own rule."""


def gate(model: Utility, eagerness: Eagerness) -> Utility:
    """When a text is worth showing unasked: the model's own rule, as eagerly as the user wants it."""
    return model.times(COST_FACTORS[eagerness])


def why_silent(
    text: str, confidence: float, is_finished: bool, context: CompletionContext, utility: Utility
) -> str | None:
    """Why a text is not shown unasked at the context's cursor, for people to read; None if it is shown."""
    if not text:
        return "there is nothing to show"
    value = utility.of(confidence, text, is_finished)
    if value < utility.least:
        return f"its utility is {value:.1f} characters, the least is {utility.least:.1f} (confidence {confidence:.2f})"
    return "it would distract, see completion/distraction.py" if is_distracting(text, context) else None
