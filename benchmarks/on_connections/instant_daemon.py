"""The daemon with an engine that answers immediately and times requests: `instant_daemon.py RECORD ADDRESS`.

Every answer becomes a line in the file RECORD: milliseconds from the request's being read to its reply's being written.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from mercury_engine.api import Answer, Control, Fill, Request, Rewrite, RewriteRequest
from mercury_engine.utility import Utility

from mercury_lsp.commands import serve
from mercury_lsp.server.connection import Message, RpcConnection
from mercury_lsp.transport import standard_streams


class InstantEngine:
    """An engine that takes no time, so that only the server is measured."""

    name, device, utility = "instant", "cpu", Utility(0.0, 0.0, 0.0)
    edit_format = chat_format = words = None

    def rest(self) -> None:
        """Nothing to release."""

    def close(self) -> None:
        """Nothing runs."""

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        """Always the same fill, and the region as it is."""
        if isinstance(request, RewriteRequest):
            return Rewrite(request.text, steps=1, elapsed=0.0, is_finished=True)
        return Fill("value = compute(value)", 0.9, steps=1, elapsed=0.0)


def note_times(path: Path) -> None:
    """Have the server record how long it has each request for ghost text."""
    take, send = RpcConnection._call, RpcConnection._send
    record, begun = path.open("a", buffering=1), dict[tuple[RpcConnection, Any], float]()

    def taken(connection: RpcConnection, message: Message) -> None:
        if message["method"] == "textDocument/inlineCompletion":
            begun[connection, message["id"]] = time.perf_counter()
        take(connection, message)

    def sent(connection: RpcConnection, message: Message) -> None:
        send(connection, message)
        if (start := begun.pop((connection, message.get("id")), None)) is not None:
            record.write(f"{1e3 * (time.perf_counter() - start)}\n")

    RpcConnection._call = taken  # type: ignore[method-assign]
    RpcConnection._send = sent  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("record", type=Path)
    serve.add_address_arguments(parser)
    arguments = parser.parse_args()
    note_times(arguments.record)
    serve.serve(serve.address_of(arguments), None, lambda settings: InstantEngine())
    standard_streams.end_at_once(0)


if __name__ == "__main__":
    main()
