"""Checks of files, and a disk that is full."""

import errno
import hashlib
from pathlib import Path

import pytest
from mercury_engine.downloads import files
from mercury_engine.errors import DownloadCorrupt, StorageError

SHA256 = hashlib.sha256(b"weights").hexdigest()


@pytest.mark.parametrize(("content", "said"), [(b"weigh", "5 bytes, expected 7"), (b"wEights", "expected " + SHA256)])
def test_a_truncated_or_altered_file_is_deleted_and_reported(tmp_path: Path, content: bytes, said: str):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DownloadCorrupt, match=f"{said}.*run the same command again"):
        files.check(tmp_path / "file", SHA256, 7)
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "is full; free some space"),
        (errno.EROFS, "cannot be written"),
        (errno.EIO, "failed .*the system's words"),
    ],
)
def test_a_disk_that_takes_nothing_is_a_clear_error(tmp_path: Path, number: int, said: str):
    with pytest.raises(StorageError, match=said), files.disk_errors(tmp_path):
        raise OSError(number, "the system's words")


def test_a_folder_that_cannot_be_made_says_what_to_set(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be made.*set XDG_DATA_HOME"), files.disk_errors(tmp_path / "file/a"):
        (tmp_path / "file" / "a").mkdir(parents=True)


def test_too_little_space_is_found_before_anything_is_written(tmp_path: Path):
    files.require_space(tmp_path, 1)
    with pytest.raises(StorageError, match="MB are needed; free some space"):
        files.require_space(tmp_path, 2**62)
