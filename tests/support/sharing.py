"""A daemon's address in a folder of the test's own, and what runs there."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import Address, TcpAddress, UnixAddress
from tests.support.editor import PATIENCE, Editor

HERE = Path(__file__).parent


def eventually(condition: Callable[[], Any]) -> Any:
    """What the condition gives once it holds."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)
    return found


class Place:
    """One address, its editors and its daemons; nothing is left running when the test is over."""

    def __init__(self, folder: Path, address: Address):
        self.address = address
        self.loads = folder / "loads"
        self.cwd: Path | None = None
        self.env = os.environ | {"XDG_STATE_HOME": str(folder / "state"), "XDG_RUNTIME_DIR": str(folder / "run")}
        self.env.pop("MERCURY_IN_PROCESS", None)
        self._daemons: list[subprocess.Popen[bytes]] = []

    @classmethod
    def unix(cls, folder: Path) -> "Place":
        return cls(folder, UnixAddress(folder / "daemon.sock"))

    @classmethod
    def tcp(cls, folder: Path) -> "Place":
        return cls(folder, TcpAddress(folder / "token"))

    def editor(self, answers: dict[str, Callable[[Any], Any]] | None = None, *options: str) -> Editor:
        """An editor whose server is the plain command."""
        return Editor(answers, self.command(*options), env=self.env, cwd=self.cwd)

    def command(self, *options: str) -> list[str]:
        """What an editor starts."""
        return [sys.executable, str(HERE / "fake_relay.py"), str(self.loads), *options, *self.address.arguments]

    def daemon(self, *options: str) -> "subprocess.Popen[bytes]":
        """A daemon that was started by hand; it listens, or has ended already if it is to end soon."""
        command = [sys.executable, str(HERE / "fake_daemon.py"), str(self.loads), *options, *self.address.arguments]
        daemon = subprocess.Popen(command, env=self.env, stderr=subprocess.DEVNULL)
        self._daemons.append(daemon)
        eventually(lambda: self.status() is not None or daemon.poll() is not None)
        return daemon

    def status(self) -> dict[str, Any] | None:
        """How the daemon is; None if there is none."""
        return control.ask(self.address, "status")

    def pid(self) -> int:
        """The daemon's."""
        return eventually(self.status)["pid"]

    def loaded(self) -> list[str]:
        """Process and model of every load."""
        return self.loads.read_text().splitlines() if self.loads.exists() else []

    def rejoins(self) -> int:
        """How often editors' relays have looked for another daemon."""
        noted = Path(f"{self.loads}.rejoins")
        return len(noted.read_text().splitlines()) if noted.exists() else 0

    def close(self) -> None:
        """End what runs, also what does not answer."""
        control.stop(self.address)
        for each in self._daemons:
            each.kill()
            each.wait()
