"""Next edits for clients that send a document with a region and recent edits, also inside a prompt.

The prompts are those of Mercury's API with its tags, of minuet's duet, and of Sweep's models.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from mercury_engine.api import MAX_REGION_LINES, Control, EditHunk, Rewrite, RewriteRequest
from mercury_engine.text.common_prefix import common_text_prefix

from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.region_edits import MIN_PROBABILITY
from mercury_lsp.completion.next_edits.rewriting import RewrittenLines, rewrite_region
from mercury_lsp.documents.document import Document, Snapshot
from mercury_lsp.documents.languages import language_of
from mercury_lsp.documents.redaction import change_without_secrets
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.errors import ApiError
from mercury_lsp.http.service import Service

LINES_ABOVE_CURSOR = 8
"""Lines above the cursor that are rewritten if a region is too long for the engine."""

MAX_HUNKS = 16

MAX_DIFF_CHARS = 100_000
"""Of a longer diff only the end counts."""

WINDOW_CHARS = 16_000
"""Characters on each side of the cursor that are used; the model sees fewer."""

DEADLINE_MS = 10_000.0
"""After this a rewrite is given up; clients wait longer than an editor's user."""

NO_EDITS = (
    "this model makes no edits; run mercury-lsp models add qwen2.5-coder-0.5b, then mercury-lsp models use "
    "qwen2.5-coder-0.5b --edits, and start the server again"
)

_FILE = re.compile(r"^(?:\+\+\+ (?:b/)?|File: )(.*?)(?:\t.*)?$")

CURSOR = "<|cursor|>"

DUET_REGION, DUET_END, DUET_CURSOR = "<editable_region>\n", "\n</editable_region>", "<cursor_position/>"

_DUET_HISTORY = re.compile(r"<edit_history>((?:(?!<edit_history>).)*?)</edit_history>\n*", re.DOTALL)
"""Stops a search at the next beginning; many without an end would take quadratic time."""

_DUET_FILE = re.compile(r'^User edited "(.*)":$', re.MULTILINE)

SWEEP_SEPARATOR = "<|file_sep|>"

MAX_SWEEP_PARTS = 256
"""Most parts of a Sweep prompt to read, from the end."""

_SWEEP_FILE = re.compile(r"(original|current|updated)/(.{0,1000}?)(?::\d{1,9}:\d{1,9})?\n")

_SWEEP_DIFF = re.compile(r"(.{0,1000})(?:\.diff|:\d{1,9}:\d{1,9})")


@dataclass(frozen=True, slots=True)
class EditedDocument:
    """A document, the region that may change, and the user's recent edits."""

    text: str
    start: int
    end: int
    """The region [start, end), by characters."""
    path: str = ""
    cursor: int | None = None
    """A character of the text."""
    history: tuple[EditHunk, ...] = ()
    """Oldest first."""
    reply: Callable[[str], str] = str
    """What the client gets for the rewritten region."""

    @classmethod
    def marked(cls, before: str, region: str, after: str, mark: str, path: str, history: tuple[EditHunk, ...]) -> Self:
        """A document in three parts; the mark in the region, if any, is the cursor."""
        cursor, region = region.find(mark), region.replace(mark, "", 1)
        start, end = len(before), len(before) + len(region)
        return cls(before + region + after, start, end, path, None if cursor < 0 else start + cursor, history)

    def window(self) -> tuple["EditedDocument", int]:
        """The lines around the cursor or the region's start, and their offset."""
        middle = self.start if self.cursor is None else self.cursor
        first, last = max(0, middle - WINDOW_CHARS), min(len(self.text), middle + WINDOW_CHARS)
        first = self.text.find("\n", first, middle) + 1 or first if first else 0
        last = self.text.rfind("\n", middle, last) + 1 or last if last < len(self.text) else last
        start, end = (min(max(each, first), last) - first for each in (self.start, self.end))
        cursor = None if self.cursor is None else self.cursor - first
        return replace(self, text=self.text[first:last], start=start, end=end, cursor=cursor), first

    def region(self, snapshot: Snapshot) -> Place:
        """The region's lines, or those around the cursor if there are too many."""
        line_of = snapshot.source.line_of
        first, last = line_of(self.start), line_of(max(self.start, self.end - 1))
        line = line_of(self.start if self.cursor is None else self.cursor)
        if last - first >= MAX_REGION_LINES:
            first = max(first, min(line - LINES_ABOVE_CURSOR, last + 1 - MAX_REGION_LINES))
        end = min(last + 1, first + MAX_REGION_LINES)
        return Place(snapshot, self.path, line, first, end)


async def rewritten(service: Service, asked: EditedDocument) -> tuple[Completion, list[RewrittenLines]]:
    """The reply with the rewritten region, and the model's changes from the top down.

    Raises ApiError if no model here rewrites, and what the engine raises.
    """
    await service.engine()
    if not service.edits.can_rewrite:
        raise ApiError(501, NO_EDITS, "model")
    near, first = asked.window()
    snapshot = Document("untitled:", language_of(near.path), 0, near.text).snapshot()
    tokens_read = steps = 0

    async def rewrite(request: RewriteRequest, control: Control) -> Rewrite | None:
        nonlocal tokens_read, steps
        if (found := await service.rewrite(request, control)) is not None:
            tokens_read, steps = found.tokens_read, found.steps
        return found

    region = near.region(snapshot)
    found = await rewrite_region(rewrite, region, asked.history, MIN_PROBABILITY, DEADLINE_MS, Control())
    changes = [
        replace(each, edit=replace(each.edit, start=each.edit.start + first))
        for each in found or ()
        if each.probability >= MIN_PROBABILITY
    ]
    text, end = asked.text, asked.end
    for edit in (each.edit for each in reversed(changes)):
        text = text[: edit.start] + edit.inserted + text[edit.end :]
        end += edit.new_end - edit.end
    reply = asked.reply(text[asked.start : end])
    return Completion(reply, "stop", tokens_read, completion_tokens=steps), changes


