"""Finds the workspace's files, and prepares snippets of the files a document imports and of other open ones."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from mercury_engine.lru import LeastRecentlyUsed

from mercury_lsp.context.workspace.ignored import IgnoreRules
from mercury_lsp.context.workspace.imports import IMPORTS_REACH_CHARS, READ_LANGUAGES, FileIndex, imports
from mercury_lsp.context.workspace.secret_files import is_secret
from mercury_lsp.context.workspace.snippets import (
    RestIfDue,
    Snippet,
    SnippetKind,
    file_snippets,
    most_similar,
    read_text,
    words_of,
)
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language_of

MAX_IMPORTED_FILES = 16
"""Most imported files read for one document."""

MAX_PACKAGE_FILES = 4
"""Most files read of one Go package."""

DOCUMENTS_KEPT = 8
"""Documents whose snippets are kept up to date."""

FILES_KEPT = 64
"""Files whose snippets are cached."""

PREPARED_REACH_CHARS = 2_000
"""Characters on either side of the cursor that snippets are prepared for."""

PREPARED_PER_KIND = 32
"""Snippets of each kind prepared for a document; a request chooses the best."""


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document that needs snippets, and the other open documents by path, last visited first."""

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
    offered: tuple[str, ...]
    """URIs of the other open documents whose text may be shown, last visited first."""
    files: frozenset[str]
    """Paths of the files the snippets may come from."""
    texts: tuple[str, ...]
    """Code snippets of files that are not open, for n-gram lookup; most similar last, with boundaries between."""


