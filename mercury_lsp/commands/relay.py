"""`mercury-lsp`: the language server over stdio, in the daemon; on request or as a fallback in this process."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from mercury_lsp.daemon.address import Address
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.join import SERVE_COMMAND, join, log_name
from mercury_lsp.relay.link import Link
from mercury_lsp.relay.relay import Relay, Stdio
from mercury_lsp.transport.standard_streams import end_at_once

IN_PROCESS_VARIABLE = "MERCURY_IN_PROCESS"
"""Environment variable; 1 loads the model in the server's own process."""


def run(address: Callable[[], Address], in_process: bool = False) -> NoReturn:
    """Serve one editor. Raises UsageError."""
    if not (in_process or os.environ.get(IN_PROCESS_VARIABLE, "") not in ("", "0")):
        try:
            end_at_once(relayed(address()))
        except DaemonError as error:
            sys.stderr.write(f"mercury-lsp: {error}; serving in this process\n")
    from mercury_lsp.commands.stdio import serve

    serve()


def relayed(address: Address, serve: Sequence[str] = SERVE_COMMAND) -> int:
    """Connect the editor to a daemon; returns the exit code. Raises DaemonError before any input is read."""

    def linked(after_hang: bool = False) -> Link:
        return Link(join(address, serve, after_hang))

    hint = f"mercury-lsp doctor, or the log: {log_name(address)}"
    return Relay(linked(), linked, Stdio(), hint).run()
