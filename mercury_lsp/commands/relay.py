"""`mercury-lsp`: the language server over stdio, as a relay to the daemon; in this process if told so or need be."""

import argparse
import os
import sys
from typing import NoReturn

from mercury_lsp.commands.serve import address_of, end_at_once
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.join import join, log_name
from mercury_lsp.relay.link import READ_BYTES, Link
from mercury_lsp.relay.relay import Relay

IN_PROCESS = "MERCURY_IN_PROCESS"
"""Environment variable: 1 keeps the model in the server's own process."""


def run(arguments: argparse.Namespace) -> NoReturn:
    """Serve one editor. Raises UsageError."""
    if not (arguments.in_process or os.environ.get(IN_PROCESS, "") not in ("", "0")):
        try:
            address = address_of(arguments)
            relay = Relay(lambda: Link(join(address)), f"mercury-lsp doctor, or the log: {log_name(address)}")
            end_at_once(relay.run(lambda: os.read(0, READ_BYTES), sys.stdout.buffer))
        except DaemonError as error:
            sys.stderr.write(f"mercury-lsp: {error}; serving in this process\n")
    from mercury_lsp.commands.stdio import serve

    serve()