class Library:
    """The workspace's files; for the background thread only.

    `deliver` receives prepared snippets by URI, `found` the folders once all are known.
    """

    def __init__(
        self,
        rest_if_due: RestIfDue,
        deliver: Callable[[str, PreparedSnippets], None],
        found: Callable[[list[str]], None],
    ):
        self._rest_if_due, self._deliver, self._found = rest_if_due, deliver, found
        self.index = FileIndex()
        self._rules: dict[str, IgnoreRules] = {}
        """By the workspace folder, without a slash at its end."""
        self._folders: set[str] = set()
        self._walk: Iterator[None] | None = None
        self._views: LeastRecentlyUsed[str, DocumentView] = LeastRecentlyUsed(DOCUMENTS_KEPT)
        self._snippets_of: LeastRecentlyUsed[str, tuple[object, tuple[Snippet, ...]]] = LeastRecentlyUsed(FILES_KEPT)
        """By path, with the text of an open document, or the time and size of a file."""

    def open(self, roots: tuple[Path, ...]) -> None:
        """Find the files below these folders, and forget all others."""
        self.index = FileIndex()
        self._rules = {rules.root: rules for rules in (IgnoreRules(root.as_posix()) for root in roots)}
        self._folders.clear()
        self._snippets_of.clear()
        self._walk = chain.from_iterable(self._discover(rules, rules.root) for rules in self._rules.values())

    def step(self) -> bool:
        """Examine one more folder entry; returns whether there are more."""
        if self._walk is None:
            return False
        for _ in self._walk:
            return True
        self._walk = None
        self._found(sorted(each if "/" in each else each + "/" for each in self._folders))
        self._prepare_all()
        return False

    def allows(self, path: str) -> bool:
        """Whether a file may be shown with others: it is below a workspace folder, and neither secret nor ignored."""
        self._rest_if_due()
        rules = self._rules_of(path)
        return rules is not None and not is_secret(Path(path)) and rules.allows(path)

    def prepare(self, view: DocumentView) -> None:
        """Prepare snippets for a document, now and whenever files change."""
        self._views.put(view.snapshot.uri, view)
        self._deliver_snippets(view)

    def forget(self, uri: str, path: str | None) -> None:
        """A document was closed; from now on its file counts as it is on disk."""
        self._views.pop(uri)
        for view in self._views.values():
            if path is not None and view.others.pop(path, None) is not None:
                self._deliver_snippets(view)

    def changed(self, paths: list[str]) -> None:
        """Files or folders were created, changed or deleted."""
        for path in paths:
            self._update_path(path)
            self._rest_if_due()
        self._prepare_all()

    def _update_path(self, path: str) -> None:
        rules = self._rules_of(path)
        if rules is None:
            return
        if os.path.isdir(path) and not os.path.islink(path):
            if path not in self._folders:
                self._walk = chain(self._walk or (), self._discover(rules, path))
        elif _is_source(path) and os.path.isfile(path) and rules.allows(path):
            self.index.add(path)
        else:
            self.index.discard(path)
            if path in self._folders:
                self._folders.discard(path)
                self.index.discard_below(path)

    def _discover(self, rules: IgnoreRules, start: str) -> Iterator[None]:
        """Add the files that may be opened and the folders below `start`, without following links.

        Yields after each entry.
        """
        pending = [start]
        while pending:
            yield
            folder = pending.pop()
            if not rules.allows_folder(folder):
                continue
            self._folders.add(folder)
            try:
                entries = os.scandir(folder + "/")
            except OSError:
                continue
            with entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}"
                    with suppress(OSError):
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(path)
                        elif _is_source(path) and entry.is_file(follow_symlinks=False) and rules.allows(path):
                            self.index.add(path)
                    yield

    def _prepare_all(self) -> None:
        for view in self._views.values():
            self._deliver_snippets(view)

    def _deliver_snippets(self, view: DocumentView) -> None:
        files = list(dict.fromkeys((*self._imported(view), *view.others)))
        by_file = {path: self._snippets(path, view.others.get(path)) for path in files}
        start, end = view.cursor - PREPARED_REACH_CHARS, view.cursor + PREPARED_REACH_CHARS
        snippets, around = list(chain.from_iterable(by_file.values())), words_of(view.snapshot.slice(start, end))
        prepared = most_similar(snippets, around, PREPARED_PER_KIND)
        opened = {*chain.from_iterable(by_file[path] for path in view.others)}
        texts = [each.text for each in prepared if each.kind is SnippetKind.CODE and each not in opened]
        separated = tuple(chain.from_iterable((text, "") for text in reversed(texts)))
        offered = tuple(other.uri for path, other in view.others.items() if path in self.index)
        self._deliver(
            view.snapshot.uri, PreparedSnippets(view.cursor, tuple(prepared), offered, frozenset(files), separated)
        )

    def _imported(self, view: DocumentView) -> list[str]:
        """Paths of the files that a document imports."""
        head = view.snapshot.source.slice(0, IMPORTS_REACH_CHARS)
        found: list[str] = []
        for candidates in imports(view.snapshot.language_id, head, view.path):
            self._rest_if_due()
            found += self.index.resolve(candidates, view.path, MAX_PACKAGE_FILES)
        return list(dict.fromkeys(found))[:MAX_IMPORTED_FILES]

    def _snippets(self, path: str, opened: Snapshot | None) -> tuple[Snippet, ...]:
        """The snippets of an indexed file; an open document counts as it is in the editor."""
        if path not in self.index:
            return ()
        version = opened.source if opened is not None else _version_on_disk(path)
        if version is None:
            self.index.discard(path)
            return ()
        known = self._snippets_of.get(path)
        if known is None or known[0] != version:
            rules = self._rules_of(path)
            assert rules is not None
            text = opened.text if opened is not None else read_text(path, rules.root)
            shown_path = os.path.relpath(path, rules.root + "/")
            known = version, file_snippets(path, shown_path, text, self._rest_if_due)
            self._snippets_of.put(path, known)
        return known[1]

    def _rules_of(self, path: str) -> IgnoreRules | None:
        """The rules of the innermost workspace folder that contains a path."""
        around = [root for root in self._rules if path.startswith(root + "/")]
        return self._rules[max(around, key=len)] if around else None


def _version_on_disk(path: str) -> tuple[int, int] | None:
    """The time and size of a file; None if there is none."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return state.st_mtime_ns, state.st_size


def _is_source(path: str) -> bool:
    return language_of(path) in READ_LANGUAGES
