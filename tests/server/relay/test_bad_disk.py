"""A full or read-only disk costs what cannot be written, and neither a key nor a suggestion."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import UnixAddress
from tests.support.disks import CannotMount, Fault, mounted, spoil
from tests.support.editor import PATIENCE, Editor, script, span
from tests.support.sharing import Place, eventually

URI = "file:///sample.py"

PLAIN = [sys.executable, "-m", "mercury_lsp"]

faults = pytest.mark.parametrize("fault", ["full", "read-only"])


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk that works so far."""
    with ExitStack() as stack:
        try:
            yield stack.enter_context(mounted(tmp_path / "disk"))
        except CannotMount:
            pytest.skip("needs root on Linux")


def types_well(editor: Editor, keys: int = 30) -> None:
    """What is typed arrives, and every key gets a suggestion."""
    text = script() + "x = "
    editor.open(URI, text)
    for number in range(keys):
        editor.change(URI, number + 2, {"range": span((1, 4 + number), (1, 4 + number)), "text": "a"})
        text += "a"
        assert len(editor.items(URI, 1, 5 + number)) == 1
    assert editor.text(URI) == text


@faults
def test_without_room_for_log_and_statistics_editors_are_served(unix: Place, disk: Path, fault: Fault):
    unix.env["XDG_STATE_HOME"] = str(disk)
    spoil(disk, fault)
    for _ in range(2):
        with unix.editor() as editor:
            editor.initialize()
            types_well(editor)
            assert editor.received("window/showMessage") == []
        assert editor.process.returncode == 0


def test_a_disk_that_fills_up_while_its_statistics_are_open_costs_nothing_else(unix: Place, disk: Path):
    unix.env["XDG_STATE_HOME"] = str(disk)
    with unix.editor() as editor:
        editor.initialize()
        types_well(editor)
        eventually(lambda: list(disk.rglob("*.jsonl")))
        spoil(disk, "full")
        types_well(editor)
        assert editor.received("window/showMessage") == []
    assert editor.process.returncode == 0
    stats = subprocess.run([*PLAIN, "stats"], env=unix.env, capture_output=True, text=True, timeout=PATIENCE)
    assert "Traceback" not in stats.stderr and stats.returncode in (0, 2)


@faults
def test_where_neither_lock_nor_socket_can_be_made_an_editor_is_served_in_its_own_process(
    unix: Place, disk: Path, fault: Fault
):
    spoil(disk, fault)
    place = UnixAddress(disk / "daemon.sock")
    with Editor(command=[*PLAIN, *place.arguments], env=unix.env, stderr=subprocess.PIPE) as editor:
        editor.request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    said = editor.process.stderr.read().decode().splitlines()
    editor.process.stderr.close()
    if fault == "read-only":  # on a full disk there may be room for a name
        assert len(said) == 1 and "serving in this process" in said[0]
    assert not any("Traceback" in line for line in said)
    control.stop(place)


@faults
@pytest.mark.parametrize("command", [["models", "use", "bundled"], ["models", "list"], ["stats"], ["doctor"]])
def test_commands_say_in_a_line_that_nothing_can_be_written(unix: Place, disk: Path, fault: Fault, command: list[str]):
    spoil(disk, fault)
    unix.env |= {"XDG_DATA_HOME": str(disk), "XDG_STATE_HOME": str(disk), "XDG_RUNTIME_DIR": str(disk)}
    ended = subprocess.run([*PLAIN, *command], env=unix.env, capture_output=True, text=True, timeout=PATIENCE)
    assert "Traceback" not in ended.stderr + ended.stdout
    if command == ["doctor"]:
        assert "cannot be written" in ended.stdout
    if command[:2] == ["models", "use"]:
        assert ended.returncode == 2 and len(ended.stderr.splitlines()) == 1 and str(disk) in ended.stderr
