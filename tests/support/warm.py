"""Forks processes in which the server is imported already: that takes 0.7 s of processor time, a fork 0.05.

Hundreds of tests start a server of their own. An `Offer` listens from the beginning of a test run, and starts this
module as a program for the first process that asks; `warm_start.py` asks.
"""

import gc
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]

POSSIBLE = sys.platform == "linux"
"""Elsewhere there are no descriptors of processes, or no forks."""


class Offer:
    """Listens in a folder, and starts the program once somebody connects; it ends with this process, or before."""

    def __init__(self, folder: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._program: subprocess.Popen[bytes] | None = None
        os.environ["MERCURY_WARM"] = f"{folder}/warm"
        self._listener.bind(os.environ["MERCURY_WARM"])
        self._listener.listen(64)
        threading.Thread(target=self._start_when_asked, daemon=True).start()

    def _start_when_asked(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.select()
        self._program = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm", str(self._listener.fileno())],
            stdin=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            pass_fds=[self._listener.fileno()],
            start_new_session=True,
        )

    def end(self) -> None:
        """End the program and what it forked."""
        if self._program is not None:
            self._program.stdin.close()
            self._program.wait()


class Forks:
    """The processes that run, each with the link to whoever asked for it."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._begin)
        self._selector.register(0, selectors.EVENT_READ, self._end_all)
        self._running: set[int] = set()

    def serve(self) -> NoReturn:
        """Fork whenever somebody asks, until the tests are over."""
        while True:
            for key, _ in self._selector.select():
                key.data()

    def _begin(self) -> None:
        link, _ = self._listener.accept()
        length, files, _, _ = socket.recv_fds(link, 4, 3)
        request = json.loads(_received(link, int.from_bytes(length, "big")))
        if (pid := os.fork()) == 0:
            _become(request, files)
        for file in files:
            os.close(file)
        self._running.add(pid)
        ended = os.pidfd_open(pid)
        self._selector.register(ended, selectors.EVENT_READ, lambda: self._end(pid, ended, link))
        self._selector.register(link, selectors.EVENT_READ, lambda: self._signal(pid, link))

    def _signal(self, pid: int, link: socket.socket) -> None:
        """Pass a signal on; whoever asked may also have been killed."""
        try:
            number = link.recv(1)
        except OSError:
            number = b""
        if not number:
            self._selector.unregister(link)
        os.kill(pid, number[0] if number else signal.SIGKILL)

    def _end(self, pid: int, ended: int, link: socket.socket) -> None:
        _, status = os.waitpid(pid, 0)
        self._running.remove(pid)
        self._selector.unregister(ended)
        os.close(ended)
        if link in self._selector.get_map():
            self._selector.unregister(link)
            link.send(status.to_bytes(4, "big"))
        link.close()

    def _end_all(self) -> NoReturn:
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
        os._exit(0)


def _received(link: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length and (more := link.recv(length - len(data))):
        data += more
    return bytes(data)


def _become(request: dict[str, Any], files: list[int]) -> NoReturn:
    """Run the script in this process as if Python had just been started with it."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, 4096)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["argv"]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    code: Any = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def main() -> NoReturn:
    """Import what a server needs, then fork."""
    import tests.support.fake_server
    from mercury_lsp.server.structuring import converter

    assert tests.support.fake_server
    converter()
    gc.collect()
    gc.freeze()
    Forks(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
