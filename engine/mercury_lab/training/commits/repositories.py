"""The repositories listed in repositories.toml, and where their bare clones are."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from mercury_lab.training.data import sources
from mercury_lab.training.data.sources import HeldOut, SourceError

REPOSITORIES_FILE = Path(__file__).with_name("repositories.toml")

Split = Literal["training", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


@dataclass(frozen=True, slots=True)
class Repository:
    """One public repository; its history is read up to `commit`."""

    name: str
    commit: str
    licence: str
    split: Split = "training"

    def folder(self, mirror: Path) -> Path:
        """The git directory below `mirror`: OWNER+NAME, or OWNER+NAME/repo. Raises SourceError if there is none."""
        return folder_of(self.name, mirror)


def folder_of(name: str, mirror: Path) -> Path:
    """The git directory of a repository, OWNER/NAME, below `mirror`. Raises SourceError if there is none."""
    folder = mirror / name.replace("/", "+")
    for candidate in (folder / "repo", folder / ".git", folder):
        if (candidate / "HEAD").is_file():
            return candidate
    raise SourceError(f"no clone of {name}: put a bare one into {folder}")


def refused(table: dict[str, Any] | None = None) -> set[str]:
    """Repositories that evaluation is held out with, in lower case."""
    table = tomllib.loads(REPOSITORIES_FILE.read_text("utf-8")) if table is None else table
    return {name.lower() for name in table.get("held_out", {}).get("names", ())}


def load(path: Path = REPOSITORIES_FILE) -> tuple[Repository, ...]:
    """Read and check the list; raises SourceError on a licence or split, HeldOut on what evaluation uses."""
    table = tomllib.loads(path.read_text("utf-8"))
    held_out = refused(table)
    held_names = sources.load().held_names
    found = tuple(Repository(**entry) for entry in table["repository"])
    for repository in found:
        own_name = sources.normalised_name(repository.name.rpartition("/")[2])
        if own_name in held_names or repository.name.lower() in held_out:
            raise HeldOut(f"{repository.name} is kept for evaluation; remove it from {path}")
        if not sources.is_permissive(repository.licence):
            raise SourceError(f"{repository.name} is under {repository.licence!r}, which is not permissive")
        if repository.split not in SPLITS:
            raise SourceError(f"{repository.name}: split is {repository.split!r}; allowed: {', '.join(SPLITS)}")
    return found
