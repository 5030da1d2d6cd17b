"""Another user of the machine does not reach the daemon, and cannot have our files overwritten."""

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mercury_lsp import private_files
from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import UnixAddress, runtime_folder
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.join import connect
from tests.support.editor import PATIENCE, Editor, script
from tests.support.other_user import OTHER, as_other_user, root_only
from tests.support.sharing import Place

pytestmark = root_only


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder like /tmp."""
    tmp_path.chmod(0o711)
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    yield folder


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious"
    file.write_text("precious")
    return file


def test_another_user_does_not_reach_the_daemon(shared: Path):
    place = Place.unix(shared)
    with place.editor() as editor:
        editor.initialize()
        assert isinstance(as_other_user(place.address.connect), PermissionError)
    place.close()


@pytest.mark.parametrize("purpose", ["lsp", "status", "stop"])
def test_another_user_who_can_open_the_socket_is_hung_up_on(
    shared: Path, purpose: control.Purpose, monkeypatch: pytest.MonkeyPatch
):
    place = Place.unix(shared)
    with place.editor() as editor:
        editor.initialize()
        monkeypatch.setattr(control, "is_same_user", lambda _: True)  # he runs a program of his own
        place.address.path.chmod(0o777)
        assert isinstance(as_other_user(lambda: control.call(place.address, purpose)), OSError)
        monkeypatch.undo()
        uri = editor.opened(script() + "x = ")
        assert len(editor.items(uri, 1, 4)) == 1
    place.close()


def served_alone(at: UnixAddress, env: dict[str, str]) -> str:
    """What an editor's server says that uses nothing at this address."""
    command = [sys.executable, "-m", "mercury_lsp", *at.arguments]
    with Editor(command=command, env=env, stderr=subprocess.PIPE) as editor:
        editor.request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    said = editor.process.stderr.read().decode()
    editor.process.stderr.close()
    return said


def test_a_socket_of_another_users_is_not_talked_to(shared: Path):
    at = UnixAddress(shared / "socket")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(at.path))
    listening.listen()
    os.chown(at.path, OTHER, OTHER)
    at.path.chmod(0o777)
    # The kernel reports who listens; here that is us, so the check is made to see the other user.
    with listening, pytest.MonkeyPatch.context() as patch:
        patch.setattr(control, "is_same_user", lambda _: False)
        with pytest.raises(DaemonError, match="another user"):
            connect(at)


@pytest.mark.parametrize("made", ["file", "symbolic link", "socket"])
def test_what_another_user_put_in_the_locks_place_is_refused_and_nothing_is_overwritten(
    shared: Path, precious: Path, made: str
):
    at = UnixAddress(shared / "socket")

    def put(path: Path) -> None:
        if made == "file":
            path.touch(0o666)
        elif made == "symbolic link":
            path.symlink_to(precious)
        else:
            socket.socket(socket.AF_UNIX).bind(str(path))

    assert as_other_user(lambda: put(control.lock_path(at))) is None
    with pytest.raises(OSError):
        private_files.take_lock(control.lock_path(at))
    said = served_alone(at, Place.unix(shared).env)
    assert "serving in this process" in said and "Traceback" not in said
    assert precious.read_text() == "precious"
    assert control.lock_path(at).lstat().st_uid == OTHER


def test_a_folder_of_another_users_is_refused(shared: Path):
    assert as_other_user(lambda: (shared / "his").mkdir()) is None
    (shared / "his").chmod(0o777)
    with pytest.raises(PermissionError, match="another user"):
        private_files.take_lock(shared / "his" / "lock")
    command = [sys.executable, "-m", "mercury_lsp", "serve", "--socket", str(shared / "his" / "socket")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert ended.returncode == 2 and "another user" in ended.stderr and not list((shared / "his").iterdir())


@pytest.mark.parametrize("is_link", [False, True])
def test_our_folder_for_sockets_that_another_user_made_first_is_refused(
    shared: Path, tmp_path: Path, is_link: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(shared))
    ours = shared / f"mercury-lsp-{os.getuid()}"
    (tmp_path / "mine").mkdir()
    assert as_other_user(lambda: ours.symlink_to(tmp_path / "mine") if is_link else ours.mkdir(0o777)) is None
    with pytest.raises(DaemonError, match="not a private folder"):
        runtime_folder()


def test_log_and_statistics_are_for_our_eyes_only(shared: Path):
    os.umask(before := os.umask(0))
    place = Place.unix(shared)
    try:
        os.umask(0)
        with place.editor() as editor:
            editor.initialize()
            uri = editor.opened(script() + "x = ")
            assert len(editor.items(uri, 1, 4)) == 1
    finally:
        os.umask(before)
        place.close()
    written = [each for each in (shared / "state").rglob("*") if each.is_file()]
    assert written and all(not stat.S_IMODE(each.stat().st_mode) & 0o077 for each in written)
