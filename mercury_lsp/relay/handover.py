"""Hand an editor over from the process that it started to the hub, which relays for all editors of an address.

    hub     {"mercury": 1, "build": ...}
    caller  {"folder": ..., "environment": ...}
    hub     {} once it has a daemon for this editor, or {"error": ...}
    caller  standard input, output and error, and the journal's two files, as descriptors
    hub     the exit code, when the session is over

Until it sends the descriptors, the caller can still relay by itself. Then it becomes a shell that waits for the exit
code. If the hub is killed, the shell runs the command again, which hands the journal to another hub.
"""

import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from mercury_lsp.daemon import control, handshake, lock
from mercury_lsp.daemon.address import Address, UnixAddress, build, hub_address
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.journal import Journal
from mercury_lsp.relay.origin import EditorOrigin

POLL_SECONDS = 0.02
"""Between two attempts to reach a hub that another process is starting."""

MAX_HUB_STARTS = 2
"""Hubs that may end before they answer, before we give up."""

HUB_ANSWER_SECONDS = 60.0
"""For the hub to join a daemon; `join` gives up sooner."""

SHELL = "/bin/sh"

WAIT_SCRIPT = 'read -r code <&7 && exit "$code"; exec 7<&-; cd "$1" 2> /dev/null; shift; exec "$@"'
"""The shell's script; it takes 0.2 MB of memory, this process 13. If the hub dies, the shell reads end of file."""

HUB_DESCRIPTOR, JOURNAL_DESCRIPTORS = 7, (8, 9)
"""Numbers of the descriptors in the shell, which may know those of one digit only."""

JOURNAL_VARIABLE = "MERCURY_JOURNAL"
"""Environment variable of a command that was run again after its hub was killed."""

RESTART_DELAYS_SECONDS = (0.0, 0.1, 0.5, 2.0, 5.0)
"""Wait before the command goes on with another hub, by the number of recent restarts; after more of them it ends."""


def journal_left() -> Journal | None:
    """The journal of a hub that was killed, in a command that was run again for it; None in any other."""
    if os.environ.pop(JOURNAL_VARIABLE, None) is None:
        return None
    journal = Journal(JOURNAL_DESCRIPTORS)
    restarts = journal.count_restart()
    if restarts > len(RESTART_DELAYS_SECONDS):
        sys.stderr.write("mercury-lsp: the process that relays for all editors keeps ending; see mercury-lsp doctor\n")
        sys.stderr.flush()
        os._exit(1)
    time.sleep(RESTART_DELAYS_SECONDS[restarts - 1])
    return journal


def hand_over(address: Address, serve: Sequence[str], journal: Journal | None = None) -> int | None:
    """Have the hub serve the editor; the exit code. The hub is started if none runs.

    `journal`: that of a hub that was killed.

    None if there can be no hub; then nothing was read or written. Raises DaemonError if the hub finds no daemon.
    """
    if sys.platform == "win32":
        return None
    try:
        hub = _introduced(address, serve)
    except OSError:
        return None
    with hub:
        journal = journal or Journal.make()
        kept = journal.descriptors if journal is not None else ()
        try:
            socket.send_fds(hub, [b"\n"], [0, 1, 2, *kept])
        except OSError:
            return None
        return _wait(hub, journal)


def _wait(hub: socket.socket, journal: Journal | None) -> int:
    """The exit code that the hub sends; if there is a shell, it replaces this process to wait."""
    folder, command, environment = handshake.here(), _command_again(journal), dict(os.environ)
    if journal is not None:
        environment[JOURNAL_VARIABLE] = "kept"
        _number((hub.fileno(), *journal.descriptors), (HUB_DESCRIPTOR, *JOURNAL_DESCRIPTORS))
    else:
        _number((hub.fileno(),), (HUB_DESCRIPTOR,))
        _let_go()
    with suppress(OSError):
        os.chdir(os.sep)  # shells complain if their folder is removed
        os.execve(SHELL, ["sh", "-c", WAIT_SCRIPT, "mercury-lsp", folder, *command], environment)
    if code := os.read(HUB_DESCRIPTOR, 16):
        return int(code)
    os.close(HUB_DESCRIPTOR)
    with suppress(OSError):
        os.chdir(folder)
    if journal is not None:
        os.execve(command[0], command, environment)
    return 1


