"""mercury/status, and the command mercury.status for clients that can only run commands."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.session import MercuryServer

METHOD = "mercury/status"

STATUS = "mercury.status"


@attrs.define
class StatusParams:
    """All optional."""

    text_document: types.TextDocumentIdentifier | None = None
    """Asks whether anything would be suggested in this one."""


def status(server: MercuryServer, params: StatusParams) -> dict[str, Any]:
    """How the server, its model and a document are."""
    told = server.status.current.to_lsp() | {"version": server.version, "model": server.completer.settings.model}
    if engine := server.completer.engine:
        told |= {"engine": {"name": engine.name, "device": engine.device, "backend": engine.backend}}
    if params.text_document is not None:
        language = server.documents.snapshot(params.text_document.uri).language_id
        told |= {"languageId": language, "suggests": server.completer.settings.allows(language)}
    return told


def status_command(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> dict[str, Any]:
    """The same; takes the request's parameters, or none."""
    return status(server, server.protocol.structure(arguments[0] if arguments else {}, StatusParams))
