"""Kill a replica while editors type: `benchmarks/cluster.py [--url URL] [--editors N] [--seconds S] [--json]`.

A cluster of two replicas is running on this machine (docs/scale.md). N editors, each with a session of its own, type
through files of the corpus and ask for every key; a new key hangs up on the old request, as editors do. In the
middle the replica that answered most is killed (SIGKILL). The record has the requests that were answered once,
answered twice, refused and lost, times before the kill, in the `LOSS_SECONDS` after it and later, and how often a
session stayed with its replica.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from typing import Any, NamedTuple

import httpx
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import held_out_files
from on_all import options as options_of_all
from on_keys import figures
from rich.table import Table

PREFIX_CHARS, SUFFIX_CHARS = 1200, 400

GAP_CHARS = 200
"""That an editor types in one place."""

WARM_SECONDS = 30.0
"""At the start, in which replicas read the contexts of all sessions; they do not count."""

KEY_SECONDS = 1.0
"""Between two keys of an editor; one key in four is followed by a pause, in which the answer comes."""

LOSS_SECONDS = 10.0
"""After the kill, which count as the loss."""

PROCESS = "ServeReplica:default:replicas"


class Asked(NamedTuple):
    """A request that was not hung up on."""

    at: float
    """Seconds since the start."""
    session: int
    seconds: float
    replica: str
    """Process number of the replica, as the reply's header has it; empty for none."""
    status: int
    """0: no reply came."""
    texts: int
    """Texts in the reply."""


def main() -> int:
    parser = options_of_all.parser("cluster", __doc__)
    options_of_all.add_corpus(parser)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--editors", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    try:
        httpx.get(f"{options.url}/health", timeout=5, trust_env=False).raise_for_status()
    except httpx.HTTPError as error:
        print(f"left out: no cluster answers at {options.url} ({error}); docs/scale.md has how to start one")
        return 0
    texts = [
        file.text for file in held_out_files(options.corpus) if len(file.text) > PREFIX_CHARS + SUFFIX_CHARS + GAP_CHARS
    ]
    found, killed_at, hung_up = asyncio.run(measured(options, texts))
    record = options_of_all.circumstances() | {"editors": options.editors, "seconds": options.seconds}
    record |= judged(found, killed_at) | {"hung_up": hung_up, "replica_mb": memory_mb()}
    suite.deliver(record, table(record), options)
    return 0


async def measured(options: argparse.Namespace, texts: list[str]) -> tuple[list[Asked], float, int]:
    """What was asked, when the replica was killed, and the number of requests that an editor hung up on."""
    found, hung_up, began = list[Asked](), 0, time.perf_counter()

    async def edit(session: int) -> None:
        nonlocal hung_up
        choice = random.Random(session)
        headers = {"x-session-id": f"editor-{session}"}
        async with httpx.AsyncClient(base_url=options.url, timeout=60, headers=headers, trust_env=False) as client:
            asking: asyncio.Task[Asked] | None = None
            text, start, at = "", 0, GAP_CHARS
            while time.perf_counter() - began < options.seconds:
                if at >= GAP_CHARS:
                    text, at = choice.choice(texts), 0
                    start = choice.randrange(PREFIX_CHARS, len(text) - SUFFIX_CHARS - GAP_CHARS)
                at += 1
                if asking is not None and not asking.done():
                    asking.cancel()
                    hung_up += 1
                end = start + GAP_CHARS
                typed, after = text[start - PREFIX_CHARS : start + at], text[end : end + SUFFIX_CHARS]
                body = {"prompt": typed, "input_suffix": after}
                asking = asyncio.create_task(ask(client, session, body, began))
                asking.add_done_callback(lambda task: None if task.cancelled() else found.append(task.result()))
                await asyncio.sleep(KEY_SECONDS * choice.uniform(0.3, 1.7))
                if choice.random() < 0.25:
                    await asyncio.wait([asking], timeout=30)
            if asking is not None:
                await asyncio.wait([asking], timeout=60)

    editors = [asyncio.create_task(edit(session)) for session in range(options.editors)]
    await asyncio.sleep(WARM_SECONDS + (options.seconds - WARM_SECONDS) / 2)
    busiest = Counter(each.replica for each in found if each.replica).most_common(1)
    killed_at = time.perf_counter() - began
    if busiest:
        os.kill(int(busiest[0][0]), signal.SIGKILL)
    await asyncio.gather(*editors)
    return found, killed_at, hung_up


async def ask(client: httpx.AsyncClient, session: int, body: dict[str, str], began: float) -> Asked:
    """Ask for the rest of the line."""
    sent = time.perf_counter()
    status, texts, replica = 0, 0, ""
    try:
        reply = await client.post("/infill", json=body | {"stop": ["\n"], "n_predict": 24})
        status, replica = reply.status_code, reply.headers.get("x-replica", "")
        texts = reply.text.count('"content"') if status == 200 else 0
    except httpx.HTTPError:
        pass
    return Asked(sent - began, session, time.perf_counter() - sent, replica, status, texts)


def judged(found: list[Asked], killed_at: float) -> dict[str, Any]:
    """The figures."""
    parts = {
        "before": [each for each in found if WARM_SECONDS <= each.at < killed_at - 1],
        "loss": [each for each in found if killed_at - 1 <= each.at < killed_at + LOSS_SECONDS],
        "after": [each for each in found if each.at >= killed_at + LOSS_SECONDS],
    }
    return {
        "asked": len(found),
        "answered_once": sum(each.status == 200 and each.texts == 1 for each in found),
        "answered_twice": sum(each.texts > 1 for each in found),
        "refused": sum(each.status not in (0, 200) for each in found),
        "lost": sum(each.status == 0 for each in found),
        "affinity": {name: affinity(own) for name, own in parts.items()},
        "ms": {name: figures.spread([1000 * each.seconds for each in own]) for name, own in parts.items() if own},
    }


def affinity(found: list[Asked]) -> float | None:
    """Share of answers that came from the replica of the session's last answer."""
    stays, last = list[bool](), dict[int, str]()
    for each in sorted(found):
        if each.replica:
            if each.session in last:
                stays.append(last[each.session] == each.replica)
            last[each.session] = each.replica
    return round(sum(stays) / len(stays), 4) if stays else None


def memory_mb() -> list[int]:
    """Resident memory of each replica."""
    listed = subprocess.run(["ps", "-eo", "rss,args"], capture_output=True, text=True, check=True).stdout
    return sorted(int(line.split()[0]) // 1000 for line in listed.splitlines() if PROCESS in line)


def table(record: dict[str, Any]) -> Table:
    """The record for people."""
    shown = Table(title=f"{record['editors']} editors, a replica killed")
    for column in ("figure", "value"):
        shown.add_column(column)
    for name in ("asked", "answered_once", "answered_twice", "refused", "lost", "hung_up", "affinity", "replica_mb"):
        shown.add_row(name, str(record[name]))
    for name, own in record["ms"].items():
        shown.add_row(f"ms, {name}", json.dumps(own))
    return shown


if __name__ == "__main__":
    raise SystemExit(main())
