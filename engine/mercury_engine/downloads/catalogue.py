"""The models of `catalogue.toml`, which can be added by name: their files, licences and memory."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

ADAPTERS = Path(__file__).parents[1] / "assets" / "adapters"


@dataclass(frozen=True, slots=True)
class WheelPart:
    """A part of a file, packed in a wheel."""

    requirement: str
    """The wheel, as pip names it: `name==version`."""
    member: str
    """The part's path inside the wheel."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be added by its name: a GGUF file, the same wherever it comes from."""

    name: str
    title: str
    author: str
    licence: str
    licence_url: str
    file_name: str
    """Of its file once it is installed."""
    sha256: str
    repository: str
    """Where the Hub has the file, at `path`."""
    path: str
    weight_bytes: int
    """Bytes on the disk once it is installed; a forward pass reads nearly all of them."""
    memory_mb: int
    """Resident memory of a server that has loaded it and filled a few gaps."""
    size: int | None = None
    """Bytes; None if only the Hub knows."""
    wheels: tuple[WheelPart, ...] = ()
    """The wheels whose parts make up the file, joined in this order; none if only the Hub has it."""
    edit_format: str | None = None
    """The family of the edit format that it was trained on."""

    @property
    def download_bytes(self) -> int:
        """Bytes of the download, about so where only the Hub knows."""
        return self.size or self.weight_bytes

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
    wheels = _wheel_parts(**entry.pop("wheels")) if "wheels" in entry else ()
    entry.setdefault("weight_bytes", entry.get("size"))
    return KnownModel(name=name, wheels=wheels, **entry)


def _wheel_parts(name: str, version: str, count: int) -> tuple[WheelPart, ...]:
    """The parts of a file spread over the wheels NAME1 to NAMEcount, as data/part01.bin and so on."""
    stem = name.replace("-", "_")
    return tuple(WheelPart(f"{name}{n}=={version}", f"{stem}{n}/data/part{n:02}.bin") for n in range(1, count + 1))


_READ = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text("utf-8"))

KNOWN = {name: _known(name, entry) for name, entry in _READ["known"].items()}

KNOWN_REPOSITORIES = {name: KnownRepository(name, **entry) for name, entry in _READ["repositories"].items()}
