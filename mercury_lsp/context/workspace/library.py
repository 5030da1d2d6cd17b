"""Prepares snippets of the workspace's files: it knows all paths, and reads a file when a document imports it."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from mercury_lsp.context.workspace.choice import Snippet, SnippetKind, most_similar, snippets_of, words_of
from mercury_lsp.context.workspace.declarations import Declarer
from mercury_lsp.context.workspace.discovery import DiscoveredPath, discover
from mercury_lsp.context.workspace.files import FileIndex
from mercury_lsp.context.workspace.ignored import IGNORE_FILES, IgnoreRules, inside
from mercury_lsp.context.workspace.imports import IMPORTS_REACH_CHARS, READ_LANGUAGES, imports
from mercury_lsp.context.workspace.pace import Pace
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language_of
from mercury_lsp.documents.redaction import without_secrets

MAX_FILE_BYTES = 400_000
"""Largest file read."""

MAX_SOURCE_LINE_BYTES = 2_000
"""Longest line of a source file; a file with a longer line was generated."""

MAX_IMPORTED_FILES = 16
"""Most imported files read for one document."""

MAX_PACKAGE_FILES = 4
"""Most files read of one Go package."""

FILES_KEPT = 64
"""Files whose snippets are cached."""

DOCUMENTS_KEPT = 8
"""Documents whose snippets are kept up to date."""

FILE_START_CHARS = 24_000
"""Characters at the start of a file that become code snippets, next to its declarations."""

PREPARED_REACH_CHARS = 2_000
"""Characters on either side of the cursor that snippets are prepared for."""

PREPARED_PER_KIND = 32
"""Snippets of each kind prepared for a document; a request chooses the best."""

FileVersion = tuple[object, ...]
"""Changes whenever the file or the open document does."""


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document that needs snippets, and the other open documents by path, last visited first."""

    uri: str
    path: str
    snapshot: Snapshot
    cursor: int
    """The cursor's offset; snippets similar to the text there are prepared."""
    others: dict[str, Snapshot]


@dataclass(frozen=True, slots=True)
class PreparedSnippets:
    """The snippets that a document's requests choose from."""

    cursor: int
    snippets: tuple[Snippet, ...]
    offered: frozenset[str]
    """Paths of the other open documents whose text may be shown."""
    files: frozenset[str]
    """Paths of the files the snippets may come from."""
    texts: tuple[str, ...]
    """Code snippets of files that are not open, for n-gram lookup; most similar last, with boundaries between."""


