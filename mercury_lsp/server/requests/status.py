"""mercury/status: the state of the server, for clients that show it."""

from dataclasses import asdict
from typing import Any

import attrs
from lsprotocol import types
from mercury_engine.api import InferenceEngine

import mercury_lsp
from mercury_lsp.engine_host import gpu_proof
from mercury_lsp.server.server import MercuryServer

STATUS_METHOD = "mercury/status"


@attrs.define
class StatusParams:
    text_document: types.TextDocumentIdentifier | None = None
    """Ask whether anything is suggested in this document."""


def status(server: MercuryServer, params: StatusParams) -> dict[str, Any]:
    """The state of the server and its model, and whether the document gets suggestions."""
    settings, completer = server.session.settings, server.session.completer
    answer = asdict(server.status.current) | {"version": mercury_lsp.__version__, "model": settings.model}
    if engine := completer.engine:
        why_not_gpu = gpu_proof.why_not(settings)
        answer |= {"engine": _described(engine) | ({"whyNotGpu": why_not_gpu} if why_not_gpu else {})}
    if settings.for_edits is not None:
        answer |= {"editModel": settings.edit_model}
        if engine := completer.edit_engine.engine:
            answer |= {"editEngine": _described(engine) | completer.edit_engine.of_server()}
    if params.text_document is not None:
        uri = params.text_document.uri
        why = server.why_no_suggestions(uri)
        answer |= {"languageId": server.session.documents.snapshot(uri).language_id, "suggests": why is None}
        answer |= {} if why is None else {"why": why}
    return answer


def _described(engine: InferenceEngine) -> dict[str, str]:
    return {"name": engine.name, "device": engine.device, "backend": engine.backend}
