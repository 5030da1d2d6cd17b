"""The hub: one process that relays for all editors of an address; an interpreter per editor would take more memory.

Each editor has two threads, as in a relay of its own. The hub ends soon after the last editor.
"""

import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import closing, suppress

from mercury_lsp import interpreter_lock
from mercury_lsp.daemon import handshake, lock
from mercury_lsp.daemon.address import Address, build, hub_address, peer_user
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.join import join, log_name, open_log
from mercury_lsp.relay.journal import Journal
from mercury_lsp.relay.link import Link
from mercury_lsp.relay.origin import EditorOrigin
from mercury_lsp.relay.relay import Relay
from mercury_lsp.relay.resuming import resumed
from mercury_lsp.relay.stdio import HandedStdio

LINGER_SECONDS = 2.0
"""Time without an editor after which the hub ends; many editors restart their server at once."""

EDITOR_THREAD = "mercury-editor"
"""Name of the threads that keep the hub running."""

MAX_ORIGIN_BYTES = 2**24
"""For a caller's folder and environment; Linux allows an environment of 6 MB."""


def run(address: Address, serve: Sequence[str], listening: socket.socket, taken: int) -> None:
    """Be the hub, in a process that was forked for it and holds its lock."""
    try:
        _release_inherited(address, {listening.fileno(), taken})
        lock.sign(taken)
        interpreter_lock.share()
        Hub(address, serve).run(listening)
        hub_address(address).path.unlink(missing_ok=True)  # before our exit releases the lock
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()


def _release_inherited(address: Address, kept: set[int]) -> None:
    """Release what we inherited from the first editor: it may wait for a pipe to close, or unmount our folder."""
    os.chdir(address.path.parent)
    with open(os.devnull, "r+b", buffering=0) as nothing, open_log(address) as log:
        for ours, descriptor in ((nothing, 0), (nothing, 1), (log, 2)):
            os.dup2(ours.fileno(), descriptor, inheritable=False)
    for each in map(int, os.listdir("/dev/fd")):
        if each > 2 and each not in kept:
            with suppress(OSError):
                os.close(each)


class Hub:
    """Serves editors until there has been none for a while."""

    def __init__(self, address: Address, serve: Sequence[str]):
        self._address = address
        self._serve = serve
        self._hint = f"mercury-lsp doctor, or the log: {log_name(address)}"

    def run(self, listening: socket.socket) -> None:
        """Serve. A caller that connects at the very end is hung up on before any message, and starts another hub."""
        listening.settimeout(LINGER_SECONDS)
        while True:
            try:
                self._start_thread(listening.accept()[0])
            except TimeoutError:
                if not any(each.name == EDITOR_THREAD for each in threading.enumerate()):
                    return
            except (OSError, RuntimeError):  # out of descriptors or threads, for now
                time.sleep(LINGER_SECONDS)

    def _start_thread(self, waiter: socket.socket) -> None:
        threading.Thread(target=self._attend, args=(waiter,), name=EDITOR_THREAD, daemon=True).start()

    def _attend(self, waiter: socket.socket) -> None:
        """Serve one editor until it leaves."""
        with waiter, suppress(OSError, ValueError):  # it is gone, or not a caller of ours
            if peer_user(waiter) not in (None, os.getuid()):
                return
            origin = _receive_origin(waiter)
            if (link := self._joined(waiter, origin)) is None:
                return
            with closing(link):
                self._relay(waiter, link, origin)

    def _joined(self, waiter: socket.socket, origin: EditorOrigin) -> Link | None:
        """A link to a daemon; None if there is none, which is reported to the editor's process."""
        try:
            link = self._link(origin)
        except DaemonError as error:
            waiter.sendall(handshake.encode({"error": str(error)}))
            return None
        waiter.sendall(handshake.encode({}))
        return link

    def _relay(self, waiter: socket.socket, link: Link, origin: EditorOrigin) -> None:
        _, descriptors, _, _ = socket.recv_fds(waiter, 1, 5)
        waiter.settimeout(None)
        journal = Journal((descriptors[3], descriptors[4])) if len(descriptors) == 5 else None
        with HandedStdio(descriptors[:3], waiter, journal) as stdio:
            code = Relay(link, lambda: self._link(origin), stdio, self._hint, resumed(journal)).run()
        waiter.sendall(b"%d\n" % code)

    def _link(self, origin: EditorOrigin) -> Link:
        return Link(join(self._address, self._serve, origin))


def _receive_origin(waiter: socket.socket) -> EditorOrigin:
    """The caller's origin. Raises OSError and ValueError."""
    waiter.settimeout(handshake.TIMEOUT_SECONDS)
    waiter.sendall(handshake.encode({"mercury": handshake.PROTOCOL_VERSION, "build": build()}))
    return EditorOrigin.parse(handshake.read_line(waiter, MAX_ORIGIN_BYTES))
