"""Signing in: there is no account, so every client is already signed in as a local user."""

from typing import Any

import mercury_lsp
from mercury_lsp.server.connection import Handler
from mercury_lsp.server.server import MercuryServer


def _always(answer: Any) -> Handler:
    return lambda server, params: answer


signed_in = _always({"status": "OK", "user": "local"})
"""checkStatus, signInConfirm, and signOut, which changes nothing."""

sign_in = _always({"status": "AlreadySignedIn", "user": "local"})
"""signIn and signInInitiate."""

set_editor_info = _always("OK")
"""setEditorInfo: ignored, because initialize said what matters about the client."""

get_version = _always({"version": mercury_lsp.__version__})


def models(server: MercuryServer, params: Any) -> list[dict[str, Any]]:
    """copilot/models: the loaded model, if there is one."""
    if (engine := server.session.completer.engine) is None:
        return []
    return [{"id": engine.name, "modelName": engine.name, "scopes": ["completion"], "default": True, "preview": False}]
