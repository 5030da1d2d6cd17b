"""Signing in and the like: there is no account, so every client is signed in already, as a local user."""

from typing import Any

from mercury_lsp.server.session import MercuryServer

USER = "local"


def check_status(server: MercuryServer, params: Any) -> dict[str, str]:
    """checkStatus."""
    return {"status": "OK", "user": USER}


def sign_in(server: MercuryServer, params: Any) -> dict[str, str]:
    """signIn and signInInitiate."""
    return {"status": "AlreadySignedIn", "user": USER}


def sign_in_confirm(server: MercuryServer, params: Any) -> dict[str, str]:
    """signInConfirm."""
    return {"status": "OK", "user": USER}


def sign_out(server: MercuryServer, params: Any) -> dict[str, str]:
    """signOut changes nothing."""
    return {"status": "OK", "user": USER}


def set_editor_info(server: MercuryServer, params: Any) -> str:
    """setEditorInfo: what matters of the client stood in initialize."""
    return "OK"


def get_version(server: MercuryServer, params: Any) -> dict[str, str]:
    """getVersion."""
    return {"version": server.version}


def models(server: MercuryServer, params: Any) -> list[dict[str, Any]]:
    """copilot/models: the one that is loaded, if one is."""
    engine = server.completer.engine
    if engine is None:
        return []
    return [{"id": engine.name, "modelName": engine.name, "scopes": ["completion"], "default": True, "preview": False}]
