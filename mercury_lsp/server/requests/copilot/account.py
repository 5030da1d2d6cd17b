"""Signing in: there is no account, so every client is already signed in as a local user."""

from typing import Any

import mercury_lsp
from mercury_lsp.server.server import MercuryServer

USER = "local"


def signed_in(server: MercuryServer, params: Any) -> dict[str, str]:
    """checkStatus, signInConfirm, and signOut, which changes nothing."""
    return {"status": "OK", "user": USER}


def sign_in(server: MercuryServer, params: Any) -> dict[str, str]:
    """signIn and signInInitiate: signed in already."""
    return {"status": "AlreadySignedIn", "user": USER}


def set_editor_info(server: MercuryServer, params: Any) -> str:
    """setEditorInfo: ignored, because initialize said what matters about the client."""
    return "OK"


def get_version(server: MercuryServer, params: Any) -> dict[str, str]:
    return {"version": mercury_lsp.__version__}


def models(server: MercuryServer, params: Any) -> list[dict[str, Any]]:
    """copilot/models: the loaded model, if there is one."""
    engine = server.session.completer.engine
    if engine is None:
        return []
    return [{"id": engine.name, "modelName": engine.name, "scopes": ["completion"], "default": True, "preview": False}]
