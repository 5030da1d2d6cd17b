"""A whole session with the real server, daemon and a model: no connection to a network, no code on the disk."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import UnixAddress
from tests.support import tiny
from tests.support.editor import Editor

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="other systems keep user data elsewhere"),
    tiny.needs_kernels,
]

MARK = "a_name_that_stands_nowhere_else"

AUDIT = """
import os, socket, sys
log = os.open(os.environ["AUDIT_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def note(event, arguments):
    if event.startswith(("socket.", "urllib.", "http.", "pickle.", "marshal.load")):
        family = str(getattr(arguments[0], "family", "")) if arguments else ""
        os.write(log, f"{event} {family}\\n".encode())
sys.addaudithook(note)
os.write(log, f"process {os.getpid()}\\n".encode())
"""
"""Notes what a process does, from its very beginning on."""

PICKLED = b"cos\nsystem\n(S'touch %s'\ntR."
"""A pickle that makes a file when it is read."""


@dataclass(frozen=True)
class Session:
    home: Path
    noted: list[str]
    """What all processes did, by the names of Python's audit events."""
    ran: Path
    """A file that is there only if a pickle or a module of the model's folder was run."""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with TemporaryDirectory(prefix="mercury-") as made:
        folder = Path(made).resolve()
        home, work, ran = folder / "home", folder / "work", folder / "ran"
        for each in (home, work, folder / "audit"):
            each.mkdir(mode=0o700)
        (folder / "audit" / "sitecustomize.py").write_text(AUDIT)
        weights = tiny.folder(folder / "model", rank=0, **tiny.WIDE)
        for name in ("pytorch_model.bin", "training_args.bin", "model.pt", "model.pkl"):
            (weights / name).write_bytes(PICKLED % str(ran).encode())
        for name in ("modeling.py", "tokenizer.py", "__init__.py"):
            (weights / name).write_text(f"open({str(ran)!r}, 'w')\n")
        (work / "stock.py").write_text(f"def {MARK}_of_stock(basket):\n    return 1\n")
        text = f"from stock import {MARK}_of_stock\n\n\ndef f():\n    {MARK} = {MARK}_of_stock("
        (work / "main.py").write_text(text)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "MERCURY_"))}
        environment |= {"HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(folder / "audit")}
        environment |= {"AUDIT_LOG": str(folder / "noted"), "OMP_NUM_THREADS": "1"}
        address = UnixAddress(folder / "socket")
        command = [sys.executable, "-m", "mercury_lsp", *address.arguments]
        with Editor(command=command, env=environment, cwd=work) as editor:
            folders = [{"uri": work.as_uri(), "name": "work"}]
            editor.initialize(None, {"model": str(weights)}, workspaceFolders=folders)
            uri = (work / "main.py").as_uri()
            editor.open(uri, text)
            for column in range(4, 40, 6):
                editor.items(uri, 4, column, kind=1)
            editor.request("workspace/executeCommand", {"command": "mercury.status"})
        control.stop(address)
        yield Session(home, (folder / "noted").read_text().splitlines(), ran)


def test_no_process_connects_to_a_network_or_looks_up_a_name(session: Session):
    assert sum(line.startswith("process ") for line in session.noted) >= 2  # the editor's command and the daemon
    sockets = [line for line in session.noted if line.startswith(("socket.connect", "socket.bind", "socket.send"))]
    assert sockets and all(line.endswith(("AddressFamily.AF_UNIX", " 1")) for line in sockets)
    looked_up = ("socket.getaddrinfo", "socket.gethostby", "urllib.", "http.")
    assert not [line for line in session.noted if line.startswith(looked_up)]


def test_no_file_of_the_users_holds_code_afterwards(session: Session):
    files = [path for path in session.home.rglob("*") if path.is_file()]
    assert [path.name for path in files if path.suffix == ".log"]
    assert not [path for path in files if MARK.encode() in path.read_bytes()]


def test_nothing_in_a_models_folder_is_run_and_no_pickle_is_read(session: Session):
    assert not session.ran.exists()
    assert not [line for line in session.noted if line.startswith("pickle.")]
