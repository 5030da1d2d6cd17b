"""Files from the Hugging Face Hub. An interrupted download is continued; the token comes from `HF_TOKEN` only."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mercury_engine.downloads.catalogue import KnownModel
from mercury_engine.errors import DownloadCorrupt, DownloadError

_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")

_PAGE = "https://huggingface.co"

_RESUME = "the same command again continues where it stopped"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository."""

    path: str
    size: int | None
    """Bytes; None if only the Hub knows."""
    sha256: str | None
    """None for small files, whose hash the Hub does not publish."""


@dataclass(frozen=True, slots=True)
class Repository:
    """One commit of a repository."""

    name: str
    commit: str
    licence: str | None
    """The licence as its card names it; None if it names none."""
    files: tuple[RemoteFile, ...]


def is_repository_name(text: str) -> bool:
    """Whether the text looks like OWNER/NAME."""
    return _ID.fullmatch(text) is not None


def describe(name: str) -> Repository:
    """The repository's newest commit. Raises DownloadError."""
    with _hub_errors(name):
        from huggingface_hub import HfApi

        info = HfApi(endpoint=_endpoint(), token=_token()).model_info(name, files_metadata=True)
        card = info.card_data
        files = tuple(
            RemoteFile(file.rfilename, file.size or 0, file.lfs.sha256 if file.lfs else None)
            for file in info.siblings or ()
        )
        return Repository(name, info.sha or "main", getattr(card, "license", None) if card else None, files)


def fetch(name: str, path: str, commit: str, target: Path, size: int | None) -> None:
    """Write a file of the repository to the target, with a progress bar on a terminal.

    An interrupted download leaves TARGET.incomplete, which the next call continues. Raises DownloadError and OSError.
    """
    incomplete = target.with_name(f"{target.name}.incomplete")
    with _hub_errors(name):
        from huggingface_hub import hf_hub_url
        from huggingface_hub.file_download import http_get
        from huggingface_hub.utils import logging
        from huggingface_hub.utils.tqdm import disable_progress_bars

        logging.set_verbosity_error()  # it warns at every retry

        if not sys.stderr.isatty():
            disable_progress_bars()
        # `hf_hub_download` would begin again after every interruption.
        with incomplete.open("ab") as file:
            if size is not None and file.tell() > size:
                file.truncate(0)
            http_get(
                hf_hub_url(name, path, revision=commit, endpoint=_endpoint()),
                file,
                resume_size=file.tell(),
                headers={"authorization": f"Bearer {token}"} if (token := _token()) else {},
                expected_size=size,
                displayed_filename=path,
            )
    incomplete.replace(target)


def fetch_known(model: KnownModel, target: Path) -> None:
    """Write the model's file to the target, as `fetch` does, unless the Hub has another file by now."""
    repository = describe(model.repository)
    found = next((file for file in repository.files if file.path == model.path), None)
    if found is None or found.sha256 != model.sha256:
        raise DownloadCorrupt(
            f"{model.repository} no longer has the {model.path} that this version knows; upgrade mercury-lsp"
        )
    fetch(repository.name, found.path, repository.commit, target, found.size)


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


def _token() -> str | Literal[False]:
    """The token from the environment; False keeps the library from looking for one on disk."""
    return os.environ.get("HF_TOKEN") or False


@contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """Turn the library's errors into DownloadError."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when the library is imported
    from huggingface_hub import errors

    try:
        yield
    except Exception as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        accept = f"do so at {_PAGE}/{name}, then set HF_TOKEN to a token of yours"
        missing = f"there is no model {name} on the Hugging Face Hub, or it is private; check the name, or set HF_TOKEN"
        silent = f"the Hugging Face Hub does not answer ({why}); check the network and HF_ENDPOINT, then try again"
        advice = {
            errors.GatedRepoError: f"{name} asks you to accept its terms: {accept}",
            errors.RepositoryNotFoundError: missing,
            errors.EntryNotFoundError: f"{name} no longer has that file ({why}); run the command again",
            errors.HFValidationError: f"{name} is not a repository of the Hub ({why}); check the name",
            errors.OfflineModeIsEnabled: "HF_HUB_OFFLINE is set, so nothing can be downloaded; unset it",
            errors.HTTPError: f"{silent}: {_RESUME}",  # type: ignore[attr-defined]  # that of its HTTP library
        }
        if isinstance(error, OSError) and error.errno is None:  # else one of the disk
            advice[OSError] = f"the download of {name} was cut short ({why}); {_RESUME}"
        if (said := next((text for kind, text in advice.items() if isinstance(error, kind)), None)) is None:
            raise
        raise DownloadError(said) from error
