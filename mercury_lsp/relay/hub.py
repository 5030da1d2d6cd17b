"""One process that relays for all editors of an address: a bare interpreter for each would take more than its session.

Two threads for each editor, as in a relay of its own. It ends soon after the last.
"""

import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import closing, suppress

from mercury_lsp.daemon import handshake, lock
from mercury_lsp.daemon.address import Address, build, hub_address, peer_user
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.join import join, log_name, open_log
from mercury_lsp.relay.link import Link
from mercury_lsp.relay.origin import EditorOrigin
from mercury_lsp.relay.relay import Relay
from mercury_lsp.relay.stdio import HandedStdio

LINGER = 2.0
"""Seconds without an editor after which it ends; many start their server anew at once."""

EDITOR = "mercury-editor"
"""Name of the threads that it does not end before."""

MAX_ORIGIN = 2**24
"""Bytes of a caller's folder and environment; Linux lets an environment be of 6 MB."""


def run(address: Address, serve: Sequence[str], listening: socket.socket, taken: int) -> None:
    """Be the hub, in a process that was forked for it and has its lock."""
    try:
        _let_go(address, {listening.fileno(), taken})
        lock.sign(taken)
        Hub(address, serve).run(listening)
        hub_address(address).path.unlink(missing_ok=True)  # before the lock is given back by our end
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()


def _let_go(address: Address, kept: set[int]) -> None:
    """Have nothing of the editor that happened to be the first: it may wait for the end of a pipe, or be unmounted."""
    os.chdir(address.path.parent)
    with open(os.devnull, "r+b", buffering=0) as nothing, open_log(address) as log:
        for ours, descriptor in ((nothing, 0), (nothing, 1), (log, 2)):
            os.dup2(ours.fileno(), descriptor, inheritable=False)
    for each in map(int, os.listdir("/dev/fd")):
        if each > 2 and each not in kept:
            with suppress(OSError):
                os.close(each)


class Hub:
    """Serves whoever comes, until nobody has for a while."""

    def __init__(self, address: Address, serve: Sequence[str]):
        self._address = address
        self._serve = serve
        self._hint = f"mercury-lsp doctor, or the log: {log_name(address)}"

    def run(self, listening: socket.socket) -> None:
        """Serve; whoever comes at the very end is hung up on before anything was said, and starts another hub."""
        listening.settimeout(LINGER)
        while True:
            try:
                self._let_in(listening.accept()[0])
            except TimeoutError:
                if not any(each.name == EDITOR for each in threading.enumerate()):
                    return
            except (OSError, RuntimeError):  # no more descriptors or threads are to be had just now
                time.sleep(LINGER)

    def _let_in(self, waiter: socket.socket) -> None:
        threading.Thread(target=self._attend, args=(waiter,), name=EDITOR, daemon=True).start()

    def _attend(self, waiter: socket.socket) -> None:
        """One editor, from its coming to its end."""
        with waiter, suppress(OSError, ValueError):  # it is gone, or no caller of ours
            if peer_user(waiter) not in (None, os.getuid()):
                return
            origin = _asked(waiter)
            if (link := self._joined(waiter, origin)) is None:
                return
            with closing(link):
                self._relay(waiter, link, origin)

    def _joined(self, waiter: socket.socket, origin: EditorOrigin) -> Link | None:
        """A daemon for an editor; None if it was told that there is none."""
        try:
            link = self._link(origin)
        except DaemonError as error:
            waiter.sendall(handshake.encode({"error": str(error)}))
            return None
        waiter.sendall(handshake.encode({}))
        return link

    def _relay(self, waiter: socket.socket, link: Link, origin: EditorOrigin) -> None:
        _, descriptors, _, _ = socket.recv_fds(waiter, 1, 3)
        waiter.settimeout(None)
        with HandedStdio(descriptors, waiter) as stdio:
            code = Relay(link, lambda: self._link(origin), stdio, self._hint).run()
        waiter.sendall(b"%d\n" % code)

    def _link(self, origin: EditorOrigin) -> Link:
        return Link(join(self._address, self._serve, origin))


def _asked(waiter: socket.socket) -> EditorOrigin:
    """Where a caller comes from. Raises OSError and ValueError."""
    waiter.settimeout(handshake.SECONDS)
    waiter.sendall(handshake.encode({"mercury": handshake.PROTOCOL, "build": build()}))
    return EditorOrigin.parse(handshake.read_line(waiter, MAX_ORIGIN))
