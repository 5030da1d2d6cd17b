"""Cuts the declarations and the first lines of files into snippets, and caches them by file version."""

import os
from collections.abc import Iterable

from mercury_engine.lru import LeastRecentlyUsed

from mercury_lsp.context.workspace.choice import Snippet, SnippetKind, snippets_of
from mercury_lsp.context.workspace.declarations import RestIfDue, declarations
from mercury_lsp.context.workspace.ignored import IgnoreRules, inside
from mercury_lsp.context.workspace.reading import NotRead, read
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language_of
from mercury_lsp.documents.redaction import redacted_lines, without_secrets

MAX_FILE_BYTES = 400_000
"""Largest file read."""

MAX_SOURCE_LINE_BYTES = 2_000
"""Longest line of a source file; a file with a longer line was generated."""

FILE_START_CHARS = 24_000
"""Characters at the start of a file that become code snippets, next to its declarations."""

FILES_KEPT = 64
"""Files whose snippets are cached."""

FileVersion = tuple[object, ...]
"""Changes whenever the file or the open document does."""


class FileSnippets:
    """The snippets of files; for one thread."""

    def __init__(self, rest_if_due: RestIfDue):
        self._rest_if_due = rest_if_due
        self._cached: LeastRecentlyUsed[str, tuple[FileVersion, tuple[Snippet, ...]]] = LeastRecentlyUsed(FILES_KEPT)

    def of(self, path: str, opened: Snapshot | None, rules: IgnoreRules | None) -> tuple[Snippet, ...] | None:
        """The snippets of a file, or of the document if it is open; None if there is no such file.

        `rules` are those of its workspace folder.
        """
        version = version_on_disk(path) if opened is None else (opened.uri, opened.version)
        if version is None:
            return None
        if (known := self._cached.get(path)) is not None and known[0] == version:
            return known[1]
        text = opened.text if opened is not None else read_text(path, rules)
        return self._cached.put(path, (version, self._cut(path, text, rules)))[1]

    def forget(self, path: str) -> None:
        self._cached.pop(path)

    def clear(self) -> None:
        self._cached.clear()

    def _cut(self, path: str, text: str, rules: IgnoreRules | None) -> tuple[Snippet, ...]:
        language_id = language_of(path)
        shown_path = os.path.relpath(path, rules.root + "/") if rules is not None else os.path.basename(path)
        found, redacted = declarations(language_id, text, self._rest_if_due), redacted_lines(text, language_id)
        parts = {
            SnippetKind.DECLARATIONS: _without(found, redacted) if redacted else found,
            SnippetKind.CODE: _start(text),
        }
        clean = ((kind, without_secrets(part, language_id)) for kind, part in parts.items())
        return tuple(snippet for kind, part in clean for snippet in snippets_of(kind, shown_path, language_id, part))


def read_text(path: str, rules: IgnoreRules | None) -> str:
    """The text of a file; empty if it must not or should not be read."""
    if rules is None or not inside(rules.root, path):
        return ""
    try:
        data = read(path, MAX_FILE_BYTES) or b""
    except NotRead:
        return ""
    if b"\0" in data or max(map(len, data.split(b"\n"))) > MAX_SOURCE_LINE_BYTES:
        return ""
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _without(declarations: str, redacted: Iterable[str]) -> str:
    """Declarations without lines that look like a secret where they stand in the file."""
    bare = {line.strip() for line in redacted}
    return "".join(line for line in declarations.splitlines(keepends=True) if line.strip() not in bare)


def _start(text: str) -> str:
    """The first lines that fit into `FILE_START_CHARS`, whole: part of a line might hide that it is a secret."""
    return text if len(text) <= FILE_START_CHARS else text[: text.rfind("\n", 0, FILE_START_CHARS) + 1]


def version_on_disk(path: str) -> FileVersion | None:
    """The version of a file, by time and size; None if there is no file."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return state.st_mtime_ns, state.st_size
