"""The relay's end of a connection, with a daemon that is slow, hangs or says what is not for the client."""

import socket
from collections.abc import Iterator
from threading import Thread
from time import sleep

import pytest

from mercury_lsp.daemon.control import PING, PONG
from mercury_lsp.relay import link
from mercury_lsp.relay.link import Link
from mercury_lsp.transport import framing
from tests.support.editor import PATIENCE
from tests.support.patient_link import await_pongs

ASKED = {"jsonrpc": "2.0", "id": 1, "method": "shutdown"}
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": None}


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Link, socket.socket]]:
    """The link, which looks often, and the daemon's socket."""
    monkeypatch.setattr(link, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(link, "SEND_SECONDS", 1.0)
    ours, daemons = socket.socketpair()
    with PiecewiseSocket(fileno=ours.detach()) as connection, daemons:
        yield Link(connection), daemons


class PiecewiseSocket(socket.socket):
    """Sends piece by piece only, for the timeout of `sendall` is that of the whole message."""

    def sendall(self, *_: object) -> None:
        raise AssertionError("a large message may take longer than a piece of it")


def say(daemon: socket.socket, message: object) -> None:
    daemon.sendall(framing.framed(message))


def test_a_daemon_that_owes_nothing_may_be_silent_for_as_long_as_it_likes(ends: tuple[Link, socket.socket]):
    ours, daemon = ends
    Thread(target=lambda: (sleep(0.02 * 3 * link.POLLS_BEFORE_LOSS), say(daemon, ANSWER))).start()
    assert next(ours.messages) == ANSWER
    daemon.setblocking(False)
    with pytest.raises(BlockingIOError):
        daemon.recv(1)  # nor was it pinged


def test_one_that_owes_an_answer_is_pinged_once_and_given_up_without_a_sign_of_life(ends: tuple[Link, socket.socket]):
    ours, daemon = ends
    ours.send(ASKED)
    assert list(ours.messages) == []
    daemon.settimeout(PATIENCE)
    sent = list(framing.messages(lambda: daemon.recv(4096)))
    assert [message["method"] for message in sent] == ["shutdown", PING]
    assert ours.was_silent


def test_signs_of_life_and_other_messages_are_no_answer_but_keep_the_link(
    ends: tuple[Link, socket.socket], monkeypatch: pytest.MonkeyPatch
):
    await_pongs(monkeypatch.setattr)
    ours, daemon = ends
    other = {"jsonrpc": "2.0", "method": "window/logMessage", "params": {}}

    def live() -> None:
        say(daemon, other)
        pings = 0
        for message in framing.messages(lambda: daemon.recv(4096)):
            if message["method"] == PING:
                pings += 1
                say(daemon, {"jsonrpc": "2.0", "method": PONG})
            if pings == 5:
                say(daemon, ANSWER)
                daemon.close()
                return

    ours.send(ASKED)
    Thread(target=live).start()
    assert list(ours.messages) == [other, ANSWER]
