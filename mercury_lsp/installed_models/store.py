"""The folder of the user's models: NAME/ with the model, or a link to it, and NAME.json with its record.

A model appears in it whole or not at all: it is made in a folder `.partial-NAME`, written to the disk and renamed.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from mercury_engine.downloads.files import disk_errors, sync
from mercury_engine.errors import ModelNotFound
from mercury_engine.model_folders import BUNDLED_MODEL, PACKAGED_MODELS, user_models

from mercury_lsp import default_model, private_files
from mercury_lsp.errors import UsageError
from mercury_lsp.plain_data import InvalidData, structured
from mercury_lsp.settings import BUNDLED, SAME

PACKAGED = frozenset(each.parent.name for each in PACKAGED_MODELS.glob("*/config.json"))
"""The names of the models that come with the package."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Measurement:
    """A model's speed and memory, as measured on this machine."""

    pass_ms: float
    """Milliseconds of a forward pass, with its share of the work around it."""
    answer_ms: float
    """Milliseconds of a fill after a key."""
    memory_mb: float | None
    """Resident memory of a process that has filled a few gaps; None if the system does not report it."""
    day: str
    """When it was measured, as in 2026-11-24."""


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """Kept in NAME.json beside the model's folder, which may be the user's own and is left as it is."""

    source: str
    licence: str | None = None
    measured: Measurement | None = None


class Store:
    """The installed models."""

    def __init__(self, folder: Path | None = None):
        self.folder = folder or user_models()

    def names(self) -> list[str]:
        """The installed models, sorted."""
        if not self.folder.is_dir():
            return []
        return sorted(each.name for each in self.folder.iterdir() if each.is_dir() and _NAME.fullmatch(each.name))

    def path(self, name: str) -> Path:
        """The folder of an installed model, the bundled one too. Raises ModelNotFound."""
        if name == BUNDLED:
            return BUNDLED_MODEL
        if name not in self.names():
            raise _not_installed(name)
        return self.folder / name

    def record(self, name: str) -> ModelRecord | None:
        """What is known about a model, the bundled one too; None if nothing is.

        A measurement that another version made is left out.
        """
        try:
            raw = json.loads(self._record_path(name).read_text("utf-8"))
            try:
                return structured(raw, ModelRecord)
            except InvalidData:
                return structured({**raw, "measured": None}, ModelRecord)
        except (OSError, ValueError, TypeError):
            return None

    def write_record(self, name: str, known: ModelRecord) -> None:
        """Keep a model's record. Raises StorageError and OSError."""
        _write(self._record_path(name), json.dumps(asdict(known), indent=2) + "\n")

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Keep other processes from changing the models. Raises UsageError if one does, and StorageError."""
        path = self.folder / ".lock"
        with disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            taken = private_files.take_lock(path, is_private=False)  # models may be shared
            if taken is not None:
                private_files.sign(taken)
        if taken is None:
            owner, _ = private_files.signature(path)
            who = f"process {owner}" if owner is not None else "another process"
            raise UsageError(f"{who} is adding or removing a model; wait until it is done, then run the command again")
        try:
            yield
        finally:
            os.close(taken)

    def require_free(self, name: str) -> None:
        """Raise UsageError unless a model may be installed under this name."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot be a model's name; choose one of a-z, 0-9, dot, dash and underscore with --name"
            )
        if name in (BUNDLED, SAME):
            raise UsageError(f"{name} has a meaning of its own in the settings; choose another name with --name")
        if os.path.lexists(self.folder / name):
            raise UsageError(
                f"{name} is installed already; mercury-lsp models remove {name} removes it, --name gives another name"
            )

    def unfinished(self, name: str) -> Path:
        """The folder in which a model is made, with the remains of an interrupted download."""
        path = self.folder / f".partial-{name}"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def publish(self, name: str, made: Path, known: ModelRecord) -> None:
        """Make a finished folder, or a link to the user's, the installed model. Raises StorageError and OSError."""
        if not _is_link(made):
            with disk_errors(self.folder):
                for file in made.iterdir():
                    if not file.is_symlink():
                        sync(file)
                sync(made)
        self.write_record(name, known)
        made.rename(self.folder / name)
        sync(self.folder)
        shutil.rmtree(self.unfinished(name), ignore_errors=True)

    def remove(self, name: str) -> None:
        """Delete a model, or the link to it, and the remains of an interrupted download. Raises ModelNotFound."""
        partial, path = self.folder / f".partial-{name}", self.folder / name
        if name not in self.names() and not path.is_symlink() and not partial.is_dir():
            raise _not_installed(name)
        with disk_errors(self.folder):
            if _is_link(path):
                os.rmdir(path) if os.name == "nt" else path.unlink()
            elif path.is_dir():
                removed = self.folder / f".removed-{name}"
                shutil.rmtree(removed, ignore_errors=True)
                path.rename(removed)
                shutil.rmtree(removed)
            shutil.rmtree(partial, ignore_errors=True)
            self._record_path(name).unlink(missing_ok=True)

    def make_default(self, name: str, edits: bool = False) -> None:
        """Have editors use this installed or packaged model, or BUNDLED; for next edits this one, or SAME.

        Raises ModelNotFound, StorageError and OSError.
        """
        if name not in (SAME if edits else BUNDLED, *PACKAGED, *self.names()):
            raise _not_installed(name)
        _write(default_model.path(edits), f"{name}\n", 0o600)

    def _record_path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def _not_installed(name: str) -> ModelNotFound:
    return ModelNotFound(f"{name} is not installed; mercury-lsp models list shows what is")


def _write(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a file whole or not at all. Raises StorageError and OSError."""
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_name(f".{path.name}")
        written.unlink(missing_ok=True)
        written.touch(mode, exist_ok=False)
        written.write_text(text, "utf-8")
        sync(written)
        written.replace(path)


def _is_link(path: Path) -> bool:
    """Whether this is a symbolic link, or a junction on Windows."""
    return os.path.lexists(path) and path.resolve() != path.parent.resolve() / path.name
