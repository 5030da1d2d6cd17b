"""Passes messages between an editor and the daemon, and resumes the session with another daemon if it is lost.

One thread reads from the client; the other reads from the daemon and finds the next one.
"""

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Lock, Thread, Timer
from time import monotonic
from typing import Any, NoReturn

from mercury_lsp.daemon.address import Address
from mercury_lsp.daemon.control import GOODBYE
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.join import SERVE_COMMAND, join, log_name
from mercury_lsp.relay.link import Link
from mercury_lsp.relay.session import RESUMED_ID, Message, RelayedSession
from mercury_lsp.transport import framing

REJOIN_DELAYS_SECONDS = (0.0, 0.1, 0.5, 2.0, 5.0, 15.0, 30.0)
"""Pause before the next attempt, by the number of recent attempts."""

RECENT_SECONDS = 60.0
"""Seconds for which an attempt counts as recent."""

LOSSES_BEFORE_NOTICE = 4
"""Number of recent losses at which the user is notified, once."""

SHUTDOWN_SECONDS = 2.0
"""Longest wait for the daemon's answer to shutdown; editors wait for it before they close."""

LAST_WORDS_SECONDS = 2.0
"""Longest wait for the daemon's last messages after the client has exited."""


class Relay:
    """Relays between a client, at the standard streams of this process, and one daemon after another."""

    def __init__(self, address: Address, serve: Sequence[str] = SERVE_COMMAND):
        """Connects to a daemon. Raises DaemonError, before any input is read."""
        self._address, self._serve = address, serve
        self._session = RelayedSession()
        self._lock = Lock()
        """Guards session and link: the client's messages must not interleave with the introduction to a new daemon."""
        self._link: Link | None = Link(join(address, serve))
        self._writing = Lock()
        self._ending = Event()
        self._client_spoke = Event()
        """Set by every message of the client."""
        self._losses: deque[float] = deque(maxlen=len(REJOIN_DELAYS_SECONDS))
        self._has_notified = False

    def run(self) -> int:
        """Relay until the client exits; returns the exit code."""
        listening = Thread(target=self._listen, args=(self._link,), name="mercury-daemon", daemon=True)
        listening.start()
        try:
            for message in framing.messages(lambda: os.read(0, framing.READ_BYTES)):
                self._take(message)
                if isinstance(message, dict) and message.get("method") == "exit":
                    break
        finally:
            self._end(listening)
        return 0 if self._session.was_shut_down else 1

    def _end(self, listening: Thread) -> None:
        """Pass on the daemon's last messages, then stop listening."""
        self._ending.set()
        self._client_spoke.set()
        with self._lock:
            if self._link is not None:
                self._link.hang_up()
        listening.join(LAST_WORDS_SECONDS)
        with self._lock:
            if self._link is not None:
                self._link.close()

    def _take(self, message: Any) -> None:
        if isinstance(message, framing.Unreadable):
            error = {"code": framing.PARSE_ERROR, "message": message.reason}
            self._say({"jsonrpc": "2.0", "id": None, "error": error})
            return
        is_object = isinstance(message, dict)
        with self._lock:
            is_wanted = not is_object or self._session.hear_client(message)
            answer = None
            if self._link is not None and is_wanted:
                self._link.send(message)
            elif self._link is None and is_object:
                answer = self._session.answer_alone(message.get("id"))
        self._client_spoke.set()
        self._say(answer)
        if answer is None and is_object and message.get("method") == "shutdown":
            patience = Timer(SHUTDOWN_SECONDS, self._shut_down, [message.get("id")])
            patience.daemon = True
            patience.start()

    def _shut_down(self, msg_id: Any) -> None:
        """Answer shutdown if the daemon has not, and leave the daemon."""
        with self._lock:
            if (answer := self._session.answer_alone(msg_id)) is not None and self._link is not None:
                self._link.close()
        self._say(answer)

    def _listen(self, link: Link) -> None:
        try:
            self._follow(link)
        except BaseException:
            # Editors restart a server that has exited, not one that no longer answers.
            import traceback

            _give_up(traceback.format_exc())

    def _follow(self, link: Link) -> None:
        """Pass on the messages of the daemon, then of each that replaces it."""
        while True:
            said_goodbye = False
            for message in link.messages:
                said_goodbye |= message.get("method") == GOODBYE
                self._pass(message)
            self._lose(link)
            if self._ending.is_set() or self._session.was_shut_down:
                return
            if said_goodbye:
                self._client_spoke.wait()
            while (found := self._rejoin(link.was_silent)) is None:
                if self._ending.is_set():
                    return
            link = found

    def _pass(self, message: Message) -> None:
        with self._lock:
            is_wanted = self._session.hear_daemon(message)
        self._say(message if is_wanted else None)

    def _lose(self, link: Link) -> None:
        with self._lock:
            self._link = None
            self._client_spoke.clear()
            answers = list(self._session.lose())
        link.close()
        for answer in answers:
            self._say(answer)

    def _rejoin(self, is_hanging: bool) -> Link | None:
        """Try once to resume the session with another daemon. `is_hanging`: the last one does not answer."""
        now = monotonic()
        self._losses.append(now)
        recent = sum(now - each < RECENT_SECONDS for each in self._losses)
        if recent >= LOSSES_BEFORE_NOTICE:
            hint = f"See mercury-lsp doctor, or the log: {log_name(self._address)}"
            self._notify_user(f"Mercury's daemon keeps ending; it is restarted at growing intervals. {hint}")
        if self._ending.wait(REJOIN_DELAYS_SECONDS[recent - 1]):
            return None
        try:
            link = Link(join(self._address, self._serve, is_hanging))
        except DaemonError as error:
            self._notify_user(f"Mercury: {error}")
            with self._lock:
                answer = self._session.refuse_introduction(str(error))
            self._say(answer)
            return None
        return link if self._resume(link) else None

    def _notify_user(self, text: str) -> None:
        """Show the user at most one message."""
        if not self._has_notified:
            self._has_notified = True
            self._say({"jsonrpc": "2.0", "method": "window/showMessage", "params": {"type": 2, "message": text}})

    def _resume(self, link: Link) -> bool:
        """Tell a new daemon what the old one knew; False if the new one is lost as well."""
        with self._lock:
            introduction, unregistration = self._session.introduction(), self._session.unregistration()
        self._say(unregistration)
        if introduction is not None:
            link.send(introduction)
            if introduction["id"] == RESUMED_ID and not self._is_introduced(link):
                link.close()
                return False
        with self._lock:
            if self._ending.is_set():
                link.close()
                return False
            for message in self._session.rest():
                link.send(message)
            self._link = link
        return True

    def _is_introduced(self, link: Link) -> bool:
        for message in link.messages:
            self._pass(message)
            if message.get("id") == RESUMED_ID:
                return "error" not in message
        return False

    def _say(self, message: Message | None) -> None:
        """Send the client a message, if there is one."""
        try:
            with self._writing:
                left = memoryview(b"" if message is None else framing.framed(message))
                while left:
                    left = left[os.write(1, left) :]
        except OSError:  # the editor is gone
            if not self._ending.is_set():
                _give_up()


def _give_up(reason: str = "") -> NoReturn:
    """End the process at once, because a read cannot be interrupted; the reason goes to the editor's log."""
    with suppress(OSError):
        os.write(2, reason.encode("utf-8", "backslashreplace"))
    os._exit(1)
