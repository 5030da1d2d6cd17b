"""Errors of the server and its commands. Each message says how to fix it.

MercuryError (mercury_engine.errors)
├── DaemonError        there is no daemon that is safe to use
│   └── SilentDaemon   a daemon is there but does not answer
├── RpcError           a message of the protocol is refused
├── SettingsError      the client's configuration is wrong
├── StatisticsError    the statistics file cannot be used
├── UnknownDocument    a request names a document that is not open
└── UsageError         a command's arguments are wrong
"""

from mercury_engine.errors import MercuryError

_SHORT_OF_MEMORY = ("failed to map segment", "annot allocate memory", "can't start new thread")
"""How the loader of libraries, the system and Python say it."""

MAX_REFUSAL_CHARS = 500
"""Longest reason for refusing a message; it may repeat what the client sent."""

MORE_MEMORY = "there is not enough memory; raise its limit (ulimit -v) or free some"


def is_short_of_memory(error: BaseException) -> bool:
    """Whether an error came because memory is short."""
    is_told = isinstance(error, ImportError | OSError | RuntimeError) and any(
        each in str(error) for each in _SHORT_OF_MEMORY
    )
    return isinstance(error, MemoryError) or is_told


class DaemonError(MercuryError):
    """The model cannot be shared: no private folder, no daemon starts, or the one there must not be trusted."""


class SilentDaemon(DaemonError):
    """A process at the daemon's address does not answer."""


class RpcError(MercuryError):
    """A message is refused, by us or by the client; `code` is that of the protocol."""

    def __init__(self, code: int, message: str):
        super().__init__(message[:MAX_REFUSAL_CHARS])
        self.code = code


class SettingsError(MercuryError):
    """Unknown keys or forbidden values; the message names them all."""


class StatisticsError(MercuryError):
    """The file is damaged, unreadable or of a newer version."""


class UnknownDocument(MercuryError):
    """The client asks about a document that it did not open."""


class UsageError(MercuryError):
    """A command cannot do what its arguments ask for."""
