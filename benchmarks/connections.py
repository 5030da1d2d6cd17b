"""Measure one daemon with many editors: `python benchmarks/connections.py [--quick] [--json] [--out FILE]`.

It types into 16 connections at once, 200 keys per second in total; each key is a change and a request for inline
completion. The engine answers immediately, so that all the time is the server's own, first over the socket, then
through relays as for editors. `server_ms` is measured inside the daemon, from reading a request to writing its reply;
`round_trip_ms` is measured by the typist and includes the socket, the daemon's work for other connections and the
typist's own time; `late_ms` is how late the typist was with its keys, which shows the machine's other load. `cpu_ms` is
the daemon's processor time per key, which other processes can hardly lengthen. Then it compares the memory of a daemon
with the real model and one editor with that of a daemon with all of them.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mercury_engine.errors import MercuryError
from mercury_lab.editing.client import Client
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import held_out_files
from on_all import options as options_of_all
from on_connections.daemons import INSTANT_DAEMON, daemon
from on_connections.typists import connected
from on_keys import editor, figures
from on_keys.script import Script, lines_to_type, retyped
from rich.table import Table

from mercury_lsp.daemon.address import UnixAddress

PARSING_SECONDS = 4.0
"""Seconds for parsing new documents and searching them for drafts; typing is timed, not opening."""


def main() -> int:
    parser = options_of_all.parser("connections", __doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds of typing")
    options_of_all.add_corpus(parser)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--keys-per-second", type=float, default=200.0, help="of all connections together")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        found = measure(options, 5.0 if options.quick else 20.0)
        suite.deliver(found, table(found), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


def measure(options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """The record of a run."""
    scripts = sample_scripts(options, seconds)
    with tempfile.TemporaryDirectory() as folder:
        ways = {name: typed(Path(folder), options, scripts, seconds, name == "relay") for name in ("socket", "relay")}
        memory = remembered(Path(folder), options, scripts)
    return {
        "server_p95_ms": ways["socket"]["server_ms"]["p95"],
        "round_trip_p95_ms": ways["socket"]["round_trip_ms"]["p95"],
        "memory_ratio": memory["ratio"],
        "connections": options.connections,
        "keys_per_second": options.keys_per_second,
        "seconds": seconds,
        **ways,
        "memory": memory,
        "seed": options.seed,
        **options_of_all.circumstances(),
    }


def sample_scripts(options: argparse.Namespace, seconds: float) -> list[Script]:
    """The keys for each connection: lines of the corpus's files; the same seed gives the same keys."""
    keys = round(2 * seconds * options.keys_per_second / options.connections)
    found = [each for each in held_out_files(options.corpus) if each.language == "python"] or held_out_files(
        options.corpus
    )
    chosen = random.Random(options.seed).choices(found, k=options.connections)
    return [
        retyped(each.text, *lines_to_type(each.text, keys, options.seed + number), options.seed)
        for number, each in enumerate(chosen)
    ]


def typed(
    folder: Path, options: argparse.Namespace, scripts: list[Script], seconds: float, through_relays: bool
) -> dict[str, Any]:
    """Type into all connections at once; returns the figures."""
    address, record = UnixAddress(folder / "instant.sock"), folder / f"{through_relays}"
    pace = options.connections / options.keys_per_second
    rng = random.Random(options.seed)

    async def play() -> dict[str, Any]:
        async with connected(address, scripts, through_relays) as (typists, _):
            await asyncio.sleep(PARSING_SECONDS)
            before = len(record.read_text().splitlines()) if record.exists() else 0
            cpu = editor.processor_seconds(pid)
            with ThreadPoolExecutor(len(typists)) as sleeping:
                await asyncio.gather(*(each.type(seconds, pace, rng, sleeping) for each in typists))
            cpu = editor.processor_seconds(pid) - cpu
            inside = [float(line) for line in record.read_text().splitlines()[before:]]
            took = [each for typist in typists for each in typist.took]
            return {
                "server_ms": figures.spread(inside),
                "round_trip_ms": figures.spread(took),
                "late_ms": figures.spread([each for typist in typists for each in typist.late]),
                "cpu_ms": 1e3 * cpu / len(took),
                "answers_per_second": round(len(took) / seconds, 1),
                "unanswered": sum(len(typist.sent) for typist in typists),
                "superseded": sum(typist.superseded for typist in typists),
            }

    with daemon(address, [*INSTANT_DAEMON, str(record)]) as pid:
        return asyncio.run(play())


def remembered(folder: Path, options: argparse.Namespace, scripts: list[Script]) -> dict[str, Any]:
    """Memory with the real model: one editor with one document, the same with all documents, and an editor for each
    document. In each document a suggestion is made, for that fills the engine's caches. Counted in are the
    relays, which editors start."""
    address = UnixAddress(folder / "real.sock")
    command = (sys.executable, "-m", "mercury_lsp", *address.arguments)
    clients: list[Client] = []

    def now() -> dict[str, float]:
        return {
            "daemon_mb": shared_mb(pid),
            "relays_mb": sum(shared_mb(each._process.pid) for each in clients),
        }

    with daemon(address, (sys.executable, "-m", "mercury_lsp", "serve")) as pid:
        clients.append(introduced(command, options.model))
        suggested(clients[0], 0, scripts[0])
        one = now()
        for number, script in enumerate(suite.progress(scripts, "opening")):
            suggested(clients[0], number, script)
        one_with_all_documents = now()
        for number, script in enumerate(suite.progress(scripts[1:], "connecting")):
            clients.append(introduced(command, options.model))
            suggested(clients[-1], number + 1, script)
        all_editors = now()
        for client in clients:
            client.__exit__()
    return {
        "one": one,
        "one_with_all_documents": one_with_all_documents,
        "all": all_editors,
        "ratio": sum(all_editors.values()) / sum(one.values()),
        "ratio_with_the_same_documents": sum(all_editors.values()) / sum(one_with_all_documents.values()),
    }


def introduced(command: Sequence[str], model: str | None) -> Client:
    """An editor whose server has loaded its model, or is about to."""
    client = Client(command)
    about = {"capabilities": {}, "processId": None, "rootUri": None, "initializationOptions": {"model": model}}
    client.request("initialize", about)
    client.notify("initialized", {})
    return client


def suggested(client: Client, number: int, script: Script) -> None:
    """Open a document and request a suggestion in it."""
    uri = f"file:///work/{number}.py"
    document = {"uri": uri, "languageId": "python", "version": 1, "text": script.text}
    client.notify("textDocument/didOpen", {"textDocument": document})
    here = {"line": script.text.count("\n", 0, script.keys[0].start), "character": 0}
    asked = {"textDocument": {"uri": uri}, "position": here, "context": {"triggerKind": 2}}
    client.request("textDocument/inlineCompletion", asked)


def shared_mb(pid: int) -> float:
    """Memory of a process in MiB, counting its share of shared pages (Linux's proportional set size)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def table(record: dict[str, Any]) -> Table:
    """The record as a table."""
    made = Table("way", "what", "p50 ms", "p95 ms", "p99 ms", "answers a second")
    for way in ("socket", "relay"):
        for what in ("server_ms", "round_trip_ms", "late_ms"):
            row = record[way][what]
            made.add_row(
                way, what, *(f"{row[p]:.2f}" for p in ("p50", "p95", "p99")), f"{record[way]['answers_per_second']}"
            )
    made.caption = f"memory of {record['connections']} connections over that of one: {record['memory_ratio']:.2f}"
    return made


if __name__ == "__main__":
    sys.exit(main())
