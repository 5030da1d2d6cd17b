"""The daemon with an engine that answers immediately and times requests: `instant_daemon.py RECORD ADDRESS`.

Every answer becomes a line in the file RECORD: milliseconds from the request's being read to its reply's being written.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mercury_engine.api import Fill, FillRequest, NewRequests, Rewrite, RewriteRequest, TellOutcome, one_by_one
from mercury_engine.worth import Worth

from mercury_lsp.commands import serve
from mercury_lsp.server.protocol import MercuryProtocol
from mercury_lsp.transport import standard_streams


class InstantEngine:
    """An engine that takes no time, so that only the server is measured."""

    name, device, worth = "instant", "cpu", Worth(0.0, 0.0)
    edit_format = None

    def rest(self) -> None:
        """Nothing to release."""

    def answer_all(self, more: NewRequests, done: TellOutcome) -> None:
        """Fill the requests one after the other."""
        one_by_one(self, more, done)

    def fill(self, request: FillRequest) -> Fill:
        """Always the same fill."""
        return Fill("value = compute(value)", 0.9, steps=1, elapsed=0.0)

    def score(self, request: FillRequest, texts: Sequence[str]) -> list[float]:
        """The same score for every text."""
        return [0.0] * len(texts)

    def rewrite(self, request: RewriteRequest) -> Rewrite:
        """The region as it is."""
        return Rewrite(request.text, 0.9, 0.1, steps=1, elapsed=0.0, is_finished=True)


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
