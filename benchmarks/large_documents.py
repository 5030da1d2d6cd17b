"""Measure how long one editor's large document holds up another's: `python benchmarks/large_documents.py [--json]`.

Two editors share a daemon, with an engine that answers immediately. One asks for inline completions
without a pause, while the other opens or changes a large document. The longest wait for an answer counts; the same time
without such work shows what the machine's other load costs.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

from mercury_engine.errors import MercuryError
from mercury_lab.editing.client import Client
from mercury_lab.evaluation import suite
from on_all import options as options_of_all
from on_connections.daemons import INSTANT_DAEMON, daemon
from on_keys import figures
from rich.table import Table

from mercury_lsp.daemon.address import UnixAddress
from mercury_lsp.transport.framing import framed

SECONDS = 4.0
"""Seconds of asking for each piece of work; the longest takes two."""

LINE = "value = compute(other)\n"

SERVED, REFUSED = 1_900_000, 50_000_000
"""Characters of about the longest document that is served, and of one that is refused."""


def main() -> int:
    parser = options_of_all.parser("large_documents", __doc__)
    parser.add_argument("--runs", type=int, default=10, help="daemons started one after another (default 10)")
    options = parser.parse_args()
    try:
        found = measured(options.runs)
        suite.deliver(found, table(found), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


def measured(runs: int) -> dict[str, Any]:
    """The record of a run: the longest wait of each start and each piece of work, in milliseconds."""
    longest: dict[str, list[float]] = {}
    for _ in suite.progress(range(runs), "starting"):
        for name, waits in held():
            longest.setdefault(name, []).append(round(max(waits), 1))
    return {
        "longest_wait_ms": longest,
        "seconds_each": SECONDS,
        **options_of_all.circumstances(),
    }


def held() -> Iterator[tuple[str, list[float]]]:
    """Milliseconds of each answer to one editor, by what the other one does, with a fresh daemon."""
    with tempfile.TemporaryDirectory() as folder:
        address = UnixAddress(Path(folder) / "instant.sock")
        command = (sys.executable, "-m", "mercury_lsp", *address.arguments)
        record = Path(folder) / "answers"
        with daemon(address, [*INSTANT_DAEMON, str(record)]), Client(command) as asking, Client(command) as other:
            for client in (asking, other):
                client.request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
                client.notify("initialized", {})
            asking.send(opened("asking", LINE * 20))
            other.send(opened("pasted", LINE * 20))
            yield "nothing", answered(asking, b"")
            for name, message in (
                ("a document of 1.9 MB", opened("served", LINE * (SERVED // len(LINE)))),
                ("a paste of 1.9 MB", changed("pasted", LINE * (SERVED // len(LINE)))),
                ("a document of 50 MB, refused", opened("refused", LINE * (REFUSED // len(LINE)))),
            ):
                yield name, answered(asking, framed({"jsonrpc": "2.0"} | message), other)


def opened(name: str, text: str) -> dict[str, Any]:
    """A message that opens a document."""
    document = {"uri": f"file:///work/{name}.py", "languageId": "python", "version": 1, "text": text}
    return {"method": "textDocument/didOpen", "params": {"textDocument": document}}


def changed(name: str, text: str) -> dict[str, Any]:
    """A message that inserts a text at the start of a document."""
    start = {"line": 0, "character": 0}
    change = {"range": {"start": start, "end": start}, "text": text}
    document = {"uri": f"file:///work/{name}.py", "version": 2}
    return {"method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": [change]}}


def answered(asking: Client, work: bytes, other: Client | None = None) -> list[float]:
    """Milliseconds of the answers to one editor while the other one sends its work."""
    sending = Thread(target=other.write, args=(work,)) if other else None
    if sending:
        sending.start()
    waits, end = [], time.perf_counter() + SECONDS
    while (begun := time.perf_counter()) < end:
        asked = {
            "textDocument": {"uri": "file:///work/asking.py"},
            "position": {"line": 1, "character": 0},
            "context": {"triggerKind": 2},
        }
        asking.request("textDocument/inlineCompletion", asked)
        waits.append(1e3 * (time.perf_counter() - begun))
    if sending:
        sending.join()
    return waits


def table(record: dict[str, Any]) -> Table:
    """The record as a table."""
    made = Table("another editor sends", "longest wait, median ms", "largest ms", "starts")
    for name, waits in record["longest_wait_ms"].items():
        made.add_row(name, f"{figures.percentile(waits, 50):.0f}", f"{max(waits):.0f}", f"{len(waits)}")
    return made


if __name__ == "__main__":
    sys.exit(main())