class Library:
    """The workspace's files; for the background thread only.

    `deliver` receives prepared snippets by URI, `found` the folders once all are known.
    """

    def __init__(
        self, pace: Pace, deliver: Callable[[str, PreparedSnippets], None], found: Callable[[list[str]], None]
    ):
        self._pace, self._deliver, self._found = pace, deliver, found
        self.index = FileIndex()
        self._rules: dict[str, IgnoreRules] = {}
        self._folders: set[str] = set()
        self._walk: Iterator[DiscoveredPath | None] = iter(())
        self._is_walking = False
        self._views: OrderedDict[str, DocumentView] = OrderedDict()
        self._declarer = Declarer(pace.rest_if_due)
        self._declared: OrderedDict[str, tuple[FileVersion, tuple[Snippet, ...]]] = OrderedDict()

    def open(self, roots: tuple[Path, ...]) -> None:
        """Find the files below these folders, and forget all others."""
        self.index = FileIndex()
        self._rules = {root.as_posix(): IgnoreRules(root.as_posix()) for root in roots}
        self._folders.clear()
        self._declared.clear()
        self._walk = chain.from_iterable(map(discover, self._rules.values()))
        self._is_walking = True

    def step(self) -> bool:
        """Examine one more folder entry; returns whether there are more."""
        if not self._is_walking:
            return False
        try:
            found = next(self._walk)
        except StopIteration:
            self._is_walking = False
            self._found(sorted(self._folders))
            self._prepare_all()
            return False
        if found is not None and found.is_folder:
            self._folders.add(found.path)
        elif found is not None:
            self.index.add(found.path)
        return True

    def prepare(self, view: DocumentView) -> None:
        """Prepare snippets for a document, now and whenever files change."""
        self._views[view.uri] = view
        self._views.move_to_end(view.uri)
        while len(self._views) > DOCUMENTS_KEPT:
            self._views.popitem(last=False)
        self._deliver_snippets(view)

    def forget(self, uri: str, path: str | None) -> None:
        """A document was closed; from now on its file counts as it is on disk."""
        self._views.pop(uri, None)
        if path is None:
            return
        self._declared.pop(path, None)
        for view in list(self._views.values()):
            if view.others.pop(path, None) is not None:
                self._deliver_snippets(view)

    def changed(self, paths: list[str]) -> None:
        """Files or folders were created, changed or deleted."""
        if any(os.path.basename(path) in (*IGNORE_FILES, "exclude") for path in paths):
            self.open(tuple(map(Path, self._rules)))
            return
        for path in paths:
            self._update_path(path)
            self._pace.rest_if_due()
        self._prepare_all()

    def _update_path(self, path: str) -> None:
        rules = self._rules_of(path)
        if rules is None:
            return
        if os.path.isdir(path) and not os.path.islink(path):
            if path not in self._folders:
                self._walk = chain(self._walk, discover(rules, path))
                self._is_walking = True
        elif language_of(path) in READ_LANGUAGES and os.path.isfile(path) and rules.allows(path):
            self.index.add(path)
        else:
            self.index.discard(path)
            if path in self._folders:
                self._folders.discard(path)
                self.index.discard_below(path)

    def _prepare_all(self) -> None:
        for view in list(self._views.values()):
            self._deliver_snippets(view)

    def _deliver_snippets(self, view: DocumentView) -> None:
        files = list(dict.fromkeys((*self._imported(view), *view.others)))
        by_file = {path: self._snippets(path, view.others.get(path)) for path in files}
        snippets = list(chain.from_iterable(by_file.values()))
        words_around = words_of(
            view.snapshot.slice(view.cursor - PREPARED_REACH_CHARS, view.cursor + PREPARED_REACH_CHARS)
        )
        prepared = [
            each
            for kind in SnippetKind
            for each in most_similar(
                [snippet for snippet in snippets if snippet.kind is kind], words_around, PREPARED_PER_KIND
            )
        ]
        opened = {*chain.from_iterable(by_file[path] for path in view.others)}
        texts = [each.text for each in prepared if each.kind is SnippetKind.CODE and each not in opened]
        separated = tuple(chain.from_iterable((text, "") for text in reversed(texts)))
        offered = frozenset(path for path in view.others if path in self.index)
        self._deliver(view.uri, PreparedSnippets(view.cursor, tuple(prepared), offered, frozenset(files), separated))

    def _imported(self, view: DocumentView) -> list[str]:
        """Paths of the files that a document imports."""
        head = view.snapshot.source.slice(0, IMPORTS_REACH_CHARS)
        found: list[str] = []
        for wanted in imports(view.snapshot.language_id, head, view.path):
            self._pace.rest_if_due()
            found += self.index.resolve(wanted, view.path, MAX_PACKAGE_FILES)
        return list(dict.fromkeys(found))[:MAX_IMPORTED_FILES]

    def _snippets(self, path: str, opened: Snapshot | None) -> tuple[Snippet, ...]:
        """The snippets of an indexed file, cached by version; an open document counts as it is in the editor."""
        if path not in self.index:
            return ()
        version = _version_on_disk(path) if opened is None else (opened.uri, opened.version)
        if version is None:
            self.index.discard(path)
            return ()
        if (known := self._declared.get(path)) is not None and known[0] == version:
            self._declared.move_to_end(path)
            return known[1]
        text = opened.text if opened is not None else self._read(path)
        language_id = language_of(path)
        parts = {
            SnippetKind.DECLARATIONS: self._declarer.declarations(language_id, text),
            SnippetKind.CODE: _start(text),
        }
        snippets = tuple(
            chain.from_iterable(
                snippets_of(kind, self._shown_path(path), language_id, without_secrets(part, language_id))
                for kind, part in parts.items()
            )
        )
        self._declared[path] = (version, snippets)
        while len(self._declared) > FILES_KEPT:
            self._declared.popitem(last=False)
        return snippets

    def _read(self, path: str) -> str:
        """The text of a file; empty if it must not or should not be read."""
        rules = self._rules_of(path)
        if rules is None or not inside(rules.root, path):
            return ""
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError:
            return ""
        if len(data) > MAX_FILE_BYTES or b"\0" in data or max(map(len, data.split(b"\n"))) > MAX_SOURCE_LINE_BYTES:
            return ""
        return data.decode("utf-8", "replace").replace("\r\n", "\n")

    def _rules_of(self, path: str) -> IgnoreRules | None:
        """The rules of the innermost workspace folder that contains a path."""
        around = [root for root in self._rules if path.startswith(root + "/")]
        return self._rules[max(around, key=len)] if around else None

    def _shown_path(self, path: str) -> str:
        """The path as the model sees it: relative to the workspace folder."""
        rules = self._rules_of(path)
        return os.path.relpath(path, rules.root) if rules is not None else os.path.basename(path)


def _start(text: str) -> str:
    """The first lines that fit into `FILE_START_CHARS`, whole: part of a line might hide that it is a secret."""
    return text if len(text) <= FILE_START_CHARS else text[: text.rfind("\n", 0, FILE_START_CHARS) + 1]


def _version_on_disk(path: str) -> FileVersion | None:
    """The version of a file, by time and size; None if there is no file."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size
