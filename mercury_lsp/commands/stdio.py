"""`mercury-lsp --in-process`: the language server over stdio, with the model in this process."""

import logging
import os
import sys
from typing import NoReturn

from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.engine_host.loading import LoadEngine, load_engine
from mercury_lsp.server.routes import create_server
from mercury_lsp.transport import standard_streams


def serve(load: LoadEngine = load_engine) -> NoReturn:
    """Serve one client until it sends exit or closes the pipe; then end the process."""
    standard_streams.forgive()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # The client reads file descriptor 1, so a library that prints must not write to it.
    protocol_out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def write(data: bytes) -> None:
        protocol_out.write(data)
        protocol_out.flush()

    server = create_server(Engines(load), write)
    server.serve_standard_input()
    standard_streams.end_at_once(server.exit_code)
