"""`mercury-lsp`: the language server over stdio, in the daemon; in this process on request or as a fallback."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from mercury_lsp.daemon.address import Address
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.relay import Relay
from mercury_lsp.transport import standard_streams

if TYPE_CHECKING:
    from mercury_lsp.engine_host.loading import LoadEngine

IN_PROCESS_VARIABLE = "MERCURY_IN_PROCESS"
"""Environment variable; 1 loads the model in the server's own process."""


def run(address: Callable[[], Address], in_process: bool = False) -> NoReturn:
    """Serve one editor. Raises UsageError."""
    if not (in_process or os.environ.get(IN_PROCESS_VARIABLE, "") not in ("", "0")):
        try:
            standard_streams.end_at_once(Relay(address()).run())
        except DaemonError as error:
            sys.stderr.write(f"mercury-lsp: {error}; serving in this process\n")
    serve()


def serve(load: "LoadEngine | None" = None) -> NoReturn:
    """Serve one client in this process until it sends exit or closes the pipe; then end the process."""
    import logging  # the relay needs none of these

    from mercury_lsp.engine_host.engines import Engines
    from mercury_lsp.engine_host.loading import load_engine
    from mercury_lsp.server.routes import create_server

    standard_streams.forgive()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # The client reads file descriptor 1, so a library that prints must not write to it.
    protocol_out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def write(data: bytes) -> None:
        protocol_out.write(data)
        protocol_out.flush()

    server = create_server(Engines(load or load_engine), write)
    server.serve_standard_input()
    standard_streams.end_at_once(server.exit_code)
