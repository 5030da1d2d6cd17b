"""Chooses context from other files: imported files, recently visited documents, and recently edited spots."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mercury_lsp.context.context import CompletionContext
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.context.workspace.background import Background, Watcher
from mercury_lsp.context.workspace.ignored import RULE_FILES, is_ignored
from mercury_lsp.context.workspace.library import PREPARED_REACH_CHARS, DocumentView, Library, PreparedSnippets
from mercury_lsp.context.workspace.secret_files import is_secret
from mercury_lsp.context.workspace.snippets import Snippet, SnippetKind, choose, words_of
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import chunk_without_secrets
from mercury_lsp.documents.roots import path_of

VISITED_DOCUMENTS = 3
"""Snippets come from this many other open documents, those visited last."""

CHOICE_REACH_CHARS = 500
"""Snippets are compared with this many characters on either side of the cursor."""

DECIDE_SECONDS = 1.0
"""Longest wait for the ignore files; only a stalled disk takes that long."""


@dataclass(frozen=True, slots=True)
class _Decision:
    """The verdict of the ignore files on a document."""

    may_use: bool = False
    is_ignored: bool = True


UNDECIDED = _Decision()


class Workspace:
    """Context from the workspace's files; for the event loop's thread. Opens files only while it is enabled."""

    def __init__(self, documents: OpenDocuments):
        self._documents = documents
        self._is_enabled = self._client_watches = False
        self._prepared: dict[str, PreparedSnippets] = {}
        self._chosen: dict[str, tuple[int, tuple[Snippet, ...]]] = {}
        """By URI, the snippets of a document's requests while the cursor stays on this line."""
        self._visited: dict[str, None] = {}
        """URIs in the order of the last visit."""
        self._decisions: dict[str, _Decision] = {}
        """By URI. Replaced when the rules may have changed, so that outdated decisions are lost."""
        self._deciding: Future[None] | None = None
        """Done once all requested documents are decided."""
        self._edit_offsets: dict[str, int] = {}
        """By URI, the offset of the last edit."""
        self._cursors: dict[str, int] = {}
        self.on_change: Callable[[list[Path]], None] | None = None
        """Receives changed files, on the watching thread, if the client does not report them."""
        self._watcher = Watcher(self._changed)
        self._background = Background(lambda: self._library.step())
        self._library = Library(self._background.rest_if_due, self._prepared.__setitem__, self._watch)

    def roots_changed(self) -> None:
        """The workspace consists of other folders now."""
        if self._is_enabled:
            self._watcher.close()
            self._find_files()

    def enable(self, is_enabled: bool, client_watches: bool) -> None:
        """Enable or disable the use of other files; `client_watches`: the client reports changed files."""
        if is_enabled != self._is_enabled:
            self._is_enabled, self._client_watches = is_enabled, client_watches
            self._watcher.close()
            self._find_files()

    def with_snippets(self, context: CompletionContext, snapshot: Snapshot) -> CompletionContext:
        """The context with snippets of other files; all prepared code snippets also serve n-gram lookup.

        The snippets that the model reads stay the same while the cursor stays on its line.
        """
        self._visit(context.uri)
        self._cursors[context.uri] = context.offset
        if not self._is_enabled or not self._documents.roots.folders:
            return context
        if (prepared := self._prepared.get(context.uri)) is None:
            self.prepare(context.uri)
            return context
        chosen, line = self._chosen.get(context.uri), context.position[0]
        if abs(context.offset - prepared.cursor) > PREPARED_REACH_CHARS // 2:
            self.prepare(context.uri)
        if chosen is None or chosen[0] != line:
            candidates = [*self._edited_spots(context.uri), *prepared.snippets]
            kept = chosen[1] if chosen is not None else ()
            chosen = self._chosen[context.uri] = line, choose(candidates, _words_around(context), kept)
        return replace(context, snippets=tuple(each.text for each in chosen[1]), lookup_text=prepared.texts)

    def offered(self, uri: str) -> list[str]:
        """URIs of other open documents whose text a document's requests may contain, last visited first."""
        prepared = self._prepared.get(uri) if self._is_enabled else None
        offered = prepared.offered if prepared is not None else ()
        return [other for other in reversed(self._visited) if other in offered]

    def may_use(self, uri: str) -> bool:
        """Whether a workspace document may be shown, or edited, with another one.

        Not if its file is secret or ignored, or the use of other files is disabled.
        """
        return self._is_enabled and self._decision(uri).may_use

    def is_ignored(self, uri: str) -> bool:
        """Whether an open document's file is ignored; True until that is known."""
        return self._decision(uri).is_ignored

    def _decision(self, uri: str) -> _Decision:
        decisions = self._decisions
        if uri not in decisions:
            self._decide([uri])
        return decisions.get(uri, UNDECIDED)

    def opened(self, uri: str) -> None:
        """Decide early whether the document may be shown with others."""
        if self._is_enabled:
            self._decide([uri])

    @property
    def is_decided(self) -> bool:
        """Whether it is known which documents may be used."""
        return self._deciding is None or self._deciding.done()

    async def decided(self) -> None:
        """Wait, for at most `DECIDE_SECONDS`, until it is known which documents may be used."""
        if (deciding := self._deciding) is not None and not self.is_decided:
            await asyncio.wait([asyncio.wrap_future(deciding)], timeout=DECIDE_SECONDS)
            if self._deciding is deciding:
                self._deciding = None  # nobody waits for it again

    def _decide(self, uris: Sequence[str]) -> None:
        """Read the ignore files in the background, because that may take long."""
        decisions, nowhere = self._decisions, _Decision(is_ignored=False)
        files = {uri: self._documents.notebooks.file_of(uri) for uri in uris}
        decisions.update({uri: UNDECIDED if path is not None else nowhere for uri, path in files.items()})
        stored = {uri: path for uri, path in files.items() if path is not None}
        if not stored:
            return

        roots = self._documents.roots

        def decision(uri: str, path: Path) -> _Decision:
            roots.resolve(path.parent)
            named, found = self._path(uri), roots.named(path)
            may_use = named is not None and self._library.allows(named)
            return _Decision(may_use, not may_use and is_ignored(path, found[1] if found is not None else None))

        def decide() -> None:
            try:
                decisions.update({uri: decision(uri, path) for uri, path in stored.items() if uri in decisions})
            finally:
                deciding.set_result(None)

        self._deciding = deciding = Future[None]()
        self._background.put(decide)

    def prepare(self, uri: str) -> None:
        """Read a document's imports in the background, unless it is outside the workspace folders."""
        if self._is_enabled and uri in self._documents and (path := self._path(uri)) is not None:
            snapshot, cursor = self._documents.snapshot(uri), self._cursors.get(uri, 0)
            view = DocumentView(path, snapshot, cursor, self._others(uri))
            self._background.put(lambda: self._library.prepare(view))

    def edited(self, uri: str, edits: Sequence[Edit] | None) -> None:
        """Record edits; None when the whole document was replaced."""
        self._visit(uri)
        if edits:
            self._edit_offsets[uri] = edits[-1].start + len(edits[-1].inserted)

    def forget(self, uri: str) -> None:
        """A document was closed: its unsaved text must not be shown any more."""
        stores: tuple[dict[str, Any], ...]
        stores = (self._prepared, self._chosen, self._visited, self._decisions, self._edit_offsets, self._cursors)
        for each in stores:
            each.pop(uri, None)
        path = self._path(uri)
        for other, prepared in list(self._prepared.items()):
            if path in prepared.files:  # until it is prepared again
                del self._prepared[other]
                self._chosen.pop(other, None)
        if self._background.has_begun:
            self._background.put(lambda: self._library.forget(uri, path))

    def files_changed(self, paths: Sequence[Path]) -> None:
        """The client reports files that were created, changed or deleted."""
        if any(path.name in RULE_FILES for path in paths):
            self._find_files()
        elif self._is_enabled:
            named = (self._documents.roots.named(path) or (path, path) for path in paths)
            names = [path.as_posix() for path, _ in named]
            self._background.put(lambda: self._library.changed(names))

    def close(self) -> None:
        """Stop; returns at once."""
        self._watcher.close()
        self._background.close()

    def _find_files(self) -> None:
        """Find all files again, and forget what was chosen by other rules or in other folders."""
        roots = self._documents.roots.folders if self._is_enabled else ()

        def open_folders() -> None:
            self._drop_snippets()  # prepared while the job waited
            self._library.open(roots)

        if roots or self._background.has_begun:
            self._background.put(open_folders)
        self._decisions = {}
        if roots:
            self._decide(self._documents.uris)
        self._drop_snippets()

    def _drop_snippets(self) -> None:
        self._prepared.clear()
        self._chosen.clear()

    def _changed(self, paths: list[Path]) -> None:
        """Files that we watch have changed."""
        self.files_changed(paths)
        if self.on_change is not None:
            self.on_change(paths)

    def _watch(self, folders: list[str]) -> None:
        """Watch the folders, now that all are known, unless the client does."""
        if not self._client_watches and self._is_enabled:
            self._watcher.watch(folders)

    def _visit(self, uri: str) -> None:
        self._visited.pop(uri, None)
        self._visited[uri] = None

    def _others(self, uri: str) -> dict[str, Snapshot]:
        """Other open documents of the workspace by path, without secret files, last visited first."""
        found: dict[str, Snapshot] = {}
        for other in reversed(self._visited):
            path = self._path(other) if other != uri and other in self._documents else None
            if path is not None:
                found[path] = self._documents.snapshot(other)
            if len(found) == VISITED_DOCUMENTS:
                break
        return found

    def _edited_spots(self, uri: str) -> list[Snippet]:
        """The chunks of other documents around their last edits."""
        found = []
        for snapshot in map(self._documents.snapshot, self.offered(uri)):
            if snapshot.uri in self._edit_offsets and snapshot.chunks:
                offset = min(self._edit_offsets[snapshot.uri], snapshot.length)
                number = snapshot.source.chunk_at(offset)
                lines = chunk_without_secrets(snapshot.chunks, number, snapshot.language_id)
                path = self._documents.path(snapshot.uri)
                found.append(Snippet.of(SnippetKind.CODE, path, snapshot.language_id, lines))
        return found

    def _path(self, uri: str) -> str | None:
        """The path of a document, as it is named below the workspace folders; None for others and for secret files."""
        path = path_of(uri)
        found = self._documents.roots.named(path) if path is not None else None
        if path is None or found is None or is_secret(path) or is_secret(found[0]):
            return None
        return found[0].as_posix()


def _words_around(context: CompletionContext) -> frozenset[str]:
    before = "".join((*context.far[-2:], context.near))[-CHOICE_REACH_CHARS:]
    return words_of(before + "".join(context.suffix[:2])[:CHOICE_REACH_CHARS])
