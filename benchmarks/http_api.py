"""Measure the HTTP API under load: `benchmarks/http_api.py [--connections N] [--seconds S] [--gguf FILE] [--json]`.

N connections ask `/infill` for single lines of the corpus's files, each for its next one as soon as the last is there.
They begin no more after S seconds, and the last answers are waited for: with N times the seconds of one request, that
may take longer than S. No gap is asked for twice, so nothing is cached. With `--gguf`, a file of the same model,
llama.cpp's own server (`pip install xllamacpp`) gets the same requests.

Then an editor types lines over LSP, at a typist's pace, alone and again under that load: `editor_slowdown` is the ratio
of the mean times of its fills. `server_mb` is the server's resident memory before and after each load.
"""

import argparse
import asyncio
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from threading import Event, Thread
from typing import Any

import httpx
from mercury_engine.errors import MercuryError
from mercury_lab.editing.client import Client
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import held_out_files
from on_all import options as options_of_all
from on_keys import figures
from on_keys.editor import Typist, resident_mb
from on_keys.script import lines_to_type, retyped
from rich.table import Table

PREFIX_CHARS, SUFFIX_CHARS = 400, 100
"""Characters of a request: some 150 tokens, which two slow cores read in under a second."""

MAX_TOKENS = 24

EDITOR_CHARS, EDITOR_KEYS = 400, 150
"""Characters of the lines that the editor types, and most of its keys."""

SLOTS = 4
"""Requests that llama.cpp answers at a time, each in a context of `CONTEXT_TOKENS`."""

CONTEXT_TOKENS = 2048

REPORT_SECONDS = 10.0

Body = dict[str, Any]


def main() -> int:
    parser = options_of_all.parser("http-api", __doc__)
    options_of_all.add_corpus(parser)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument(
        "--threads", type=int, default=1, help="CPU threads of llama.cpp; ours takes half the processors"
    )
    parser.add_argument("--gguf", type=Path, help="for llama.cpp: a file of the same model")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        found = measure(options)
        suite.deliver(found, table(found), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The record of a run."""
    bodies = sample(options)
    with (
        tempfile.TemporaryDirectory(prefix="mercury-") as folder,
        mercury(options, Path(folder) / "socket") as (url, pid),
    ):
        command = [sys.executable, "-m", "mercury_lsp", "--socket", str(Path(folder) / "socket")]
        with Client(command) as client:
            typist = connected(client, options)
            resident = {"before": resident_mb(pid)}
            ours = asyncio.run(load("mercury", url, options, iter(bodies)))
            resident["after"] = resident_mb(pid)
            said("an editor alone")
            alone = typed(typist, "alone", options)
            with under_load(url, options, bodies[::-1]):
                loaded = typed(typist, "under_load", options)
            resident["after_the_editor"] = resident_mb(pid)
    theirs = None
    if options.gguf is not None:
        with llama(options) as url:
            theirs = asyncio.run(load("llama.cpp", url, options, iter(bodies)))
    return {
        "requests_per_second": ours["requests_per_second"],
        "p50_ms": ours["ms"]["p50"],
        "p95_ms": ours["ms"]["p95"],
        "editor_slowdown": round(mean(loaded) / mean(alone), 2),
        "connections": options.connections,
        "seconds": options.seconds,
        "characters_of_a_request": PREFIX_CHARS + SUFFIX_CHARS,
        "llama_cpp_threads": options.threads,
        "model": options.model or "bundled",
        "mercury": ours,
        "llama_cpp": theirs,
        "server_mb": {when: round(found or 0.0, 1) for when, found in resident.items()},
        "editor_ms": {
            "alone": {"mean": round(mean(alone), 1)} | figures.spread(alone),
            "under_load": {"mean": round(mean(loaded), 1)} | figures.spread(loaded),
        },
        "seed": options.seed,
        **options_of_all.circumstances(),
    }


def said(what: str) -> None:
    """Report progress."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def sample(options: argparse.Namespace) -> list[Body]:
    """Requests for the ends of lines, in an order of their own; the same seed gives the same."""
    bodies = list[Body]()
    for file in held_out_files(options.corpus):
        for line in re.finditer(r"[^\n]*\S[^\n]*", file.text):
            at = line.start() + len(line[0]) // 2
            before, after = file.text[max(0, at - PREFIX_CHARS) : at], file.text[line.end() : line.end() + SUFFIX_CHARS]
            above, broken, here = before.rpartition("\n")
            bodies.append({"input_prefix": above + broken, "prompt": here, "input_suffix": after})
    random.Random(options.seed).shuffle(bodies)
    common = {"n_predict": MAX_TOKENS, "stop": ["\n"], "temperature": 0.0, "cache_prompt": True}
    return [body | common for body in bodies]


async def load(name: str, url: str, options: argparse.Namespace, bodies: Iterator[Body]) -> dict[str, Any]:
    """Throughput and times of a closed loop of all connections."""
    seconds, statuses, characters = list[float](), list[int](), 0
    limits = httpx.Limits(max_connections=options.connections, max_keepalive_connections=options.connections)
    started = time.perf_counter()
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=None, trust_env=False) as client:

        async def ask_on() -> None:
            nonlocal characters
            for body in bodies:
                asked = time.perf_counter()
                if asked - started > options.seconds:
                    return
                reply = await client.post("/infill", json=body)
                seconds.append(time.perf_counter() - asked)
                statuses.append(reply.status_code)
                characters += len(reply.json().get("content", ""))

        async def report() -> None:
            while True:
                said(f"{name}: {len(seconds)} answers in {time.perf_counter() - started:.0f} s")
                await asyncio.sleep(REPORT_SECONDS)

        reporting = asyncio.ensure_future(report())
        await asyncio.gather(*(ask_on() for _ in range(options.connections)))
        reporting.cancel()
    took = time.perf_counter() - started
    return {
        "requests_per_second": round(len(seconds) / took, 2),
        "characters_per_second": round(characters / took, 1),
        "refused": sum(status != 200 for status in statuses),
        "ms": figures.spread([1000 * each for each in seconds]),
    }


