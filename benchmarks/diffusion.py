"""Measure denoising with full attention: `python benchmarks/diffusion.py [--model MODEL] [--before CHECKOUT] [--json]`.

A causal model stands in for a masked one: the weights have the right shape, so times are true and texts mean nothing,
unless MODEL is a masked diffusion model itself. It times a pass over the whole text, a step over the keys and values of
the text around the gap, and whole fills, and counts how often an exact step and one over stale keys agree on a slot's
likeliest token after some keys were typed. Beside them the same weights fill from left to right, with and without
n-gram lookup. It also times what a step takes beyond its pass, by rule; compares texts with those that the NumPy twin's
answers give; and times fills of the bundled masked model, beside those of an earlier checkout if one is named.
"""

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from mercury_engine.api import FillRequest
from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder
from mercury_engine.decoding.diffusion.layouts import TwoSided
from mercury_engine.decoding.options import AutoregressiveOptions, DiffusionOptions
from mercury_engine.errors import MercuryError
from mercury_engine.kv_cache.masked import TwoSidedCache, TwoSides
from mercury_engine.loading import ModelParts
from mercury_engine.models.network import MaskedAttention
from mercury_engine.models.row_answers import RowQuestion
from mercury_lab.engine import Engine, finished
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import GAP_KINDS, gaps, held_out_files
from on_all import options as options_of_all
from on_diffusion import earlier, steps, twins
from rich.table import Table

from mercury_lsp.completion.completer import FIRST_READ_TOKENS

CONTEXTS, SLOTS = (256, 512), (16, 32)

TYPED = (1, 4, 12)
"""Tokens typed since the whole text was read."""


