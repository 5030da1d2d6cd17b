"""Prompts for next edits in the formats of clients: Mercury's tags, minuet's duet and Sweep's models."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from mercury_engine.api import EditHunk
from mercury_engine.text.common_prefix import common_text_prefix
from starlette.requests import Request

from mercury_lsp.http import replies
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.rewriting import MAX_DIFF_CHARS, MAX_HUNKS, EditedDocument, clean_hunk, read_diff, rewritten
from mercury_lsp.http.service import Service

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
class EditPrompt:
    """A document with a region to rewrite, as a prompt describes it."""

    document: EditedDocument
    reply: Callable[[str], str] = str
    """Makes the reply from the rewritten region."""

    async def answered(self, request: Request, service: Service) -> Completion:
        """The reply. Raises what `rewritten` raises, and ApiError if the client disconnects."""
        found = await replies.while_connected(request, rewritten(service, self.document))
        return Completion(self.reply(found.text), "stop", found.tokens_read, completion_tokens=found.steps)


def mercury(prompt: str) -> EditPrompt | None:
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
    return EditPrompt(EditedDocument.marked(before, region, after, CURSOR, path, history))


def tagged(prompt: str, name: str) -> str | None:
    """The lines between a tag and its end; None without them."""
    _, begun, rest = prompt.partition(f"<|{name}|>\n")
    text, ended, _ = rest.partition(f"<|/{name}|>")
    return text if begun and ended else None


def duet(prompt: str) -> EditPrompt | None:
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

    return EditPrompt(EditedDocument.marked(before, region, after, DUET_CURSOR, path, hunks), reply)


def sweep(prompt: str) -> EditPrompt | None:
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

    return EditPrompt(document, reply)


def _sweep_change(part: str) -> EditHunk | None:
    """The change described by a part of a prompt, if any."""
    head, begun, rest = part.partition("\noriginal:\n")
    removed, ended, inserted = rest.partition("updated:\n")
    named = _SWEEP_DIFF.fullmatch(head)
    is_short = len(removed) + len(inserted) <= MAX_DIFF_CHARS
    return EditHunk(0, removed, inserted, named[1]) if named and begun and ended and is_short else None
