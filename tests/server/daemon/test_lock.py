"""The lock's file: links and other users' folders are refused, and nothing of the user's is overwritten."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mercury_lsp import private_files
from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import UnixAddress
from mercury_lsp.errors import DaemonError
from tests.support.editor import PATIENCE, Editor
from tests.support.sharing import Place

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such links and modes")


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file that must stay as it is."""
    file = tmp_path / "precious"
    file.write_text("precious")
    return file


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_link_is_refused_and_its_target_stays_as_it_was(tmp_path: Path, precious: Path, link):
    link(precious, tmp_path / "lock")
    with pytest.raises(OSError):
        private_files.take_lock(tmp_path / "lock")
    assert precious.read_text() == "precious"


@pytest.mark.parametrize(
    ("mode", "owner", "group", "is_safe"),
    [
        (0o700, 0, 0, True),
        (0o755, 0, 0, True),
        (0o775, 0, 0, True),  # the user's own group, as with umask 002
        (0o1777, None, None, True),  # /tmp
        (0o777, 0, 0, False),
        (0o775, 0, 1, False),
        (0o700, 1, 0, False),
        (0o1777, 1, 0, False),
    ],
)
def test_a_folder_where_others_can_replace_files_is_refused(
    monkeypatch: pytest.MonkeyPatch, mode: int, owner: int | None, group: int | None, is_safe: bool
):
    """`owner` and `group` count from ours; None is root."""
    user, groups = (0 if owner is None else os.getuid() + owner), (0 if group is None else os.getgid() + group)
    found = SimpleNamespace(st_mode=stat.S_IFDIR | mode, st_uid=user, st_gid=groups)
    monkeypatch.setattr(Path, "stat", lambda _: found)
    if is_safe:
        private_files.check_folder(Path("/folder"))
    else:
        with pytest.raises(PermissionError, match="/folder"):
            private_files.check_folder(Path("/folder"))


def test_a_daemon_says_why_it_does_not_use_a_folder_that_others_can_write(tmp_path: Path):
    tmp_path.chmod(0o777)
    command = [sys.executable, "-m", "mercury_lsp", "serve", "--socket", str(tmp_path / "socket")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert ended.returncode == 2 and "other users can replace files" in ended.stderr and "--socket" in ended.stderr
    assert "Traceback" not in ended.stderr and not list(tmp_path.iterdir())


def test_an_editor_is_served_in_its_own_process_where_the_lock_is_a_link(unix: Place, precious: Path):
    control.lock_path(unix.address).symlink_to(precious)
    command = [sys.executable, "-m", "mercury_lsp", *unix.address.arguments]
    with Editor(command=command, env=unix.env, stderr=subprocess.DEVNULL) as editor:
        editor.request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    assert precious.read_text() == "precious"
    control.lock_path(unix.address).unlink()


@pytest.mark.parametrize("is_link", [False, True])
def test_a_file_of_the_users_is_not_replaced_by_a_socket(tmp_path: Path, precious: Path, is_link: bool):
    path = precious
    if is_link:
        path = tmp_path / "link"
        path.symlink_to(precious)
    with pytest.raises(DaemonError, match="not a socket"):
        UnixAddress(path).listen()
    assert precious.read_text() == "precious"