def main() -> int:
    parser = options_of_all.parser("diffusion", __doc__)
    parser.add_argument("--rounds", type=int, default=8, help="of each measurement (default 8)")
    parser.add_argument("--texts", type=int, default=300, help="compared with the NumPy twin's (default 300)")
    parser.add_argument("--before", type=Path, help="a checkout of an earlier version with its .venv")
    options_of_all.add_corpus(parser)
    options_of_all.add_threads(parser, 2)
    parser.set_defaults(model="qwen2.5-coder-0.5b")
    options = parser.parse_args()
    try:
        causal = Engine.load(options.model, device="cpu", threads=options.threads)
        texts = [file.text for file in held_out_files(options.corpus)]
        record = {"model": causal.name, "threads": options.threads} | options_of_all.circumstances()
        record["steps"] = steps.steps(options.threads, options.rounds)
        record["left_to_right"] = left_to_right(causal, texts, options.rounds)
        masked = Engine(stand_in(causal.parts))
        assert isinstance(masked.decoder, DiffusionDecoder) and isinstance(masked.decoder.layout, TwoSided)
        cache = masked.decoder.layout.cache
        record["passes"] = passes(masked, cache, texts[0], options.rounds)
        record["agreement"] = agreement(masked, cache, texts, options.rounds)
        record["fills"] = masked_fills(masked, texts, options.rounds)
        record["texts"] = twins.compared(masked, gap_requests(options.corpus, options.texts))
        if options.before:
            requests = gap_requests(options.corpus, 4 * options.rounds)
            record["bundled"] = earlier.compared(options.before, requests, options.threads)
        suite.deliver(record, table(record), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


def stand_in(parts: ModelParts) -> ModelParts:
    """The parts of a masked model: the model's own, or a causal one's weights under full attention."""
    config = parts.reader.config
    if config.masked_attention is None:
        attention = MaskedAttention("stand-in", parts.tokenizer.start_id, shifted=True)
        parts.reader.config = replace(config, kind="masked", masked_attention=attention)
    return replace(parts, options=DiffusionOptions(), markers=None)


def step(engine: Engine, cache: TwoSidedCache, sides: TwoSides, slots: list[int]) -> Any:
    """What is told of the slots over stale keys."""
    return finished(cache.reread(sides, slots, question(engine, slots)), engine.reader)


def question(engine: Engine, slots: list[int]) -> RowQuestion:
    """Nothing is banned."""
    return RowQuestion.of([None] * len(slots), engine.reader.config.vocab_size)


def gap(engine: Engine, text: str, tokens: int) -> TwoSides:
    """A text with a gap, three quarters of its tokens before it."""
    ids = engine.tokenizer.encode(text * 8)[:tokens]
    return TwoSides(tuple(ids[: 3 * tokens // 4]), tuple(ids[3 * tokens // 4 :]))


def passes(engine: Engine, cache: TwoSidedCache, text: str, rounds: int) -> list[dict[str, float]]:
    """Milliseconds of a pass over the whole text, and of a step, which reads one key and the slots."""
    mask, rows = engine.reader.config.mask_id, []
    for context in CONTEXTS:
        for slots in SLOTS:
            sides, masks = gap(engine, text, context), [mask] * slots
            typed = TwoSides((*sides.before, sides.after[0]), sides.after)
            asked = question(engine, masks)
            read = partial(lambda s, m, q: finished(cache.read(s, m, q), engine.reader), sides, masks, asked)
            again = partial(step, engine, cache, typed, masks)
            whole, stale = median(steps.times(read, rounds // 2)), median(steps.times(again, rounds))
            rows.append({"context": context, "slots": slots, "whole_ms": whole, "step_ms": stale})
    return rows


def agreement(engine: Engine, cache: TwoSidedCache, texts: list[str], rounds: int) -> dict[str, float]:
    """The share of slots whose likeliest token a step over stale keys finds, by tokens typed since all was read."""
    mask, found = engine.reader.config.mask_id, dict[str, float]()
    for typed in TYPED:
        same = []
        for text in texts[:rounds]:
            sides = gap(engine, text, CONTEXTS[0])
            earlier = TwoSides(sides.before[:-typed], sides.after)
            masks = [mask] * SLOTS[0]
            asked = question(engine, masks)
            finished(cache.read(earlier, masks, asked), engine.reader)
            stale = step(engine, cache, sides, masks)
            exact = finished(cache.read(sides, masks, asked), engine.reader)
            same.append(float(np.mean(stale.token_W == exact.token_W)))
        found[str(typed)] = float(np.mean(same))
    return found


def requests(texts: list[str], rounds: int) -> list[FillRequest]:
    """Gaps at the ends of lines in the middle of files."""
    found = []
    for text in texts[:rounds]:
        middle = text.index("\n", len(text) // 2)
        found.append(FillRequest(text[max(0, middle - 1200) : middle], suffix=(text[middle : middle + 400],)))
    return found


def gap_requests(corpus: Path, count: int) -> list[FillRequest]:
    """Gaps of every kind in held-out files."""
    return [each.request for each in gaps(corpus, -(-count // len(GAP_KINDS)), 0)][:count]


def masked_fills(engine: Engine, texts: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """Fills whose text is read with them, whole or what is nearest; that was read before a few keys; and exact ones."""

    def varied(**options: Any) -> Engine:
        return engine.varied(DiffusionOptions(schedule="linear", **options))

    return {
        "whole text unread": fills(varied(), texts, rounds),
        "nearest text unread": fills(varied(), texts, rounds, unread_limit=FIRST_READ_TOKENS),
        "while typing": fills(varied(), texts, rounds, typed=4),
        "exact": fills(varied(exact=True), texts, 2),
    }


def fills(
    engine: Engine, texts: list[str], rounds: int, typed: int = 0, unread_limit: int | None = None
) -> dict[str, float]:
    """Median milliseconds and mean steps of fills of up to 16 slots; `typed`: characters since the text was read."""
    milliseconds, processor, counts = [], [], []
    for request in requests(texts, rounds):
        request = replace(request, effort="low", max_slots=16, multiline=True, unread_limit=unread_limit)
        if typed:
            engine.fill(replace(request, near=request.near[:-typed], max_steps=0))
        started, before = time.perf_counter(), time.process_time()
        fill = engine.fill(request)
        milliseconds.append(1e3 * (time.perf_counter() - started))
        processor.append(1e3 * (time.process_time() - before))
        counts.append(fill.steps)
    return {"ms": median(milliseconds), "processor_ms": median(processor), "steps": float(np.mean(counts))}


def left_to_right(engine: Engine, texts: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """The same fills by the causal decoder, one token a pass and with n-gram lookup."""
    ways = {"plain": AutoregressiveOptions(lookahead=0), "lookup": AutoregressiveOptions()}
    return {name: fills(engine.varied(options), texts, rounds) for name, options in ways.items()}


def table(record: dict[str, Any]) -> Table:
    made = Table("what", "ms", "steps")
    for each in record["steps"]:
        made.add_row(f"a step beyond its pass, {each['slots']} slots, {each['rule']}", f"{each['ms']:.2f}", "")
    for each in record["passes"]:
        made.add_row(f"whole text, {each['context']} tokens and {each['slots']} slots", f"{each['whole_ms']:.0f}", "")
        made.add_row(f"a step, {each['context']} tokens and {each['slots']} slots", f"{each['step_ms']:.0f}", "")
    for name, each in (record["fills"] | record["left_to_right"]).items():
        made.add_row(f"a fill, {name}", f"{each['ms']:.0f}", f"{each['steps']:.1f}")
    for typed, share in record["agreement"].items():
        made.add_row(f"slots that agree after {typed} tokens", f"{share:.1%}", "")
    made.add_row("texts of the NumPy twin", "{same} of {fills}".format(**record["texts"]), "")
    if "bundled" in record:
        each = record["bundled"]
        made.add_row(f"fills of the bundled model, before: {each['before_ms']:.0f}", f"{each['ms']:.0f}", "")
    return made


if __name__ == "__main__":
    raise SystemExit(main())