@contextmanager
def under_load(url: str, options: argparse.Namespace, bodies: list[Body]) -> Iterator[None]:
    """Runs with all connections asking; hangs up at the end."""
    enough = Event()

    async def ask() -> None:
        loading = asyncio.ensure_future(load("an editor beside them", url, options, iter(bodies)))
        await asyncio.to_thread(enough.wait)
        loading.cancel()

    thread = Thread(target=lambda: asyncio.run(ask()))
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def connected(client: Client, options: argparse.Namespace) -> Typist:
    """An editor of the server's model."""
    settings = {"mercury": {"statistics": False, "model": options.model}}
    about = {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": settings}
    client.request("initialize", about)
    client.notify("initialized", {})
    return Typist(client, Path())


def typed(typist: Typist, name: str, options: argparse.Namespace) -> list[float]:
    """Milliseconds from each key to its answer, in a document of its own; the same keys each time."""
    text = held_out_files(options.corpus)[0].text
    script = retyped(text, *lines_to_type(text, EDITOR_CHARS, options.seed), options.seed)
    uri = f"file:///{name}.py"
    typist.open(uri, "python", script.text, script.keys[0].start)
    return [key.milliseconds for key in typist.play(uri, script, EDITOR_KEYS)]


@contextmanager
def mercury(options: argparse.Namespace, socket: Path) -> Iterator[tuple[str, int]]:
    """The address of our server, and its process."""
    command = [sys.executable, "-m", "mercury_lsp", "serve", "--http", "127.0.0.1:0", "--socket", str(socket)]
    command += ["--model", options.model or "bundled"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = re.search(r"serving (\S+) with ", line := server.stderr.readline())
            if found is None:
                raise SystemExit(line)
            Thread(target=server.stderr.read, daemon=True).start()  # it must not wait for a reader of its log
            yield found[1], server.pid
        finally:
            server.terminate()


@contextmanager
def llama(options: argparse.Namespace) -> Iterator[str]:
    """The address of llama.cpp's server, in this process."""
    import xllamacpp

    asked = xllamacpp.CommonParams()
    asked.model.path, asked.n_parallel, asked.n_ctx = str(options.gguf), SLOTS, SLOTS * CONTEXT_TOKENS
    asked.n_gpu_layers, asked.verbosity, asked.hostnames, asked.port = 0, -1, ["127.0.0.1"], 0
    asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = options.threads
    server = xllamacpp.Server(asked)  # it stops serving with its last reference
    yield server.listening_address


def table(found: dict[str, Any]) -> Table:
    """The record for people."""
    made = Table(title=f"{found['connections']} connections, {found['model']}")
    for column in ("server", "requests/s", "p50 ms", "p95 ms", "refused"):
        made.add_column(column, justify="right")
    for name in ("mercury", "llama_cpp"):
        if (each := found[name]) is not None:
            times = (f"{each['ms'][key]:,.0f}" for key in ("p50", "p95"))
            made.add_row(name, f"{each['requests_per_second']:.2f}", *times, str(each["refused"]))
    made.caption = f"an editor beside them takes {found['editor_slowdown']:.2f} times as long"
    return made


if __name__ == "__main__":
    sys.exit(main())
