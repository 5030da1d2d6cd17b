"""The daemon with an engine that answers immediately and times requests: `instant_daemon.py RECORD ADDRESS`.

Every answer becomes a line in the file RECORD: milliseconds from the request's being read to its reply's being written.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from mercury_engine.api import Answer, Control, Fill, Request, Rewrite, RewriteRequest, ScoreRequest, Scores
from mercury_engine.utility import Utility

from mercury_lsp.commands import serve
from mercury_lsp.server.protocol import MercuryProtocol
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
        """Always the same fill, the same score for every text, and the region as it is."""
        if isinstance(request, ScoreRequest):
            return Scores((0.0,) * len(request.texts), elapsed=0.0)
        if isinstance(request, RewriteRequest):
            return Rewrite(request.text, 0.9, 0.1, steps=1, elapsed=0.0, is_finished=True)
        return Fill("value = compute(value)", 0.9, steps=1, elapsed=0.0)


def noting(path: Path) -> Any:
    """`_send_response` that records how long the server had the request."""
    send, record = MercuryProtocol._send_response, path.open("a", buffering=1)

    def noted(protocol: MercuryProtocol, msg_id: Any, result: Any = None, error: Any = None) -> None:
        method, begun = protocol._begun.get(msg_id, ("", 0.0))
        send(protocol, msg_id, result, error)
        if method == "textDocument/inlineCompletion":
            record.write(f"{1e3 * (time.perf_counter() - begun)}\n")

    return noted


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("record", type=Path)
    serve.add_address_arguments(parser)
    arguments = parser.parse_args()
    MercuryProtocol._send_response = noting(arguments.record)  # type: ignore[method-assign]
    serve.serve(serve.address_of(arguments), None, lambda settings: InstantEngine())
    standard_streams.end_at_once(0)


if __name__ == "__main__":
    main()
