"""Suggestions and next edits at a place of an open document, for every request that shows them."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import unquote

from lsprotocol import types
from mercury_engine.api import OnStep
from mercury_engine.errors import Cancelled, MercuryError

from mercury_lsp.completion.coalescing import Feature, SuggestionRequest
from mercury_lsp.completion.next_edits import Question, RenamedDocument
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.postprocessing import without_last_comma
from mercury_lsp.completion.suggestions import Renaming, Suggestion
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.context.scope import CursorClass
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.redaction import edit_shows_secret
from mercury_lsp.errors import UnknownDocument
from mercury_lsp.server.editor import Editor
from mercury_lsp.server.session import Session, is_secret_document
from mercury_lsp.server.status import StatusBoard
from mercury_lsp.settings import DisabledIn

logger = logging.getLogger(__name__)

PREPARE_SECONDS = 0.001
"""Head start of a fill before other work runs beside it."""

REWRITE_AFTER_SECONDS = 0.12
"""Pause between a fill that shows nothing and a rewrite around the cursor; most keys follow one another faster."""

DISABLED_PLACES: dict[CursorClass, DisabledIn] = {CursorClass.COMMENT: "comments", CursorClass.STRING: "strings"}

_Claim = tuple[ChunkedText, int, Feature]
"""A text, a cursor, and the feature (ghost text or edit) that shows insertions there."""


class Suggester:
    """Answers every request for suggestions; if the engine fails there are none, and the user is notified once."""

    def __init__(self, session: Session, editor: Editor, status: StatusBoard):
        self._session, self._editor, self._status = session, editor, status
        self._documents, self._next_edits = session.documents, session.completer.next_edits
        self._claim: _Claim | None = None

    async def suggest(
        self, uri: str, at: types.Position, feature: Feature, automatic: bool, on_step: OnStep | None = None
    ) -> tuple[list[Suggestion], Snapshot]:
        """Suggestions at a position of a document as it is now, and that document; several if not `automatic`.

        `feature` shows them; `automatic`: the user did not ask. `on_step` sees the denoising. Raises
        UnknownDocument and Cancelled.
        """
        self._session.last_uri = uri
        if self._is_left_alone(uri):
            return [], self._documents.snapshot(uri)
        context, snapshot = self._documents.context_at(uri, at)
        observer, completer = self._session.statistics.observer, self._session.completer
        impression = observer.requested(uri, context.offset, context.language_id, automatic)
        request = SuggestionRequest(feature, snapshot, context.offset, not automatic, on_step)
        completer.supersede(request)
        if automatic and (why := self._why_held_back(context, feature)) is not None:
            completer.silences[uri] = why
            observer.answered(impression, [])
            return [], snapshot
        is_ghost = automatic and feature == "inline"
        if automatic:
            impression.is_hidden = is_ghost and self._session.settings.display == "subtle"
        context = self._session.with_surroundings(context, snapshot)
        if completer.stays_here(uri):  # every file counts as ignored until the ignore files are read
            await self._session.other_files.decided()
        if automatic and (begun := self._begun_again(snapshot, context.offset)) is not None:
            observer.answered(impression, [begun])
            return [begun], snapshot
        found = await (self._ghost_text(context, request) if is_ghost else self._fills(context, request))
        if found is None:
            completer.silences[uri] = "the model failed; run mercury-lsp doctor"
            return [], snapshot
        if found:
            completer.silences.pop(uri, None)
        if not automatic:
            lines = (_first_line(each, context.offset, snapshot) for each in found)
            found = [each for both in zip(found, lines, strict=True) for each in both if each is not None]
        if completer.engine is not None:
            observer.model = completer.engine.name
        observer.answered(impression, found)
        return found, snapshot

    def _why_held_back(self, context: CompletionContext, feature: Feature) -> str | None:
        """The setting that hides unrequested suggestions at the context's cursor, for people to read."""
        settings = self._session.settings
        place = DISABLED_PLACES.get(context.cursor_class)
        if place in settings.disabled_in:
            return f"mercury.disabledIn names {place}"
        if settings.display == "subtle" and feature == "inline" and not self._editor.capabilities.takes_subtle:
            return "mercury.display is subtle, and this editor shows text by key only"
        return None

    def _begun_again(self, snapshot: Snapshot, cursor: int) -> Suggestion | None:
        """The rest of lines that the user inserted twice before and now starts to type again."""
        line, start = snapshot.line_at(cursor)
        if line[cursor - start :].strip() or not line.strip() or not self.allows_next_edits(snapshot):
            return None
        return self._next_edits.at_cursor(self._session.question(snapshot, cursor))

    async def _fills(self, context: CompletionContext, request: SuggestionRequest) -> list[Suggestion] | None:
        return await self._answer(self._session.completer.complete(context, request))

    async def _ghost_text(self, context: CompletionContext, request: SuggestionRequest) -> list[Suggestion] | None:
        """The fill, or else the next edit if it only inserts at the cursor and no other feature shows it there.

        What a next edit is found by is worked out while the engine works, in case one follows the fill.
        """
        snapshot, cursor = request.snapshot, context.offset
        if (claim := self._claimed("inline", snapshot, cursor)) is None:
            return await self._fills(context, request)
        prepared: list[Question] = []

        def prepare() -> None:
            if self._session.other_files.is_decided and self._may_insert(snapshot):
                prepared.append(self._worked_out(snapshot, cursor))

        preparing = asyncio.get_running_loop().call_later(PREPARE_SECONDS, prepare)
        found = None
        try:
            found = await self._fills(context, request)
            if found == []:
                found = await self._insertion(snapshot, cursor, prepared)
        finally:
            preparing.cancel()
            if not found and self._claim is claim:  # and not that of a newer request for the same place
                self._claim = None
        return found

    def _worked_out(self, snapshot: Snapshot, cursor: int) -> Question:
        """What a next edit is found by, and what the rules propose."""
        parsed = self._documents.parsed(snapshot.uri)
        return self._next_edits.worked_out(self._session.question(parsed, cursor, self._shown_with(snapshot.uri)))

    async def _insertion(self, snapshot: Snapshot, cursor: int, prepared: Sequence[Question]) -> list[Suggestion]:
        """The next edit as ghost text, if it only inserts at the cursor."""
        await self._session.other_files.decided()
        if not self._may_insert(snapshot):
            return []
        [asked] = prepared or [self._worked_out(snapshot, cursor)]

        async def pauses() -> bool:
            await asyncio.sleep(REWRITE_AFTER_SECONDS)
            return self._documents.is_current(asked.snapshot)

        return await self._answer(self._next_edits.insertion(asked, pauses)) or []

    def _may_insert(self, snapshot: Snapshot) -> bool:
        return self._documents.is_current(snapshot) and self.allows_next_edits(snapshot)

    def _claimed(self, feature: Feature, snapshot: Snapshot, cursor: int) -> _Claim | None:
        """A feature's claim to show insertions at a cursor; None if the other feature holds it."""
        held = self._claim
        if held is not None and held[0] is snapshot.source and held[1] == cursor and held[2] != feature:
            return None
        self._claim = snapshot.source, cursor, feature
        return self._claim

    async def next_edit(
        self, uri: str, feature: Feature, at: types.Position | None = None
    ) -> tuple[list[Suggestion], Snapshot]:
        """The next edit, if any, and the document that it edits; not counted.

        A renaming may go on in another document if the editor can show it there. `at` is the cursor; None if the user
        asked by key. Raises UnknownDocument and Cancelled.
        """
        self._session.last_uri = uri
        requested = self._documents.snapshot(uri)
        if (snapshot := await self._parsed(uri)) is None or not self._documents.is_current(requested):
            return [], self._documents.snapshot(uri)
        asked = self._question(snapshot, at)
        found = await self._answer(self._next_edits.find(asked, feature)) or []
        if found and (cursor := asked.cursor) is not None and found[0].as_ghost_text(snapshot, cursor) is not None:
            found = found if self._claimed(feature, snapshot, cursor) else []
        edited = found[0].elsewhere or snapshot if found else snapshot
        return (found, edited) if all(map(self._documents.is_current, (snapshot, edited))) else ([], snapshot)

    async def wants_fill(self, uri: str, at: types.Position) -> bool:
        """Whether a fill at the cursor `at` may come before a next edit.

        Not if a server makes the edits, since it inserts at the cursor too; not before words of the cursor's line; not
        if the last change is known to go on elsewhere. Finishes a deferred parse first. Raises UnknownDocument.
        """
        if self._is_left_alone(uri) or not self.allows_next_edits(self._documents.snapshot(uri)):
            return True
        engine = self._session.completer.edit_engine
        if engine.is_remote and not (engine.is_elsewhere and self._session.completer.stays_here(uri)):
            return False
        if (snapshot := await self._parsed(uri)) is None:
            return True
        asked = self._question(snapshot, at)
        line, start = snapshot.line_at(cursor := asked.cursor or 0)
        if asked.hunks and any(each.isalnum() for each in line[cursor - start :]):
            return False
        return not self._next_edits.goes_on(asked)

    async def next_place(self, uri: str) -> Place | None:
        """Where the user probably edits next, but not where they just edited. Raises UnknownDocument."""
        if (snapshot := await self._parsed(uri)) is None:
            return None
        asked = self._question(snapshot)
        return self._next_edits.place(asked) if asked.hunks else None

    async def has_next_edit(self, snapshot: Snapshot, may_ask: bool) -> bool:
        """Whether there is an edit to apply: by rules, or by a model if it `may_ask` one."""
        if not self.allows_next_edits(snapshot):
            return False
        if self._next_edits.is_known(self._question(snapshot)):
            return True
        if not may_ask or self._next_edits.regions.rewrite is None:
            return False
        with suppress(Cancelled, UnknownDocument):
            return bool((await self.next_edit(snapshot.uri, "action"))[0])
        return False

    def unfinished_renaming(self, snapshot: Snapshot) -> Renaming | None:
        """The renaming that a change began, if it has places left that may be edited."""
        if not self.allows_next_edits(snapshot):
            return None
        found = self._next_edits.renaming(self._session.question(snapshot))
        left = found.left if found is not None else ()
        is_open = any(not edit_shows_secret(snapshot, each.start, each.end, each.inserted) for each in left)
        return found if is_open else None

    async def rename_all(self, uri: str) -> RenamedDocument | None:
        """The last renaming, made everywhere in the document; None if there is none or it would break the document.

        Raises UnknownDocument.
        """
        snapshot = await self._parsed(uri)
        found = None if snapshot is None else self._next_edits.rename_all(self._session.question(snapshot))
        return found if found is not None and (found.edits or found.kept) else None

    def _question(self, snapshot: Snapshot, at: types.Position | None = None) -> Question:
        """What a next edit is found by; `at` is the cursor, None if the user asked by key."""
        if at is None:
            return self._session.question(snapshot, None, self._others(snapshot.uri))
        cursor = snapshot.offset_at(at.line, at.character)
        return self._session.question(snapshot, cursor, self._shown_with(snapshot.uri))

    async def _parsed(self, uri: str) -> Snapshot | None:
        """The document, parsed in slices if it is long; None if it gets no next edits.

        Waits for the ignore files' verdict on other files. Raises UnknownDocument, and Cancelled if the document is
        closed meanwhile.
        """
        if self._is_left_alone(uri):
            return None
        documents = self._documents
        await self._session.other_files.decided()
        if uri in documents and documents.begin_parsing(uri):
            while documents.parse_a_little():
                await asyncio.sleep(0)
        if uri not in documents:
            raise Cancelled("the document was closed")
        documents.finish_parsing(uri)
        snapshot = documents.parsed(uri)
        return snapshot if self.allows_next_edits(snapshot) else None

    def _others(self, uri: str) -> list[tuple[Snapshot, str]]:
        """Other open documents that may be edited together with this one, with their paths."""
        uris = [each for each in self._documents.uris if each != uri and self._session.may_use(uri, each)]
        others = [each for each in map(self._documents.parsed, uris) if self.allows_next_edits(each)]
        return [(each, self._documents.path(each.uri)) for each in others]

    def _shown_with(self, uri: str) -> list[tuple[Snapshot, str]]:
        """The other documents in which the editor shows edits unasked."""
        return self._others(uri) if self._editor.capabilities.takes_edits_elsewhere else []

    def allows_next_edits(self, snapshot: Snapshot) -> bool:
        """Whether next edits may be made in a document and learned from it."""
        settings = self._session.settings
        if not settings.next_edits or not settings.allows(snapshot.language_id):
            return False
        return not is_secret_document(snapshot.uri) and not snapshot.source.has_long_line

    def _is_left_alone(self, uri: str) -> bool:
        """Whether nothing is suggested in a document; the user is told of an oddity once. Raises UnknownDocument."""
        if is_secret_document(uri):
            self._documents.snapshot(uri)
            return True
        if (oddity := self._documents.oddity(uri)) is None:
            return False
        name = PurePosixPath(unquote(uri)).name
        self._editor.show_message(types.MessageType.Info, f"Mercury makes no suggestions in {name}, which {oddity}.")
        return True

    async def _answer(self, asking: Awaitable[list[Suggestion]]) -> list[Suggestion] | None:
        """The completer's answer; None if the engine fails. Raises Cancelled."""
        try:
            with self._status.busy():
                return await asking
        except Cancelled:
            raise
        except Exception as error:
            logger.exception("a fill failed")
            reason = str(error) if isinstance(error, MercuryError) else f"{type(error).__name__}: {error}"
            self._editor.show_message(types.MessageType.Error, f"Mercury: {reason}; run mercury-lsp doctor")
            return None


def _first_line(suggestion: Suggestion, offset: int, snapshot: Snapshot) -> Suggestion | None:
    """The suggestion's first line, as it may stand alone at the offset; None if it has only one."""
    line = suggestion.first_line()
    return None if line is None else replace(line, text=without_last_comma(line.text, offset, snapshot))