def read_diff(diff: str, path: str) -> tuple[EditHunk, ...]:
    """The hunks of unified diffs, without secrets; those of the file at `path` count as the document's own."""
    return tuple(map(clean_hunk, deque(_hunks(diff[-MAX_DIFF_CHARS:], path), MAX_HUNKS)))


def _hunks(diff: str, path: str) -> Iterator[EditHunk]:
    other: str | None = None
    removed, inserted = list[str](), list[str]()
    for line in (*diff.splitlines(), "@@"):
        mark, rest = line[:1], line[1:] + "\n"
        if named := _FILE.match(line):
            other = None if named[1] in ("", path) or path.endswith("/" + named[1]) else named[1]
        elif line.startswith("--- ") and not (removed or inserted):
            continue
        elif mark == "-":
            removed.append(rest)
        elif mark == "+":
            inserted.append(rest)
        else:
            if removed or inserted:
                yield EditHunk(0, "".join(removed), "".join(inserted), other)
            removed, inserted = [], []


def clean_hunk(hunk: EditHunk) -> EditHunk:
    removed, inserted = change_without_secrets(hunk.removed, hunk.inserted, language_of(hunk.path or ""), "", "")
    return EditHunk(0, removed, inserted, hunk.path)


def mercury_prompt(prompt: str) -> EditedDocument | None:
    """A prompt of Mercury's API, with the region inside the file's content or after it; None for any other."""
    region, content = tagged(prompt, "code_to_edit"), tagged(prompt, "current_file_content")
    if region is None or content is None:
        return None
    name, _, content = content.partition("\n")
    path = name.partition("current_file_path:")[2].strip()
    before, is_inside, _ = content.partition("<|code_to_edit|>\n")
    if is_inside:
        after = content.partition("<|/code_to_edit|>\n")[2]
    else:
        before, found, after = content.replace(CURSOR, "", 1).partition(region.replace(CURSOR, "", 1))
        before = before if found else ""
    history = read_diff(tagged(prompt, "edit_diff_history") or "", path)
    return EditedDocument.marked(before, region, after, CURSOR, path, history)


def tagged(prompt: str, name: str) -> str | None:
    """The lines between a tag and its end; None without them."""
    _, begun, rest = prompt.partition(f"<|{name}|>\n")
    text, ended, _ = rest.partition(f"<|/{name}|>")
    return text if begun and ended else None


def duet_prompt(prompt: str) -> EditedDocument | None:
    """A message of minuet's duet, whose reply marks the cursor; None for any other."""
    if DUET_REGION not in prompt or DUET_CURSOR not in prompt:
        return None
    history = "".join(_DUET_HISTORY.findall(prompt))
    before, begun, rest = _DUET_HISTORY.sub("", prompt).partition(DUET_REGION)
    region, ended, after = rest.partition(DUET_END)
    if not begun or not ended or DUET_CURSOR not in region:
        return None
    path = (_DUET_FILE.findall(history) or [""])[-1]
    hunks = read_diff(_DUET_FILE.sub(r"File: \1", history), path)
    old, cursor = region.replace(DUET_CURSOR, "", 1), region.index(DUET_CURSOR)

    def reply(new: str) -> str:
        """The region with the cursor after the last change, or where it was."""
        shorter = min(len(old), len(new))
        at = cursor if new == old else len(new) - common_text_prefix(old[::-1], new[::-1], shorter)
        return f"{DUET_REGION}{new[:at]}{DUET_CURSOR}{new[at:]}{DUET_END}"

    return replace(EditedDocument.marked(before, region, after, DUET_CURSOR, path, hunks), reply=reply)


def sweep_prompt(prompt: str) -> EditedDocument | None:
    """A prompt of Sweep's models, whose reply continues the client's prefill; None for any other."""
    parts: dict[str, str] = {}
    history, path = list[EditHunk](), ""
    for each in prompt.rsplit(SWEEP_SEPARATOR, MAX_SWEEP_PARTS)[1:]:
        if named := _SWEEP_FILE.match(each):
            parts[named[1]], path = each[named.end() :], named[2]
        elif (changed := _sweep_change(each)) is not None:
            history.append(changed)
    if "current" not in parts or "updated" not in parts:
        return None
    hunks = (replace(each, path=None if each.path == path else each.path) for each in history[-MAX_HUNKS:])
    region, prefill = parts["current"].removesuffix("\n") + "\n", parts["updated"]
    document = EditedDocument.marked("", region, "", CURSOR, path, tuple(map(clean_hunk, hunks)))

    def reply(new: str) -> str:
        return (new if new.startswith(prefill) else document.text)[len(prefill) :]

    return replace(document, reply=reply)


def _sweep_change(part: str) -> EditHunk | None:
    """The change described by a part of a prompt, if any."""
    head, begun, rest = part.partition("\noriginal:\n")
    removed, ended, inserted = rest.partition("updated:\n")
    named = _SWEEP_DIFF.fullmatch(head)
    is_short = len(removed) + len(inserted) <= MAX_DIFF_CHARS
    return EditHunk(0, removed, inserted, named[1]) if named and begun and ended and is_short else None
