"""Judges one shown text: right to the end of the line, right in part, a stub, or wrong."""

from collections.abc import Sequence
from typing import Literal, get_args

from mercury_engine.decoding.truncation import ends_whole
from mercury_engine.text.brackets import CLOSER_OF, OPENING, outside_strings, string_starts
from mercury_engine.text.ends import overrun

from mercury_lab.editing.cursors import Cursor
from mercury_lab.evaluation.judge import STUB_CHARS, accepted, is_inside_word

Verdict = Literal["line", "part", "stub", "wrong"]
"""From best to worst.

`line`: right to the end of the line, and so is every further line; `part`: right as far as it goes, but it ends
earlier, at the end of a word; `stub`: the same, but shorter than `STUB_CHARS`; `wrong`: anything else.
"""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


def verdict(shown: str, answers: Sequence[str]) -> Verdict:
    """The best verdict on a shown text over all right answers; without answers it is wrong."""
    return min((_against(shown, answer) for answer in answers), key=VERDICTS.index, default="wrong")


def saved(shown: str, answers: Sequence[str]) -> int:
    """Characters that a perfect user need not type, who accepts right words only, and only in the cursor's line."""
    lines = [answer.partition("\n")[0] for answer in answers]
    return max((min(len(accepted(shown, line)), len(lines[0])) for line in lines), default=0)


def is_cut(shown: str, cursor: Cursor) -> bool:
    """Whether a text stops inside an expression: before the rest of a right answer, or with a bracket left open."""
    line, rights = cursor.before.rpartition("\n")[2], [answer.partition("\n")[0].rstrip() for answer in cursor.answers]
    if cursor.place in ("comment", "string") or shown in rights:
        return False
    rests = [right.removeprefix(shown) for right in rights if right.startswith(shown)]
    if not rests and ("\n" in shown or shown.endswith(tuple(OPENING))):
        return False
    return not any(ends_whole(shown, rest, line) for rest in rests or ["\n"])


def runs_over(shown: str, cursor: Cursor) -> bool:
    """Whether a text goes on into what stands below the cursor."""
    return overrun(shown, cursor.before.rpartition("\n")[2], cursor.after) is not None


def begins_right(shown: str, beginnings: Sequence[str]) -> bool:
    """Whether a text begins like one of these, or is the beginning of one, up to the end of a word."""
    text = shown.rstrip()
    return any(text.startswith(e) or (e.startswith(text) and not is_inside_word(e, len(text))) for e in beginnings)


def leaves_open(shown: str, cursor: Cursor) -> bool:
    """Whether a text opens a bracket or a string that neither it nor the rest of its line closes.

    A bracket at its end may open a block, and three quotes text of several lines.
    """
    prefix, rest, text = cursor.before.rpartition("\n")[2], cursor.after.partition("\n")[0], shown.rstrip()
    line, end = prefix + text + rest, len(prefix + text)
    opened = list[int]()
    for at, character, _ in outside_strings(line):
        if character in CLOSER_OF:
            opened.append(at)
        elif opened and character == CLOSER_OF[line[opened[-1]]]:
            opened.pop()
    quote = string_starts(line)[-1]
    is_block = not rest.strip() and opened[-1:] == [end - 1]
    is_quote_open = quote is not None and len(prefix) <= quote < end and text.count('"""') != 1
    return is_quote_open or any(len(prefix) <= at < end for at in opened[: len(opened) - is_block])


def _against(shown: str, answer: str) -> Verdict:
    first, *more = _lines(shown)
    right, *following = _lines(answer)
    if first == right:
        return "line" if more == following[: len(more)] else "wrong"
    if more or not right.startswith(first) or is_inside_word(right, len(first)):
        return "wrong"
    return "stub" if len(first.strip()) < STUB_CHARS else "part"


def _lines(text: str) -> list[str]:
    """The lines that are not blank, without trailing blanks; the first one even if it is."""
    first, *more = [line.rstrip() for line in text.split("\n")]
    return [first, *filter(None, more)]
