"""mercury/status, and the command mercury.status for clients that can only run commands."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.server import MercuryServer

STATUS_METHOD = "mercury/status"

STATUS_COMMAND = "mercury.status"


@attrs.define
class StatusParams:
    """Parameters; all are optional."""

    text_document: types.TextDocumentIdentifier | None = None
    """A document, to learn whether anything would be suggested in it."""


def status(server: MercuryServer, params: StatusParams) -> dict[str, Any]:
    """The state of the server and its model, and whether the document gets suggestions."""
    answer = server.status.current.to_lsp() | {"version": server.version, "model": server.session.settings.model}
    if engine := server.session.completer.engine:
        answer |= {"engine": {"name": engine.name, "device": engine.device, "backend": engine.backend}}
    if params.text_document is not None:
        language = server.session.documents.snapshot(params.text_document.uri).language_id
        answer |= {"languageId": language, "suggests": server.session.settings.allows(language)}
    return answer


def status_command(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> dict[str, Any]:
    """The answer to mercury/status; takes that request's parameters, or none."""
    return status(server, server.protocol.structure(arguments[0] if arguments else {}, StatusParams))
