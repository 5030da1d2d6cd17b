"""Finds files that aren't open and contain a name, and reads them as they are on disk."""

import asyncio
import posixpath
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pygls.uris import from_fs_path

from mercury_lsp.context.workspace.file_snippets import FileVersion, read_text, version_on_disk
from mercury_lsp.context.workspace.ignored import IgnoreRules
from mercury_lsp.context.workspace.pace import Pace
from mercury_lsp.context.workspace.secret_files import is_secret
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language, language_of, new_parser
from mercury_lsp.documents.parsing import parse

MAX_SEARCHED_FILES = 2_000
"""Most files searched for a name, those nearest to its own file first; at about 0.3 ms each."""

MAX_FOUND_FILES = 32
"""Most files with the name that are parsed."""

PARSE_SECONDS = 0.2
"""Budget of one file's parse; a file of 400 kB takes about 0.1 s."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SearchedName:
    """A name that was changed, with the language and the absolute path of its document."""

    name: str
    language_id: str
    path: str


@dataclass(frozen=True, slots=True)
class ClosedFile:
    """A file as it is on disk; `path` is relative to its workspace folder."""

    snapshot: Snapshot
    path: str
    full_path: str
    disk_version: FileVersion

    @property
    def is_unchanged(self) -> bool:
        """Whether the file on disk is still the one that was read; asks the disk."""
        return version_on_disk(self.full_path) == self.disk_version


def nearest_first(paths: Sequence[str], origin: str) -> list[str]:
    """At most `MAX_SEARCHED_FILES` paths, those that share most folders with the origin first."""
    parts = origin.split("/")

    def distance(path: str) -> tuple[int, str]:
        own = path.split("/")
        same = next((i for i, (one, other) in enumerate(zip(own, parts, strict=False)) if one != other), len(own))
        return len(own) + len(parts) - 2 * same, path

    return sorted(paths, key=distance)[:MAX_SEARCHED_FILES]


def paths_with(name: str, paths: Sequence[str], rules_of: Callable[[str], IgnoreRules | None], pace: Pace) -> list[str]:
    """Those of the files that contain a name as a word, at most `MAX_FOUND_FILES`."""
    found: list[str] = []
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for path in paths:
        pace.rest_if_due()
        if len(found) == MAX_FOUND_FILES:
            break
        if is_secret(Path(path)):
            continue
        text = read_text(path, rules_of(path))
        if name in text and word.search(text):  # the plain search is ten times as fast
            found.append(path)
    return found


def closed_file(path: str, rules: IgnoreRules | None, known: ClosedFile | None) -> ClosedFile | None:
    """A file read and parsed now; None if it must not be edited unseen, or is being written.

    Text that is not UTF-8 has other columns in an editor. `known`: as it was read before; if the text is still the
    same, it need not be parsed again.
    """
    before, text = version_on_disk(path), read_text(path, rules).removeprefix("\ufeff")
    if rules is None or before is None or not text or "\ufffd" in text or not rules.allows(path):
        return None
    if known is not None and known.snapshot.text == text:
        return replace(known, disk_version=before) if version_on_disk(path) == before else None
    language_id, source = language_of(path), ChunkedText.of(text)
    if not language(language_id).grammar:
        return None
    tree = parse(new_parser(language_id), source, None, PARSE_SECONDS)
    if tree is None or version_on_disk(path) != before:
        return None
    uri = from_fs_path(path)
    if uri is None:
        return None
    snapshot = Snapshot(uri, language_id, 0, source, tree, is_parsed=True, is_on_disk=True)
    return ClosedFile(snapshot, posixpath.relpath(path, rules.root), path, before)


async def within(seconds: float, put: Callable[[Callable[[], None]], None], ask: Callable[[], T]) -> T | None:
    """What a job that is put to another thread returns; None if it fails or takes longer."""
    loop, answer = asyncio.get_running_loop(), asyncio.Future[T | None]()

    def deliver(result: T | None) -> None:
        if not answer.done():
            answer.set_result(result)

    def run() -> None:
        result = None
        try:
            result = ask()
        finally:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(deliver, result)

    put(run)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await answer
    return None
