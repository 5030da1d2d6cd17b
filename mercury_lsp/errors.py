"""Errors of the server and its commands. Each message names the mend.

MercuryError (mercury_engine.errors)
├── DaemonError        no daemon can be had, or not a safe one
│   └── SilentDaemon   one is there and does not answer
├── SettingsError      the client's configuration is wrong
├── StatisticsError    the file with the statistics cannot be used
├── UnknownDocument    a request names a document that is not open
└── UsageError         a command's arguments are wrong
"""

from mercury_engine.errors import MercuryError


class DaemonError(MercuryError):
    """The model cannot be shared: there is no private folder, no daemon starts, or it is one we must not talk to."""


class SilentDaemon(DaemonError):
    """Whoever listens says nothing."""


class SettingsError(MercuryError):
    """Unknown keys or values that are not allowed; the message names them all."""


class StatisticsError(MercuryError):
    """The file is damaged, not readable or of a newer version."""


class UnknownDocument(MercuryError):
    """The client did not open the document it asks about."""


class UsageError(MercuryError):
    """A command cannot do what its arguments ask for."""