def _command_again(journal: Journal | None) -> list[str]:
    """What to run if the hub is killed: the command that the editor started, or one that fails without a journal."""
    return [sys.executable, *sys.orig_argv[1:]] if journal is not None else ["false"]


def _let_go() -> None:
    """Close the editor's pipes: if we kept them without needing them, the editor might wait for us."""
    with open(os.devnull, "r+b", buffering=0) as nothing:
        for descriptor in (0, 1, 2):
            os.dup2(nothing.fileno(), descriptor)


def _number(descriptors: Sequence[int], numbers: Sequence[int]) -> None:
    """Give open descriptors these numbers, in programs that we become too."""
    import fcntl

    for copy, number in zip([fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in descriptors], numbers, strict=True):
        os.dup2(copy, number)
        os.close(copy)


def _introduced(address: Address, serve: Sequence[str]) -> socket.socket:
    """A connection to a hub that has a daemon for us. Raises OSError and DaemonError."""
    hub = _reach(address, serve)
    try:
        hub.sendall(handshake.encode(EditorOrigin.here()._asdict()))
        hub.settimeout(HUB_ANSWER_SECONDS)
        said = _receive(hub)
        if "error" in said:
            raise DaemonError(said["error"])
        hub.settimeout(None)  # with a timeout it is non-blocking, and the shell would not wait
    except BaseException:
        hub.close()
        raise
    return hub


def _reach(address: Address, serve: Sequence[str]) -> socket.socket:
    """A connection to a hub that is alive and of our build. Raises OSError."""
    deadline, starts = time.monotonic() + handshake.TIMEOUT_SECONDS, 0
    while time.monotonic() < deadline and starts <= MAX_HUB_STARTS:
        # A hub that is about to end hangs up on new callers.
        with suppress(FileNotFoundError, ConnectionError, handshake.NoDaemon):
            return _call(hub_address(address))
        if _start(address, serve):
            starts += 1
        else:
            time.sleep(POLL_SECONDS)
    raise TimeoutError("no hub answers")


def _call(address: UnixAddress) -> socket.socket:
    hub, _ = address.connect()
    try:
        hub.settimeout(handshake.TIMEOUT_SECONDS)
        if (theirs := _receive(hub).get("build")) != build():
            raise OSError(f"the hub is of build {theirs}")
    except BaseException:
        hub.close()
        raise
    return hub


def _receive(hub: socket.socket) -> dict[str, Any]:
    """The hub's next message. Raises OSError."""
    try:
        return handshake.decode(handshake.read_line(hub))
    except ValueError as error:
        raise OSError(str(error)) from error


def _start(address: Address, serve: Sequence[str]) -> bool:
    """Start a hub; False if another process is running or starting one. It listens on return. Raises OSError."""
    hub = hub_address(address)
    if (taken := lock.take(control.lock_path(hub))) is None:
        return False
    try:
        listening, _ = hub.listen()
        with listening:
            if (child := os.fork()) == 0:
                _be_hub(address, serve, listening, taken)
            with suppress(ChildProcessError):  # if children are reaped automatically
                os.waitpid(child, 0)
    except DaemonError as error:
        raise OSError(str(error)) from error
    finally:
        os.close(taken)
    return True


def _be_hub(address: Address, serve: Sequence[str], listening: socket.socket, taken: int) -> NoReturn:
    """Run the hub as an orphan: some editors kill a server with all its children."""
    try:
        _leave_terminal()
        if os.fork() == 0:
            from mercury_lsp.relay import hub

            hub.run(address, serve, listening, taken)
    finally:
        os._exit(0)


def _leave_terminal() -> None:
    """Leave the terminal: its signals must not end the hub, or stop it for reading from a terminal it was handed.

    Not by setsid: Linux schedules sessions in turn, and a keystroke on busy processors took up to five times as long.
    """
    import fcntl
    import termios

    os.setpgid(0, 0)
    with suppress(OSError), open("/dev/tty", "r+b", buffering=0) as terminal:  # there may be none
        fcntl.ioctl(terminal, termios.TIOCNOTTY)
