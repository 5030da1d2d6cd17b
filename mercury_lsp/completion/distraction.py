"""Texts that distract from typing: reasons to show nothing unasked, however sure the model is.

Each rule looks at the text that would be shown and at the context's blocks, never at the whole document.
"""

import re
from collections.abc import Callable

from mercury_engine.text.brackets import string_starts
from mercury_engine.text.common_prefix import common_prefix

from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.languages import language

NEXT_LINES = 3
"""Lines below the cursor that a text must not repeat, blank ones not counted."""

MIN_REPEATED_CHARS = 10
"""Shortest line that counts as repeated: `return nil` may well stand twice, `}` always does."""

MIN_REPEATED_REST = 5
"""Characters at the end of a text that the rest of the line may not end with, too."""

_WORD_AT_START, _WORD_AT_END = re.compile(r"\w*"), re.compile(r"\w*$")
_TO_DO = re.compile(r"\b(TODO|FIXME|XXX)\b")
_STOCK_PHRASE = re.compile(
    r"\W*(?:(?:add|enter|implement|insert|put|write)\b.*\b(?:code|logic)\b|your\b.*\bcode\b|(?:example|sample) usage\b"
    r"|(?:call|run|test|use) the (?:class|code|function|method|program)\b)",
    re.IGNORECASE,
)
"""What models write where they have nothing to say: `Your code here`, `Test the function`."""


def why_distracting(text: str, context: CompletionContext) -> str | None:
    """Why a text is not shown unasked, for people to read; None if none of the rules below is against it."""
    return next((reason for rule, reason in RULES.items() if rule(text, context)), None)


def breaks_a_word(text: str, context: CompletionContext) -> bool:
    """The cursor is inside a word, and the text does not make a word of it that stands nearby."""
    before, after = _WORD_AT_END.search(context.line_prefix), _WORD_AT_START.match(context.line_suffix)
    assert before is not None and after is not None
    if not before[0] or not after[0]:
        return False
    end = _WORD_AT_END.search(before[0] + text)
    joined = (end[0] if end else "") + after[0]
    return joined == after[0] or not re.search(rf"\b{re.escape(joined)}\b", _nearby(context))


def runs_into_the_rest(text: str, context: CompletionContext) -> bool:
    """The text ends with a closing bracket right before a word, as in `close(door)close(door)`."""
    return bool(re.search(r"[)\]]\Z", text) and re.match(r"\w", context.line_suffix))


def repeats_the_rest(text: str, context: CompletionContext) -> bool:
    """The text ends like the rest of the line, so that it would stand there twice."""
    ours, theirs = text.rstrip(), context.line_suffix.rstrip()
    return common_prefix(reversed(ours), reversed(theirs)) >= MIN_REPEATED_REST


def repeats_a_next_line(text: str, context: CompletionContext) -> bool:
    """The line, completed, is one of the next few lines."""
    line = _completed_line(text, context)
    if context.line_suffix.strip() or len(line) < MIN_REPEATED_CHARS:
        return False
    below = [line.strip() for line in "".join(context.suffix).split("\n")[1:] if line.strip()]
    return line in below[:NEXT_LINES]


def repeats_a_header(text: str, context: CompletionContext) -> bool:
    """The line, completed, is the header of a block around the cursor."""
    indent, line = _indent(context.line_prefix), _completed_line(text, context)
    if len(line) < MIN_REPEATED_CHARS or line not in _text_above(context):
        return False  # nearly always
    for above in reversed(_lines_above(context)):
        if above.strip() and _indent(above) < indent:
            indent = _indent(above)
            if above.strip() == line:
                return True
    return False


def comments_on_a_body(text: str, context: CompletionContext) -> bool:
    """The text is a comment as the first line of a block."""
    if context.line_prefix.strip() or not text.lstrip().startswith(_comment_mark(context)):
        return False
    above = next((line for line in reversed(_lines_above(context)) if line.strip()), "")
    return _indent(above) < len(context.line_prefix)


def imports_again(text: str, context: CompletionContext) -> bool:
    """The line, completed, is an import that stands nearby."""
    line, words = _completed_line(text, context), language(context.language_id).import_words
    if not words or not line.startswith(words):
        return False
    return line in map(str.strip, (*_lines_above(context), *"".join(context.suffix).split("\n")[1:]))


def leaves_a_string_open(text: str, context: CompletionContext) -> bool:
    """The text opens a string that neither it nor the rest of the line closes."""
    line, start = context.line_prefix + text, len(context.line_prefix)
    opened = string_starts(line)[-1]
    if opened is None or opened < start or _comment_mark(context) in line or '"""' in line:
        return False
    return line[opened] in _one_line_quotes(context) and line[opened] not in context.line_suffix


def has_to_do(text: str, context: CompletionContext) -> bool:
    """The text leaves the work to the reader."""
    return bool(_TO_DO.search(text))


def is_stock_comment(text: str, context: CompletionContext) -> bool:
    """Whether the line, completed, is a comment with a stock phrase."""
    line, mark = _completed_line(text, context), _comment_mark(context)
    return line.startswith(mark) and _STOCK_PHRASE.match(line.removeprefix(mark)) is not None


RULES: dict[Callable[[str, CompletionContext], bool], str] = {
    breaks_a_word: "the text would break the word at the cursor",
    runs_into_the_rest: "the text would run into the rest of the line",
    repeats_the_rest: "the text would repeat the rest of the line",
    repeats_a_next_line: "the text would repeat a line below",
    repeats_a_header: "the text would repeat the first line of a block around the cursor",
    comments_on_a_body: "the text would begin a block with a comment",
    imports_again: "the text would import something again",
    leaves_a_string_open: "the text would leave a string open",
    has_to_do: "the text would leave the work to you",
}


def _completed_line(text: str, context: CompletionContext) -> str:
    """The cursor's line up to the end of the text's first line, without blanks around it."""
    return (context.line_prefix + text.partition("\n")[0]).strip()


def _lines_above(context: CompletionContext) -> list[str]:
    """The context's lines before the cursor's."""
    return _text_above(context).split("\n")[:-1]


def _text_above(context: CompletionContext) -> str:
    """The context's text up to the cursor."""
    return "".join((*context.far, context.near))


def _nearby(context: CompletionContext) -> str:
    """The text that the model reads, without the cursor's own line."""
    return "\n".join((*_lines_above(context), "".join(context.suffix).partition("\n")[2]))


def _comment_mark(context: CompletionContext) -> str:
    return language(context.language_id).marks.opening.strip()


def _one_line_quotes(context: CompletionContext) -> str:
    """The quotes of strings that end with their line: a backtick's may have several, a lifetime is no string."""
    return language(context.language_id).quotes.replace("`", "")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
