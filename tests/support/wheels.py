"""Wheels that carry the parts of a file."""

import zipfile
from pathlib import Path

from mercury_engine.downloads.catalogue import WheelPart

NAME, VERSION = "mercury-test-part", "1.0"


def write(folder: Path, *contents: bytes) -> tuple[WheelPart, ...]:
    """Write a wheel for each part, as an index would serve it; importing one would fail."""
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(_written(folder, number, content) for number, content in enumerate(contents, 1))


def _written(folder: Path, number: int, content: bytes) -> WheelPart:
    package = f"{NAME.replace('-', '_')}{number}"
    info = f"{package}-{VERSION}.dist-info"
    with zipfile.ZipFile(folder / f"{package}-{VERSION}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{package}/__init__.py", "raise AssertionError('imported')")
        wheel.writestr(f"{package}/data/part{number:02}.bin", content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {NAME}{number}\nVersion: {VERSION}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return WheelPart(f"{NAME}{number}=={VERSION}", f"{package}/data/part{number:02}.bin")


def path_of(folder: Path, requirement: str) -> Path:
    """The wheel of a requirement, for tests that leave pip out."""
    name, _, version = requirement.partition("==")
    return folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
