"""The models of `catalogue.toml`, which can be added by name: their files, licences and memory."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from mercury_engine.downloads.origin import FileOrigin, HubFile, wheel_parts

ADAPTERS = Path(__file__).parents[1] / "assets" / "adapters"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be added by its name."""

    name: str
    title: str
    author: str
    licence: str
    licence_url: str
    origin: FileOrigin
    """Its GGUF file."""
    weight_bytes: int
    """Bytes on the disk once it is installed; a forward pass reads nearly all of them."""
    memory_mb: int
    """Resident memory of a server that has loaded it and filled a few gaps."""
    edit_format: str | None = None
    """The family of the edit format that it was trained on."""

    @property
    def download_bytes(self) -> int:
        """Bytes of the download, about so where only the Hub knows."""
        return self.origin.size or self.weight_bytes

    @property
    def adapters(self) -> list[Path]:
        """The adapters that come with this package for the model; they are installed beside its file."""
        return sorted((ADAPTERS / self.name).glob("*.adapter.safetensors"))


@dataclass(frozen=True, slots=True)
class KnownRepository:
    """A repository of the Hub that can be added by a short name; its licence is read there and shown."""

    name: str
    repository: str
    memory_mb: int
    """Resident memory of a server that has loaded it in eight bits on a CPU, estimated from its size."""
    about: str
    """What kind of model it is, and for what machine, for people to read."""
    edit_format: str | None = None
    """The family of the edit format that it was trained on."""


def _known(name: str, entry: dict[str, Any]) -> KnownModel:
    size = entry.pop("size", None)
    wheels = wheel_parts(**entry.pop("wheels")) if "wheels" in entry else ()
    origin = FileOrigin(entry.pop("file"), entry.pop("sha256"), wheels, size, HubFile(**entry.pop("hub")))
    return KnownModel(name=name, origin=origin, **({"weight_bytes": size} | entry))


_READ = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text("utf-8"))

KNOWN = {name: _known(name, entry) for name, entry in _READ["known"].items()}

KNOWN_REPOSITORIES = {name: KnownRepository(name, **entry) for name, entry in _READ["repositories"].items()}
