"""One client's documents, and the parts of the server that follow what happens to them."""

import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from lsprotocol import types

from mercury_lsp.completion.completer import Completer
from mercury_lsp.completion.next_edits import Diagnostics, History, Surroundings
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.context.lookup_text import LookupText
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.context.workspace import IGNORE_FILES, Workspace, is_secret
from mercury_lsp.documents.document import ContentChange, Snapshot
from mercury_lsp.documents.roots import Roots
from mercury_lsp.documents.uris import path_of
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.server.typing_pauses import TypingPauses
from mercury_lsp.settings import Settings, is_elsewhere
from mercury_lsp.statistics import Statistics, edit_between

logger = logging.getLogger(__name__)


class Session:
    """Takes every event once and informs its parts; to be used from the event loop's thread."""

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
        """The document that was opened, edited or asked about last; empty once it is closed."""
        self._lookup_text = LookupText()
        self._pauses = TypingPauses(self._user_paused, (self._parse_a_little, self._lookup_text.work))
        self._awaiting_parse: set[str] = set()
        """Documents whose user paused while a parse in slices was under way."""

    @property
    def settings(self) -> Settings:
        return self.completer.settings

    def configure(self, settings: Settings) -> None:
        """Go over to these settings; nothing is counted before they are known, for they may forbid it."""
        self.completer.configure(settings)
        self.statistics.switch(settings.statistics)

    def document_opened(self, item: types.TextDocumentItem) -> None:
        """Take over a document's text; a document that was open already is replaced."""
        self._forget_text(item.uri)
        self.documents.open(item)
        self.last_uri = item.uri
        self.history.opened(item.uri)
        self.other_files.opened(item.uri)
        if self.documents.begin_parsing(item.uri):
            self._pauses.index_soon()
        self._pauses.wait_for_pause(item.uri)

    def document_changed(self, uri: str, version: int, changes: Sequence[ContentChange]) -> None:
        """Apply the changes in their order, whatever the version: the client has applied them too.

        Raises UnknownDocument.
        """
        before = self.documents.snapshot(uri)
        self.last_uri = uri
        if version < before.version:
            logger.warning("%s goes from version %d back to %d", uri, before.version, version)
        edits = self.documents.change(uri, version, _without_full_range(changes, before))
        as_one = [edit_between(before, self.documents.snapshot(uri))] if edits is None else edits
        self.completer.edited(uri, as_one)
        self.history.record(uri, as_one)
        self.diagnostics.edited(before, as_one)
        if self.statistics.observer.watches(uri):
            self.statistics.observer.edited(uri, as_one)
        self.other_files.edited(uri, edits)
        self._pauses.wait_for_pause(uri)

    def document_focused(self, uri: str) -> None:
        """Finish the document's parse before anything is typed in it."""
        self.last_uri = uri
        self._pauses.wait_for_pause(uri)

    def document_saved(self, uri: str) -> None:
        """What was edited before is the user's, although the file will be reported as changed on disk."""
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
        """The client reports that a suggestion was accepted whole."""
        self.completer.accepted(suggestion_id)
        self.statistics.observer.reported_accepted(suggestion_id)

    def suggestion_rejected(self, suggestion_id: str) -> None:
        """A fill may be offered again where it fits; the last change is not, in the same place."""
        self.statistics.observer.reported_rejected(suggestion_id)
        self.completer.next_edits.dismissed(suggestion_id)

    def files_changed(self, paths: Sequence[Path]) -> None:
        """The client reports files that were made, changed or deleted."""
        self.other_files.files_changed(paths)
        self.history.files_changed(paths)

    def folders_changed(self, added: Sequence[str], removed: Sequence[str]) -> None:
        """Add and remove folders of the workspace, by uri; paths shown to the model are relative to them."""
        for uri in removed:
            self.folders.pop(uri, None)
        self.folders |= {uri: path for uri in added if (path := path_of(uri)) is not None}
        self.documents.roots = Roots(self.folders.values())
        self.other_files.change(self.documents.roots)

    def surroundings(self, uri: str) -> Surroundings:
        """The user's history in documents that may be used together with this one."""

        def may_use(other: str) -> bool:
            return not is_secret_document(other) and (other == uri or self.may_use(uri, other))

        return Surroundings(self.history.hunks(may_use), self.diagnostics.evidence, self.history.taken_back)

    def why_left_alone(self, uri: str) -> str | None:
        """Why nothing at all is suggested in a document, for people to read. Raises UnknownDocument."""
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
        """Whether a document's text may not be sent to another machine, since its file is ignored."""
        names = (self.settings.engine, self.settings.edit_model)
        return any(map(is_elsewhere, names)) and self.other_files.is_ignored(uri)

    async def known_to_stay(self, uri: str) -> None:
        """Wait until it is known whether a document's text may be sent to another machine, if any is named."""
        if self._stays_here(uri):
            await self.other_files.decided()

    def may_use(self, uri: str, other: str) -> bool:
        """Whether another document may be used together with one: a cell of the same notebook, or a workspace's."""
        return self.documents.notebooks.are_together(uri, other) or self.other_files.may_use(other)

    def with_surroundings(self, context: CompletionContext, snapshot: Snapshot) -> CompletionContext:
        """The context with snippets of other files, and with lookup text from this document and others."""
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
        """The document's text is no longer valid: it was closed, or replaced by opening it again."""
        self.completer.forget(uri)
        self.diagnostics.forget(uri)
        self._lookup_text.forget(uri)
        self.statistics.observer.closed(uri)

    def _user_paused(self, uri: str) -> None:
        """The user has paused: finish the parse, in slices if it is a long one, then prepare suggestions."""
        if uri not in self.documents or is_secret_document(uri) or self.documents.oddity(uri):  # closed meanwhile
            return
        if self.documents.begin_parsing(uri):
            self._awaiting_parse.add(uri)
            self._pauses.index_soon()
            return
        self.documents.finish_parsing(uri)
        self._prepare_suggestions(uri)

    def _parse_a_little(self) -> bool:
        """Do a slice of a long document's parse, and what waited for its end; returns whether more is left."""
        if self.documents.parse_a_little():
            return True
        while self._awaiting_parse:
            uri = self._awaiting_parse.pop()
            if uri in self.documents:
                self._prepare_suggestions(uri)
        return False

    def _prepare_suggestions(self, uri: str) -> None:
        """Read and index what suggestions in a document may come from."""
        self.other_files.prepare(uri)
        self._lookup_text.update(self.documents.snapshot(uri))
        self._pauses.index_soon()


@lru_cache  # asked at every key, and a path is expensive to make
def is_secret_document(uri: str) -> bool:
    """Whether a document is a file of secrets, which the model must not see."""
    path = path_of(uri)
    return path is not None and is_secret(path)


def _without_full_range(changes: Sequence[ContentChange], snapshot: Snapshot) -> Sequence[ContentChange]:
    """The changes; a single one whose range covers the whole document replaces it, so that only differences count."""
    if len(changes) == 1 and isinstance(changes[0], types.TextDocumentContentChangePartial):
        start, end = changes[0].range.start, changes[0].range.end
        if start == types.Position(0, 0) and end.line > snapshot.position_at(snapshot.length)[0]:
            return [types.TextDocumentContentChangeWholeDocument(changes[0].text)]
    return changes
