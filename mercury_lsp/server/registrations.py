"""What the client is asked to tell of: changed settings, and changed files of the workspace and the model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import from_fs_path

from mercury_lsp.context.workspace import IGNORE_FILES, SOURCE_EXTENSIONS

MODEL_FILES_GLOB = "*.{json,safetensors,gguf}"

SETTINGS_ID, MODEL_FILES_ID, SOURCE_FILES_ID = "mercury-settings", "mercury-model-files", "mercury-source-files"


def settings() -> types.RegistrationParams:
    """Clients that let settings be asked for tell that they changed only to those who registered."""
    options = types.DidChangeConfigurationRegistrationOptions(section="mercury")
    return _registration(SETTINGS_ID, types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)


def model_files(folder: Path, takes_relative_patterns: bool) -> types.RegistrationParams:
    """A model is loaded anew when a training exports into its folder, wherever that is."""
    uri = from_fs_path(str(folder))
    relative = uri is not None and takes_relative_patterns
    pattern = (
        types.RelativePattern(uri, MODEL_FILES_GLOB) if relative and uri else f"{folder.as_posix()}/{MODEL_FILES_GLOB}"
    )
    options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(pattern)])
    return _registration(MODEL_FILES_ID, types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)


def source_files() -> types.RegistrationParams:
    """Files whose declarations are shown to the model, and those that say which are not to be opened."""
    patterns = [f"**/*.{{{','.join(sorted(SOURCE_EXTENSIONS))}}}", *(f"**/{name}" for name in IGNORE_FILES)]
    watchers = [types.FileSystemWatcher(pattern) for pattern in patterns]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
    return _registration(SOURCE_FILES_ID, types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)


def no_model_files() -> types.UnregistrationParams:
    """The model is no folder any more."""
    return types.UnregistrationParams([types.Unregistration(MODEL_FILES_ID, types.WORKSPACE_DID_CHANGE_WATCHED_FILES)])


def is_among(folder: Path | None, changed: Sequence[Path]) -> bool:
    """Whether a changed file lies directly in the folder."""
    return folder is not None and any(path.parent == folder for path in changed)


def _registration(registration_id: str, method: str, options: Any) -> types.RegistrationParams:
    return types.RegistrationParams([types.Registration(registration_id, method, options)])
