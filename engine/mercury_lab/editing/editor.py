"""An editor that asks the language server, in a process of its own, what it would show at a cursor."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from mercury_lab.editing.client import Client
from mercury_lab.editing.cursors import Cursor
from mercury_lab.editing.edit_desk import position
from mercury_lsp.documents.languages import language_of
from mercury_lsp.errors import UsageError

SERVER_COMMAND = (sys.executable, "-m", "mercury_lsp", "--in-process")

CAPABILITIES = {"experimental": {"mercury": {"confidence": True}}}


@dataclass(frozen=True, slots=True)
class ShownSuggestion:
    """The text that a user would see, "" for none, and its confidence."""

    text: str
    confidence: float = 0.0


class Editor:
    """Opens a document for every question, so that no answer depends on an earlier one."""

    def __init__(self, client: Client):
        self._client = client
        self._document: dict[str, Any] = {}
        """The identifier of the open document."""

    def show(self, cursor: Cursor) -> ShownSuggestion:
        """What is shown at a cursor unasked. Raises UsageError if the server reports a problem."""
        self._close()
        self._document = {"uri": cursor.path.absolute().as_uri()}
        text = {"languageId": language_of(cursor.path.name), "version": 1, "text": cursor.before + cursor.after}
        self._client.notify("textDocument/didOpen", {"textDocument": self._document | text})
        return self._ask(cursor)

    def accept(self, cursor: Cursor, text: str) -> ShownSuggestion:
        """What is shown once the text has been accepted that `show` gave last. Raises UsageError as `show` does."""
        at, document = position(cursor.before, len(cursor.before)), self._document | {"version": 2}
        change = {"range": {"start": at, "end": at}, "text": text}
        self._client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        return self._ask(replace(cursor, before=cursor.before + text))

    def _close(self) -> None:
        if self._document:
            self._client.notify("textDocument/didClose", {"textDocument": self._document})

    def _ask(self, cursor: Cursor) -> ShownSuggestion:
        at = position(cursor.before, len(cursor.before))
        asked = {"textDocument": self._document, "position": at, "context": {"triggerKind": 2}}
        items = self._client.request("textDocument/inlineCompletion", asked)["items"]
        if self._client.messages:
            raise UsageError(self._client.messages[0])
        if not items:
            return ShownSuggestion("")
        return ShownSuggestion(items[0]["insertText"], items[0]["mercury"]["confidence"])

    @property
    def model(self) -> str:
        return self._client.model


@contextmanager
def editor(settings: dict[str, Any]) -> Iterator[Editor]:
    """An editor connected to a new server with these settings."""
    with Client(SERVER_COMMAND) as client:
        client.initialize(settings, CAPABILITIES)
        yield Editor(client)
