"""What the client is asked to report: changed settings, and changed files of the workspace."""

from typing import Any

from lsprotocol import types

from mercury_lsp.context.workspace import IGNORE_FILES, SOURCE_EXTENSIONS

SETTINGS_ID, SOURCE_FILES_ID = "mercury-settings", "mercury-source-files"


def settings() -> types.RegistrationParams:
    """Changed settings: clients that can be asked for their settings report changes only to servers that registered."""
    options = types.DidChangeConfigurationRegistrationOptions(section="mercury")
    return _registration(SETTINGS_ID, types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)


def source_files() -> types.RegistrationParams:
    """Files whose declarations the model may see, and files that list which ones it may not."""
    patterns = [f"**/*.{{{','.join(sorted(SOURCE_EXTENSIONS))}}}", *(f"**/{name}" for name in IGNORE_FILES)]
    watchers = [types.FileSystemWatcher(pattern) for pattern in patterns]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
    return _registration(SOURCE_FILES_ID, types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)


def _registration(registration_id: str, method: str, options: Any) -> types.RegistrationParams:
    return types.RegistrationParams([types.Registration(registration_id, method, options)])
