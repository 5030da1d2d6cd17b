"""Where a text may end without cutting an expression, judged by its characters and those that follow."""

from mercury_engine.text.brackets import CLOSING, bracket_step, has_open_bracket, string_starts

CLOSING_MARKS = ")]};,:"
"""Characters that close brackets, or parts of a line, without saying anything more.

After a gap they belong to its fill while that has a bracket open.
"""

SUFFIX_CHARS = 8
"""Characters after the gap that the rest of a text must begin with to be taken for them."""


def ends_whole(text: str, rest: str, line_prefix: str, line_suffix: str = "") -> bool:
    """Whether a text may end before `rest`, the model's continuation: at the end of a line, statement or argument.

    `line_prefix` and `line_suffix` are the rest of the cursor's line. It may not end inside a bracket or string that it
    opens, before an operator, a call's parentheses or a word, or before an unknown rest. A string that was open before
    the text may end after any word.
    """
    opened, quote, was_open = _opened(text, line_prefix)
    if opened or (quote and not was_open):
        return False
    if quote or text.endswith(";"):
        return True
    if line_suffix.strip() and rest.startswith(line_suffix[:SUFFIX_CHARS].rstrip()):
        return True
    after = rest.lstrip(" \t")
    if after[:1] == ",":
        return after[1:].lstrip(" \t")[:1] in ("\n", "\r") or has_open_bracket(line_prefix)
    if after[:1] == ":":
        return after[1:2] not in (":", "=")
    return bool(after) and (after[0] in "\r\n;" or after[0] in CLOSING)


def closing_of(rest: str, line_suffix: str) -> str:
    """The brackets and marks that alone are left of the line in `rest`; "" where the document has text there."""
    line, line_break, _ = rest.partition("\n")
    return line.rstrip() if line_break and not line.strip(CLOSING_MARKS + " \t\r") and not line_suffix.strip() else ""


def _opened(text: str, line_prefix: str) -> tuple[bool, bool, bool]:
    """Whether a bracket of the text is open at its end, whether a string is, and whether that began before the text."""
    line, start = line_prefix + text, len(line_prefix)
    starts, depth = string_starts(line), 0
    for at in range(start, len(line)):
        if starts[at] is None and starts[at + 1] is None:
            depth = max(0, depth + bracket_step(line[at]))
    return depth > 0, starts[-1] is not None, starts[-1] is not None and starts[-1] < start
