"""The window of a model of edits, and the prompts and answers of a family of such models; text only, no tokens.

The window is a request: lines that the model writes again, not empty, between those that it only reads (`near` and
`suffix`). Far blocks are not shown.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mercury_engine.api import EditHunk, RewriteRequest
from mercury_engine.text.lines import equal_ends, lines_of

MAX_DROPPED_LINES = 1
"""Lines of a window's end that an answer may delete; if more are missing it did not reach them."""

MIN_KNOWN_CHARS = 8
"""Shortest line, without blanks, that locates an answer in a window: `}` may be anywhere."""

_FENCED = re.compile(r"\A\s*```[^\n`]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_TAGGED = re.compile(r"\A\s*<(\|?)([\w-]+)(\|?)>\n(.*?)\n?<\1/\2\3>\s*\Z", re.DOTALL)


def marked(window: RewriteRequest, mark: str) -> str:
    """The lines to write again with a mark at the cursor."""
    cursor = window.cursor or 0
    return window.text[:cursor] + mark + window.text[cursor:]


def below(window: RewriteRequest) -> str:
    """The lines below those to write again."""
    return "".join(window.suffix)


def last_edits(window: RewriteRequest, template: str, most: int = 0) -> list[str]:
    """The last edits (0 for all), in a template with `path`, lines `removed` and `inserted`, and their `diff`."""
    return [
        template.format(
            path=each.path or window.path,
            removed=ended(each.removed),
            inserted=ended(each.inserted),
            diff=_unified(each),
        )
        for each in window.history[-most:]
    ]


@dataclass(frozen=True, slots=True)
class Family:
    """A family of models: its name, its window, its prompt, and how its answer is read."""

    name: str
    prompt: Callable[[RewriteRequest], str]
    answer: Callable[[RewriteRequest, str], str]
    """The new lines as the model wrote them, without what frames them; the window's own text for "no change"."""
    lines: tuple[int, int]
    """Most lines of a window above and below the cursor's."""
    chars: int
    """Most characters of a window; the cursor's line may be longer."""
    cursor: str
    """The mark of the cursor, which an answer may repeat."""
    markers: tuple[str, ...]
    """Texts that frame a prompt, tokens where the vocabulary has them: an answer with one is none."""
    echo: Callable[[RewriteRequest], str] = lambda window: ended(window.text)
    """What the model writes to leave the window as it is, up to a `stop`: the draft of a rewrite in this process."""
    stop: tuple[str, ...] = ()
    is_chat: bool = False
    """Whether the prompt is a user's message, and not text to continue."""
    names: tuple[str, ...] = ()
    """Parts of the names of its models, in lower case."""

    def clean(self, window: RewriteRequest) -> RewriteRequest | None:
        """The window without edits that spell a marker; None if its own text or path does."""
        if self._spells(window.path, window.near, window.text, below(window)):
            return None
        hunks = tuple(each for each in window.history if not self._spells(each.path or "", each.removed, each.inserted))
        return replace(window, history=hunks)

    def _spells(self, *texts: str) -> bool:
        return any(marker in text for text in texts for marker in self.markers)

    def region(self, lines: Sequence[str], at: int) -> tuple[int, int]:
        """The lines [start, end) to write again around line `at`, taken in turns from above and below."""
        start, end, chars = at, at + 1, len(lines[at])
        while True:
            before = start, end
            if start > max(0, at - self.lines[0]) and chars + len(lines[start - 1]) <= self.chars:
                start -= 1
                chars += len(lines[start])
            if end < min(len(lines), at + 1 + self.lines[1]) and chars + len(lines[end]) <= self.chars:
                chars += len(lines[end])
                end += 1
            if (start, end) == before:
                return start, end


def _unified(hunk: EditHunk) -> str:
    """An edit as the body of a unified diff; lines are counted from 1, as these models were taught."""
    removed, inserted = lines_of(hunk.removed), lines_of(hunk.inserted)
    marked = [*(f"-{ended(each)}" for each in removed), *(f"+{ended(each)}" for each in inserted)]
    return f"@@ -1,{len(removed)} +1,{len(inserted)} @@\n{''.join(marked)}"


def ended(text: str) -> str:
    """A text whose last line has a line break; empty for none."""
    return text if text.endswith("\n") or not text else f"{text}\n"


def new_text(family: Family, window: RewriteRequest, written: str, is_exact: bool = False) -> str | None:
    """The window's new text in an answer, with its own end restored; None if the answer carries a sentinel.

    Frames, and lines that stand beside the window, are dropped. `is_exact`: it was written line by line, without them.
    """
    text = family.answer(window, written)
    text = (
        text.replace(family.cursor, "") if is_exact else _without_cursor(_unwrapped(text, window.text), family.cursor)
    )
    if any(marker in text for marker in family.markers):
        return None
    if not text.strip():
        return window.text
    text = text.rstrip("\n") + window.text[len(window.text.rstrip("\n")) :]
    return text if is_exact else "".join(_placed(lines_of(text), window))


def _unwrapped(text: str, shown: str) -> str:
    """A text out of its code fence or its tags, unless what was shown stands in such itself."""
    for frame in (_FENCED, _TAGGED):
        if (found := frame.match(text)) is not None and frame.match(shown) is None:
            text = ended(found[found.lastindex or 0])
    return text


def _without_cursor(text: str, mark: str) -> str:
    """A text without marks of the cursor; a line that was only one is dropped."""
    return "".join(line.replace(mark, "") for line in lines_of(text) if line.strip() != mark)


def _placed(lines: Sequence[str], window: RewriteRequest) -> list[str]:
    """An answer's lines, without those that stand beside the window, and with the window's ends that it left out."""
    shown = lines_of(window.text)
    found = _begun(list(lines), shown, lines_of(window.near)[-len(lines) :])
    following = lines_of(below(window))[: len(lines)]
    turned = _begun(found[::-1], shown[::-1], following[::-1][-len(found) :] if following else [])
    return turned[::-1]


def _begun(lines: list[str], shown: list[str], beside: list[str]) -> list[str]:
    """The lines, starting as the window does; `beside` are the lines before it. For the end, reverse all lists."""
    if equal_ends(lines, shown)[0]:
        return lines
    for count in range(len(beside), 0, -1):
        is_same = lines[:count] == beside[-count:]
        if is_same and (lines[count : count + 1] == shown[:1] or _is_known(lines[:count])):
            return lines[count:]
    starts = [at for at in range(MAX_DROPPED_LINES + 1, len(shown)) if shown[at : at + 2] == lines[:2]]
    return shown[: starts[0]] + lines if len(starts) == 1 and _is_known(lines[:2]) else lines


def _is_known(lines: Sequence[str]) -> bool:
    return any(len("".join(line.split())) >= MIN_KNOWN_CHARS for line in lines)
