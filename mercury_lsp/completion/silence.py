"""The silence gate decides which automatic text is shown, for the server and for evaluations alike.

A text is hidden if the model is not sure enough of what it saves, or if it distracts from typing, however sure the
model is. Each rule looks at the text that would be shown and at the context's blocks, never at the whole document.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from mercury_engine.text.brackets import string_starts
from mercury_engine.text.common_prefix import common_prefix
from mercury_engine.utility import Utility

from mercury_lsp.completion.postprocessing import unbalances
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.languages import language

MIN_STOCK_COMMENT_CONFIDENCE = 0.25
"""Least confidence of a comment with a stock phrase; below it the model has nothing to say."""

MAX_REASONS = 8
"""Most reasons that are kept for one request."""

MIN_REPEATED_REST = 5
"""Shortest end of a text, or rest of a line, that counts as repeated, in characters."""

LINES_BELOW, MIN_LINE_BELOW = 5, 10
"""Next lines that a completed line of at least so many characters may not repeat."""

_WORD_AT_START, _WORD_AT_END = re.compile(r"\w*"), re.compile(r"\w*$")
_NAME_AT_END = re.compile(r"(?:\.|::|->)?\w+$")
_STOCK_PHRASE = re.compile(
    r"\W*(?:(?:add|enter|implement|insert|put|write)\b.*\b(?:code|logic)\b|your\b.*\bcode\b|(?:example|sample) usage\b"
    r"|(?:call|run|test|use) the (?:class|code|function|method|program)\b)",
    re.IGNORECASE,
)
"""Phrases that models write when they have nothing to say: `Your code here`, `Test the function`."""


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
        return next((reason for rule, reason in RULES.items() if rule(text, context)), None)
    if utility.of(1.0, text, is_finished) < utility.least:
        return "the text is too short to save you anything"
    if confidence >= utility.min_probability:
        return f"at {confidence:.1%} the model is not sure enough of a text as short as this"
    return f"the model is only {confidence:.0%} sure of its text"


def breaks_a_word(text: str, context: CompletionContext) -> bool:
    """The cursor is inside a word, and the completed word does not occur nearby."""
    before, after = _WORD_AT_END.search(context.line_prefix), _WORD_AT_START.match(context.line_suffix)
    assert before is not None and after is not None
    if not before[0] or not after[0]:
        return False
    end = _WORD_AT_END.search(before[0] + text)
    joined = (end[0] if end else "") + after[0]
    above, below = "".join((*context.far, context.near)), "".join(context.suffix)
    nearby = above.rpartition("\n")[0] + "\n" + below.partition("\n")[2]  # without the cursor's own line
    return joined == after[0] or not re.search(rf"\b{re.escape(joined)}\b", nearby)


def runs_into_the_rest(text: str, context: CompletionContext) -> bool:
    """The text ends with a closing bracket right before a word, as in `close(door)close(door)`."""
    return bool(re.search(r"[)\]]\Z", text) and re.match(r"\w", context.line_suffix))


def repeats_the_rest(text: str, context: CompletionContext) -> bool:
    """The text repeats the rest of the line: its end, the rest of a word, or its start after a half-typed name."""
    ours, theirs = text.rstrip(), context.line_suffix.strip()
    if common_prefix(reversed(ours), reversed(theirs)) >= MIN_REPEATED_REST:
        return True
    begun, rest_of_word = _NAME_AT_END.search(context.line_prefix), _WORD_AT_START.match(theirs)
    if begun is None or rest_of_word is None or not theirs:
        return False
    if not context.line_suffix[0].isspace() and rest_of_word[0]:
        return ours.startswith(rest_of_word[0])
    name = begun[0] + ours
    return theirs.startswith(name) or (len(theirs) >= MIN_REPEATED_REST and name.startswith(theirs))


def leaves_a_string_open(text: str, context: CompletionContext) -> bool:
    """The text opens a string that neither it nor the rest of the line closes."""
    line, start = context.line_prefix + text, len(context.line_prefix)
    opened = string_starts(line)[-1]
    if opened is None or opened < start or _comment_mark(context) in line or '"""' in line:
        return False
    # Backticks may span lines, and Rust's ' may begin a lifetime.
    one_line_quotes = language(context.language_id).quotes.replace("`", "")
    return line[opened] in one_line_quotes and line[opened] not in context.line_suffix


def unbalances_the_line(text: str, context: CompletionContext) -> bool:
    """With the rest of the line, the text opens a bracket that nothing closes, or closes one too many."""
    prefix, rest = context.line_prefix, context.line_suffix
    if not rest.strip() or "\n" in text or _comment_mark(context) in prefix + text:
        return False
    return unbalances(text, prefix, rest)


def stands_below(text: str, context: CompletionContext) -> bool:
    """The completed line equals one of the next lines."""
    line = _completed_line(text, context)
    below = "".join(context.suffix).partition("\n")[2].split("\n", LINES_BELOW)[:LINES_BELOW]
    return len(line) >= MIN_LINE_BELOW and any(each.strip() == line for each in below)


def is_stock_comment(text: str, context: CompletionContext) -> bool:
    """Whether the completed line is a comment with a stock phrase."""
    line, mark = _completed_line(text, context), _comment_mark(context)
    return line.startswith(mark) and _STOCK_PHRASE.match(line.removeprefix(mark)) is not None


RULES: dict[Callable[[str, CompletionContext], bool], str] = {
    breaks_a_word: "the text would break the word at the cursor",
    runs_into_the_rest: "the text would run into the rest of the line",
    repeats_the_rest: "the text would repeat the rest of the line",
    leaves_a_string_open: "the text would leave a string open",
    unbalances_the_line: "the text would leave a bracket open, or close one that the rest of the line closes",
    stands_below: "the same line follows below",
}


def _completed_line(text: str, context: CompletionContext) -> str:
    """The cursor's line up to the end of the text's first line, without blanks around it."""
    return (context.line_prefix + text.partition("\n")[0]).strip()


def _comment_mark(context: CompletionContext) -> str:
    return language(context.language_id).marks.opening.strip()
