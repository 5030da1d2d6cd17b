"""Passes messages between one editor and the daemon, and takes the session up again when the daemon is lost.

Two threads: one reads what the client says, the other what the daemon says; the other also finds the next daemon.
"""

import traceback
from collections import deque
from collections.abc import Callable
from threading import Event, Lock, Thread, Timer
from time import monotonic
from typing import Any

from mercury_lsp.daemon.handshake import GOODBYE
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.link import Link
from mercury_lsp.relay.session import RESUMED, Message, Session
from mercury_lsp.relay.stdio import Stdio
from mercury_lsp.transport import framing

DELAYS = (0.0, 0.1, 0.5, 2.0, 5.0, 15.0, 30.0)
"""Seconds before the next attempt, by how many there were lately."""

LATELY = 60.0

TELL_AFTER = 4
"""Losses lately after which the user is told, once."""

SHUTDOWN_SECONDS = 2.0
"""For the daemon to answer shutdown; editors wait for that before they close."""

LAST_WORDS = 2.0
"""Seconds that the daemon has for what it still says once the client has ended."""

PARSE_ERROR = -32700


class Relay:
    """Between one client and one daemon after another: the first link, and join connects or raises DaemonError."""

    def __init__(self, link: Link, join: Callable[[], Link], stdio: Stdio, hint: str = "mercury-lsp doctor"):
        self._first = link
        self._join = join
        self._stdio = stdio
        self._hint = hint
        self._session = Session()
        self._lock = Lock()
        """Of the session and of the link: what the client says and what a new daemon hears first must not mix."""
        self._link: Link | None = link
        self._ending = Event()
        self._wanted = Event()
        """Set by whatever the client says."""
        self._losses: deque[float] = deque(maxlen=len(DELAYS))
        self._has_told = False

    def run(self) -> int:
        """Relay until the client exits; what its server is to end with."""
        listening = Thread(target=self._listen, args=(self._first,), name="mercury-daemon", daemon=True)
        listening.start()
        try:
            for message in framing.messages(self._stdio.read):
                self._take(message)
                if isinstance(message, dict) and message.get("method") == "exit":
                    break
        finally:
            self._end(listening)
        return 0 if self._session.was_shut_down else 1

    def _end(self, listening: Thread) -> None:
        """Let the daemon say its last words, and have nobody listen for more."""
        self._ending.set()
        self._wanted.set()
        with self._lock:
            if self._link is not None:
                self._link.hang_up()
        listening.join(LAST_WORDS)
        with self._lock:
            if self._link is not None:
                self._link.close()

    def _take(self, message: Any) -> None:
        """One message of the client."""
        if isinstance(message, framing.Unreadable):
            error = {"code": PARSE_ERROR, "message": message.reason}
            self._say({"jsonrpc": "2.0", "id": None, "error": error})
            return
        with self._lock:
            is_wanted = self._session.hear_client(message)
            answer = None
            if self._link is None:
                answer = self._session.answer_alone(message.get("id")) if isinstance(message, dict) else None
            elif is_wanted:
                self._link.send(message)
        self._wanted.set()
        if answer is not None:
            self._say(answer)
        elif isinstance(message, dict) and message.get("method") == "shutdown":
            patience = Timer(SHUTDOWN_SECONDS, self._shut_down, [message.get("id")])
            patience.daemon = True
            patience.start()

    def _shut_down(self, msg_id: Any) -> None:
        """Answer shutdown, if the daemon has not."""
        with self._lock:
            answer = self._session.answer_for_daemon(msg_id)
        if answer is not None:
            self._say(answer)

    def _listen(self, link: Link) -> None:
        try:
            self._follow(link)
        except BaseException:
            # An editor starts a server anew that has ended, not one that has gone deaf.
            self._stdio.give_up(traceback.format_exc())

    def _follow(self, link: Link) -> None:
        """All that daemons say, one after another."""
        while True:
            was_told = False
            for message in link.messages:
                was_told |= isinstance(message, dict) and message.get("method") == GOODBYE
                self._pass(message)
            self._lose(link)
            if self._ending.is_set() or self._session.was_shut_down:
                return
            if was_told:
                self._wanted.wait()
            while (found := self._rejoin()) is None:
                if self._ending.is_set():
                    return
            link = found

    def _pass(self, message: Any) -> None:
        """One message of the daemon."""
        with self._lock:
            is_wanted = self._session.hear_daemon(message)
        if is_wanted:
            self._say(message)

    def _lose(self, link: Link) -> None:
        with self._lock:
            self._link = None
            self._wanted.clear()
            answers = list(self._session.lose())
        link.close()
        for answer in answers:
            self._say(answer)

    def _rejoin(self) -> Link | None:
        """One attempt to take up the session with another daemon."""
        now = monotonic()
        self._losses.append(now)
        lately = sum(now - each < LATELY for each in self._losses)
        if lately >= TELL_AFTER:
            self._tell(f"Mercury's daemon keeps ending; it is started again, less and less often. See {self._hint}")
        if self._ending.wait(DELAYS[lately - 1]):
            return None
        try:
            link = self._join()
        except DaemonError as error:
            self._tell(f"Mercury: {error}")
            with self._lock:
                answer = self._session.refuse_introduction(str(error))
            if answer is not None:
                self._say(answer)
            return None
        return link if self._resume(link) else None

    def _tell(self, text: str) -> None:
        """Show the user a message, the first of all."""
        if not self._has_told:
            self._has_told = True
            self._say({"jsonrpc": "2.0", "method": "window/showMessage", "params": {"type": 2, "message": text}})

    def _resume(self, link: Link) -> bool:
        """Tell a new daemon all that the old one knew; False if it is gone as well."""
        with self._lock:
            introduction, taken_back = self._session.introduction(), self._session.taken_back()
        if taken_back is not None:
            self._say(taken_back)
        if introduction is not None and introduction["id"] == RESUMED:
            link.send(introduction)
            if not self._is_introduced(link):
                link.close()
                return False
        with self._lock:
            if introduction is None or introduction["id"] != RESUMED:
                introduction = self._session.introduction()  # the client may have begun meanwhile
                if introduction is not None:
                    link.send(introduction)
            for message in self._session.rest():
                link.send(message)
            if self._ending.is_set():
                link.close()
                return False
            self._link = link
        return True

    def _is_introduced(self, link: Link) -> bool:
        for message in link.messages:
            self._pass(message)
            if isinstance(message, dict) and message.get("id") == RESUMED:
                return "error" not in message
        return False

    def _say(self, message: Message) -> None:
        try:
            self._stdio.write(framing.framed(message))
        except (OSError, ValueError):  # the editor is gone
            if not self._ending.is_set():
                self._stdio.give_up()
