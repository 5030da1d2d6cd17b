"""Measure generation: `python benchmarks/generation.py [--model MODEL] [--rounds N] [--json] [--out FILE]`.

Beginnings of held-out files are continued greedily, at one and at four streams: tokens a second once the prompts are
read, tokens read a second before, and tokens of a forward pass. A model that is a GGUF file is also run by llama.cpp
(`pip install xllamacpp`) with as many threads, in turns. Compare the ratio, on an idle machine.
"""

import asyncio
import itertools
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from mercury_engine.api import GenerateRequest, Generation
from mercury_engine.errors import MercuryError
from mercury_engine.models.gguf.file import gguf_of
from mercury_lab.engine import Engine
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import held_out_files
from on_all import options as options_of_all
from rich.table import Table

STREAMS = (1, 4)

PROMPT_CHARS = 1_500

PROMPTS, TOKENS = 8, 128

CONTEXT_TOKENS = 2_048
"""Of each of llama.cpp's streams."""


class Counts(NamedTuple):
    """What several generations at once have done."""

    read: int
    written: int
    steps: int


Way = Callable[[Sequence[str], int], Counts]
"""Continues prompts at the same time with at most so many tokens each."""


def main() -> int:
    parser = options_of_all.parser("generation", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds over all prompts (default 3)")
    options_of_all.add_corpus(parser)
    options_of_all.add_threads(parser, 2)
    options = parser.parse_args()
    try:
        engine = Engine.load(options.model, device="cpu", threads=options.threads)
        ways: dict[str, Way] = {"ours": lambda prompts, tokens: ours(engine, prompts, tokens)}
        gguf = gguf_of(engine.path)
        if gguf is not None:
            try:
                ways["llama_cpp"] = llama_cpp(gguf, options.threads)
            except ImportError:
                print("llama.cpp is left out: pip install xllamacpp", file=sys.stderr)
        texts = [file.text for file in held_out_files(options.corpus) if len(file.text) > PROMPT_CHARS]
        record = {"model": engine.name, "threads": options.threads} | options_of_all.circumstances()
        record["rows"] = measured(ways, texts, options.rounds)
        suite.deliver(record, table(record), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


def measured(ways: dict[str, Way], texts: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """A row for each way and number of streams; every round has beginnings that nobody has read."""
    rows = []
    starts = itertools.count()
    for streams in STREAMS:
        runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
        for _ in range(rounds * PROMPTS // streams):
            prompts = [_prompt(texts, next(starts)) for _ in range(streams)]
            for name, way in ways.items():
                runs[name].append(_timed(way, prompts))
        for name, found in runs.items():
            reading, writing, steps = (round(median(each), 2) for each in zip(*found, strict=True))
            rows.append({"way": name, "streams": streams, "read_per_s": reading, "written_per_s": writing})
            rows[-1] |= {"tokens_a_pass": steps} if name == "ours" else {}
    return rows


def _prompt(texts: Sequence[str], number: int) -> str:
    text = texts[number % len(texts)]
    return f"# {number}\n{text[:PROMPT_CHARS]}"


def _timed(way: Way, prompts: Sequence[str]) -> tuple[float, float, float]:
    """Tokens read and written a second, and written in a pass of their stream."""
    began = time.perf_counter()
    read = way(prompts, 1)
    between = time.perf_counter()
    written = way(prompts, TOKENS)
    seconds = time.perf_counter() - between
    return read.read / (between - began), written.written / seconds, written.written / max(1, written.steps)


def ours(engine: Engine, prompts: Sequence[str], tokens: int) -> Counts:
    """The engine, as the HTTP API uses it."""

    async def answers() -> list[Generation]:
        found = await asyncio.gather(*(engine.answer(GenerateRequest(each, max_tokens=tokens)) for each in prompts))
        return [each for each in found if isinstance(each, Generation)]

    found = asyncio.run(answers())
    return Counts(
        sum(each.prompt_tokens - each.cached_tokens for each in found),
        sum(each.tokens for each in found),
        sum(each.steps for each in found),
    )


def llama_cpp(file: Path, threads: int) -> Way:
    """llama.cpp's server in this process, with its prompt cache. Raises ImportError if the binding is missing."""
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path, options.n_gpu_layers, options.verbosity = str(file), 0, -1
    options.n_parallel, options.n_ctx = max(STREAMS), CONTEXT_TOKENS * max(STREAMS)
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(options)
    pool = ThreadPoolExecutor(max(STREAMS))

    def run(prompts: Sequence[str], tokens: int) -> Counts:
        asked = [{"prompt": each, "max_tokens": tokens, "temperature": 0.0, "cache_prompt": True} for each in prompts]
        found = [*pool.map(server.handle_completions, asked)]
        read = sum(int(each.get("timings", {}).get("prompt_n", 0)) for each in found)
        return Counts(read, sum(int(each["usage"]["completion_tokens"]) for each in found), 0)

    return run


def table(record: dict[str, Any]) -> Table:
    """A row for each way and number of streams."""
    made = Table(title=f"{record['model']}, {record['threads']} threads; tokens a second, medians")
    for column in ("", "streams", "read", "written", "tokens a pass"):
        made.add_column(column, justify="left" if not column else "right")
    for row in record["rows"]:
        figures = (row["read_per_s"], row["written_per_s"], row.get("tokens_a_pass", "-"))
        made.add_row(row["way"], str(row["streams"]), *map(str, figures))
    return made


if __name__ == "__main__":
    sys.exit(main())
