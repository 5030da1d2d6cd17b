"""The real daemon with the engine of `fake_server.py`: `fake_daemon.py LOADS [--idle-exit MINUTES] [--http] ADDRESS`.

Every load of an engine becomes a line in the file LOADS.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from mercury_lsp.commands import serve
from mercury_lsp.daemon.control import ALREADY_RUNNING
from mercury_lsp.server.routes import HANDLERS
from mercury_lsp.settings import Settings
from mercury_lsp.transport import standard_streams
from tests.support import fake_server

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("loads", type=Path)
    serve.add_arguments(parser)
    arguments = parser.parse_args()

    def load(settings: Settings) -> fake_server.ScriptedEngine:
        with arguments.loads.open("a") as loads:
            loads.write(f"{os.getpid()} {settings.model}\n")
        return fake_server.load(settings)

    HANDLERS["test/text"] = fake_server.text
    idle = None if arguments.idle_exit is None else arguments.idle_exit * 60
    http = None if arguments.http is None else serve.http_listener(arguments.http, None)
    served = serve.serve(serve.address_of(arguments), idle, load, http)
    standard_streams.end_at_once(0 if served else ALREADY_RUNNING)
