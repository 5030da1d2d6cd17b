"""`mercury-lsp`: the language server over stdio, in the daemon; or in this process, if asked to or if that fails."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from mercury_lsp.commands.serve import address_of, end_at_once
from mercury_lsp.daemon.address import Address
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.handover import hand_over, journal_left
from mercury_lsp.relay.join import SERVE_COMMAND, join, log_name
from mercury_lsp.relay.journal import Journal

IN_PROCESS_VARIABLE = "MERCURY_IN_PROCESS"
"""Environment variable: 1 loads the model in the server's own process."""


def run(arguments: argparse.Namespace) -> NoReturn:
    """Serve one editor. Raises UsageError."""
    if not (arguments.in_process or os.environ.get(IN_PROCESS_VARIABLE, "") not in ("", "0")):
        journal = journal_left()
        try:
            end_at_once(relayed(address_of(arguments), journal=journal))
        except DaemonError as error:
            if journal is not None:  # a session that has begun cannot go on here
                sys.stderr.write(f"mercury-lsp: {error}\n")
                end_at_once(1)
            sys.stderr.write(f"mercury-lsp: {error}; serving in this process\n")
    from mercury_lsp.commands.stdio import serve

    serve()


def relayed(address: Address, serve: Sequence[str] = SERVE_COMMAND, journal: Journal | None = None) -> int:
    """Serve the editor by a daemon, through the hub or a relay here; returns the exit code. Raises DaemonError.

    `journal`: that of a hub that was killed.
    """
    code = hand_over(address, serve, journal)
    return code if code is not None else _relayed_here(address, serve, journal)


def _relayed_here(address: Address, serve: Sequence[str], journal: Journal | None) -> int:
    from mercury_lsp.relay.link import Link
    from mercury_lsp.relay.relay import Relay
    from mercury_lsp.relay.resuming import resumed
    from mercury_lsp.relay.stdio import OwnStdio

    def linked() -> Link:
        return Link(join(address, serve))

    hint = f"mercury-lsp doctor, or the log: {log_name(address)}"
    return Relay(linked(), linked, OwnStdio(), hint, resumed(journal)).run()
