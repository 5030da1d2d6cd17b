"""One client's documents, and the parts of the server that follow their events."""

import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from lsprotocol import types

from mercury_lsp.completion.completer import Completer
from mercury_lsp.completion.next_edits import Diagnostics, History, Question
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.context.lookup_text import LookupText
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.context.workspace import IGNORE_FILES, Workspace, is_secret
from mercury_lsp.debounce import TypingPauses
from mercury_lsp.documents.document import ContentChange, Snapshot
from mercury_lsp.documents.roots import Roots, path_of
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.settings import Settings, is_elsewhere
from mercury_lsp.statistics import Statistics, edit_between

logger = logging.getLogger(__name__)


class Session:
    """Receives every event and informs its parts; for the event loop's thread."""

    def __init__(self, engines: Engines):
        self.documents = OpenDocuments()
        self.completer = Completer(engines)
        self.statistics = Statistics(self.completer.price)
        self.other_files = Workspace(self.documents)
        self.completer.stays_here = self._stays_here
        self.history = History(self.documents)
        self.diagnostics = Diagnostics()
        self.other_files.on_change = self.history.files_changed
        self.folders: dict[str, Path] = {}
        """The workspace's folders, by uri."""
        self.last_uri = ""
        """The document opened, edited or asked about last; empty once it is closed."""
        self._lookup_text = LookupText()
        self._pauses = TypingPauses(self._user_paused, (self.documents.parse_a_little, self._lookup_text.work))

    @property
    def settings(self) -> Settings:
        return self.completer.settings

    def configure(self, settings: Settings) -> None:
        """Use these settings; nothing is counted before, because they may forbid it."""
        self.completer.configure(settings)
        self.statistics.switch(settings.statistics)

    def document_opened(self, item: types.TextDocumentItem) -> None:
        """Open a document, or replace one that is open already."""
        self._forget_text(item.uri)
        self.documents.open(item)
        self.last_uri = item.uri
        self.history.opened(item.uri)
        self.other_files.opened(item.uri)
        if self.documents.begin_parsing(item.uri):
            self._pauses.index_soon()
        self._pauses.wait_for_pause(item.uri)

    def document_changed(self, uri: str, version: int, changes: Sequence[ContentChange]) -> None:
        """Apply the changes in order, whatever the version, as the client did. Raises UnknownDocument."""
        before = self.documents.snapshot(uri)
        self.last_uri = uri
        if version < before.version:
            logger.warning("%s goes from version %d back to %d", uri, before.version, version)
        edits = self.documents.change(uri, version, _without_full_range(changes, before))
        as_one = [edit_between(before, self.documents.snapshot(uri))] if edits is None else edits
        self.completer.edited(uri, as_one)
        self.history.record(uri, as_one)
        self.diagnostics.edited()
        self.statistics.observer.edited(uri, as_one)
        self.other_files.edited(uri, edits)
        self._pauses.wait_for_pause(uri)

    def document_focused(self, uri: str) -> None:
        """Finish the document's parse before anything is typed in it."""
        self.last_uri = uri
        self._pauses.wait_for_pause(uri)

    def document_saved(self, uri: str) -> None:
        """Earlier edits stay the user's, although the file is reported as changed on disk."""
        if uri in self.documents:
            self.history.saved(uri)
        if (path := path_of(uri)) is not None and path.name in IGNORE_FILES:
            self.other_files.files_changed([path])

    def document_closed(self, uri: str) -> None:
        """Forget a document. Raises UnknownDocument."""
        self._forget_text(uri)
        if uri in self.documents:
            self.history.closed(uri)
        self.other_files.forget(uri)
        self.documents.close(uri)
        if self.last_uri == uri:
            self.last_uri = ""

    def suggestion_accepted(self, suggestion_id: str) -> None:
        """The user accepted the whole suggestion."""
        self.completer.accepted(suggestion_id)
        self.statistics.observer.reported_accepted(suggestion_id)

    def suggestion_rejected(self, suggestion_id: str) -> None:
        """A dismissed fill may be offered again; a next edit is not, in the same place."""
        self.statistics.observer.reported_rejected(suggestion_id)
        self.completer.next_edits.ledger.dismiss(suggestion_id)

    def files_changed(self, paths: Sequence[Path]) -> None:
        """Files were created, changed or deleted."""
        self.other_files.files_changed(paths)
        self.history.files_changed(paths)

    def folders_changed(self, added: Sequence[str], removed: Sequence[str]) -> None:
        """Add and remove folders of the workspace, by uri; the model sees paths relative to them."""
        for uri in removed:
            self.folders.pop(uri, None)
        self.folders |= {uri: path for uri in added if (path := path_of(uri)) is not None}
        self.documents.roots = Roots(self.folders.values())
        self.other_files.roots_changed()

    def question(
        self, snapshot: Snapshot, cursor: int | None = None, others: Sequence[tuple[Snapshot, str]] = ()
    ) -> Question:
        """What a next edit is found by, with the user's history in documents that may be used together with this one.

        `others` are other documents that may be edited, with their paths.
        """
        uri = snapshot.uri

        def may_use(other: str) -> bool:
            return not is_secret_document(other) and (other == uri or self.may_use(uri, other))

        path, hunks, changes = self.documents.path(uri), self.history.hunks(may_use), self.history.changes(uri)
        errors, taken_back = self.diagnostics.errors, self.history.taken_back
        return Question(snapshot, path, hunks, cursor, others, errors, taken_back, changes)

    def why_left_alone(self, uri: str) -> str | None:
        """Why nothing is suggested in a document, for people to read. Raises UnknownDocument."""
        language = self.documents.snapshot(uri).language_id
        if not self.settings.enabled:
            return "switched off by mercury.enabled"
        if not self.settings.allows(language):
            return f"{language} is among mercury.disabledLanguages"
        if is_secret_document(uri):
            return "by its name the file holds secrets"
        oddity = self.documents.oddity(uri)
        return None if oddity is None else f"the file {oddity}"

    def _stays_here(self, uri: str) -> bool:
        """Whether a document's text must not leave this machine, because its file is ignored."""
        names = (self.settings.engine, self.settings.edit_model)
        return any(map(is_elsewhere, names)) and self.other_files.is_ignored(uri)

    def may_use(self, uri: str, other: str) -> bool:
        """Whether another document may be used for this one: a cell of the same notebook, or a workspace file."""
        return self.documents.notebooks.are_together(uri, other) or self.other_files.may_use(other)

    def with_surroundings(self, context: CompletionContext, snapshot: Snapshot) -> CompletionContext:
        """The context with snippets of other files and with lookup text."""
        context = self.other_files.with_snippets(context, snapshot)
        context = self._lookup_text.add_to(context, snapshot, self.other_files.offered(snapshot.uri))
        if self._lookup_text.pending:
            self._pauses.index_soon()
        return context

    def close(self) -> None:
        """Stop all work; returns at once."""
        self._pauses.close()
        self.other_files.close()
        self.completer.close()
        self.statistics.close()

    def _forget_text(self, uri: str) -> None:
        """The document's text was closed, or replaced by opening it again."""
        self.completer.forget(uri)
        self.diagnostics.forget(uri)
        self._lookup_text.forget(uri)
        self.statistics.observer.closed(uri)

    def _user_paused(self, uri: str) -> None:
        """Finish the parse, in slices if it is long, then prepare suggestions."""
        if uri not in self.documents or is_secret_document(uri) or self.documents.oddity(uri):  # closed meanwhile
            return
        if self.documents.begin_parsing(uri):
            self._pauses.index_soon()
            self._pauses.wait_for_pause(uri)  # until it is parsed
            return
        self.documents.finish_parsing(uri)
        self.other_files.prepare(uri)
        self._lookup_text.update(self.documents.snapshot(uri))
        self._pauses.index_soon()


@lru_cache  # asked at every key, and a path is expensive to make
def is_secret_document(uri: str) -> bool:
    """Whether a document is a file of secrets, which the model must not see."""
    path = path_of(uri)
    return path is not None and is_secret(path)


def _without_full_range(changes: Sequence[ContentChange], snapshot: Snapshot) -> Sequence[ContentChange]:
    """The changes; a range that covers the whole document becomes a whole-document change, which is diffed."""
    if len(changes) == 1 and isinstance(changes[0], types.TextDocumentContentChangePartial):
        start, end = changes[0].range.start, changes[0].range.end
        if start == types.Position(0, 0) and end.line > snapshot.position_at(snapshot.length)[0]:
            return [types.TextDocumentContentChangeWholeDocument(changes[0].text)]
    return changes
