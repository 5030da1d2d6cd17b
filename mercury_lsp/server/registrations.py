"""What the client is asked to report: changed settings, and changed files of the workspace and the model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import from_fs_path

from mercury_lsp.context.workspace import IGNORE_FILES, SOURCE_EXTENSIONS

MODEL_FILES_GLOB = "*.{json,safetensors,gguf}"

SETTINGS_ID, MODEL_FILES_ID, SOURCE_FILES_ID = "mercury-settings", "mercury-model-files", "mercury-source-files"


def settings() -> types.RegistrationParams:
    """Changed settings: clients that can be asked for their settings report changes only to servers that registered."""
    options = types.DidChangeConfigurationRegistrationOptions(section="mercury")
    return _registration(SETTINGS_ID, types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)


def model_files(folder: Path, takes_relative_patterns: bool) -> types.RegistrationParams:
    """Files in a model's folder: the model is loaded again when training exports into it."""
    uri = from_fs_path(str(folder))
    relative = uri is not None and takes_relative_patterns
    pattern = (
        types.RelativePattern(uri, MODEL_FILES_GLOB) if relative and uri else f"{folder.as_posix()}/{MODEL_FILES_GLOB}"
    )
    options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(pattern)])
    return _registration(MODEL_FILES_ID, types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)


def source_files() -> types.RegistrationParams:
    """Files whose declarations the model may see, and files that list which ones it may not."""
    patterns = [f"**/*.{{{','.join(sorted(SOURCE_EXTENSIONS))}}}", *(f"**/{name}" for name in IGNORE_FILES)]
    watchers = [types.FileSystemWatcher(pattern) for pattern in patterns]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
    return _registration(SOURCE_FILES_ID, types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)


def no_model_files() -> types.UnregistrationParams:
    """Undoes `model_files`."""
    return types.UnregistrationParams([types.Unregistration(MODEL_FILES_ID, types.WORKSPACE_DID_CHANGE_WATCHED_FILES)])


def is_among(folder: Path | None, changed: Sequence[Path]) -> bool:
    """Whether a changed file is directly in the folder."""
    return folder is not None and any(path.parent == folder for path in changed)


def _registration(registration_id: str, method: str, options: Any) -> types.RegistrationParams:
    return types.RegistrationParams([types.Registration(registration_id, method, options)])
