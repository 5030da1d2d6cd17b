"""Measure rewrites: `python benchmarks/rewrites.py --commits DIR [--limit N] [--threads N] [--json] [--out FILE]`.

DIR is what `python -m mercury_lab.training commits` wrote. In moments of its commits the engine rewrites the region
of the next step, or one that stays. Under `right` every token is the right one whatever the model thinks, so passes and
milliseconds are those of a model that makes the real edit; under `model` the model decides. A fill has read the
text around the region before; edits and region are new. Milliseconds under `again` are those of a second request;
`processor_ms` are summed over threads, without waiting for other programs.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from mercury_engine.api import MAX_REGION_CHARS, MAX_REGION_LINES, FillRequest, Rewrite, RewriteRequest
from mercury_engine.decoding.autoregressive.decoder import AutoregressiveDecoder
from mercury_engine.decoding.autoregressive.regions import following
from mercury_engine.decoding.autoregressive.rewriting import Rewriter
from mercury_engine.decoding.autoregressive.written_region import WrittenRegion
from mercury_engine.models.arrays import Array
from mercury_engine.prompt.layout import path_block
from mercury_lab.engine import Engine
from mercury_lab.evaluation import suite
from mercury_lab.training.commits.build import read_split
from mercury_lab.training.commits.examples import EditExample, edit_example
from mercury_lab.training.commits.moments import moments
from mercury_lab.training.window import window
from on_all import options as options_of_all
from rich.table import Table

KINDS = ("changed", "unchanged")

FIGURES = ("tokens", "passes", "ms", "again_ms", "processor_ms")


@dataclass(frozen=True, slots=True)
class Row:
    """A region, and the rewrites of it."""

    is_changed: bool
    tokens: int
    """Tokens of the right text."""
    right: Rewrite
    again: Rewrite
    processor_ms: float
    """Processor time of the right rewrite."""
    model: Rewrite
    is_exact: bool
    """The model's rewrite is the right one."""
    is_kept: bool
    """The model leaves the region as it is."""


class RightRewriter(Rewriter):
    """Writes a known text, whatever the reader thinks."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.reader, engine.decoder.rules.texts)
        self.ids: list[int] = []

    def kept(self, written: WrittenRegion, read_V: Array) -> float:
        """Whether the present text goes on in it."""
        token = self.choose(written, read_V)
        return float(written.expects(token) if token is not None else written.next >= written.region.drafted)

    def choose(self, written: WrittenRegion, read_V: Array) -> int | None:
        """The next token of the text."""
        done = len(written.ids)
        return self.ids[done] if done < len(self.ids) else None

    def firsts(self, written: WrittenRegion, read_V: Array) -> list[int | None]:
        """Only that one."""
        return [self.choose(written, read_V)]


def main() -> int:
    parser = options_of_all.parser("rewrites", __doc__)
    parser.add_argument("--commits", type=Path, required=True, help="folder that `training commits` wrote")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--give-up-below", type=float, default=0.2, help="least chance of the model's rewrites")
    options_of_all.add_sample(parser, 60, "regions")
    options_of_all.add_threads(parser, 2)
    options = parser.parse_args()
    engine = Engine.load(options.model, device="cpu", threads=options.threads)
    drawn = list(examples(options))
    rows = [measured(engine, each, options.give_up_below) for each in suite.progress(drawn, "rewriting")]
    record = {
        "figures": {kind: figures([row for row in rows if row.is_changed == (kind == "changed")]) for kind in KINDS},
        "model": engine.name,
        "edit_format": engine.edit_format,
        "threads": options.threads,
        "give_up_below": options.give_up_below,
        "seed": options.seed,
        **options_of_all.circumstances(),
    }
    suite.deliver(record, table(record), options)
    return 0


def examples(options: Any) -> Iterator[EditExample]:
    """Regions of commits, in an order that the seed decides, a changed and an unchanged one at most of each."""
    rng = random.Random(f"rewrites {options.seed}")
    edits = list(read_split(options.commits, options.split))
    rng.shuffle(edits)
    found = 0
    for edit in edits:
        for moment in moments(edit, rng, 1):
            example = edit_example(moment, rng, _fits)
            if example is not None and found < options.limit:
                found += 1
                yield example


def measured(engine: Engine, example: EditExample, give_up_below: float) -> Row:
    """Rewrite a region as it should be, twice, and as the model would."""
    text, (start, end) = example.text, example.region
    far, near, suffix = window(text, start, end)
    far = [path_block(example.path, example.language), *far]
    request = RewriteRequest(
        text[start:end], near, tuple(far), tuple(suffix), example.history, example.path, example.language
    )
    engine.cache.clear()
    engine.fill(FillRequest(near=near, far=tuple(far), suffix=tuple(suffix), max_slots=1))
    decoder = engine.decoder
    assert isinstance(decoder, AutoregressiveDecoder)
    own, right = decoder.rewriter, RightRewriter(engine)
    follows = following(request) if engine.parts.markers is None else ""
    right.ids = engine.tokenizer.encode(example.rewritten + follows)
    decoder.rewriter = right
    begun = process_time()
    first, seconds = engine.rewrite(request), process_time() - begun
    again = engine.rewrite(request)
    decoder.rewriter = own
    model = engine.rewrite(replace(request, give_up_below=give_up_below))
    return Row(
        not example.is_quiet,
        len(right.ids),
        first,
        again,
        1e3 * seconds,
        model,
        model.is_finished and model.text == example.rewritten,
        model.text == request.text,
    )


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Median and 90th percentile of what a right rewrite takes, and shares of the model's answers."""
    columns = {
        "tokens": [row.tokens for row in rows],
        "passes": [row.right.steps for row in rows],
        "ms": [1e3 * row.right.elapsed for row in rows],
        "again_ms": [1e3 * row.again.elapsed for row in rows],
        "processor_ms": [row.processor_ms for row in rows],
        "read": [row.right.tokens_read for row in rows],
    }
    return {
        "regions": len(rows),
        "right": {
            "finished": sum(row.right.is_finished for row in rows),
            **{name: spread(column) for name, column in columns.items()},
        },
        "model": {
            "exact": sum(row.is_exact for row in rows),
            "kept": sum(row.is_kept for row in rows),
            "finished": sum(row.model.is_finished for row in rows),
            "ms": spread([1e3 * row.model.elapsed for row in rows]),
        },
    }


def spread(values: Sequence[float]) -> list[float]:
    """Median and 90th percentile."""
    return [round(float(np.percentile(values, part)), 1) for part in (50, 90)]


def table(record: dict[str, Any]) -> Table:
    made = Table(title=f"{record['model']}, {record['threads']} threads: median and 90th percentile")
    for title in ("", "regions", *FIGURES, "exact", "kept"):
        made.add_column(title)
    for kind in KINDS:
        found = record["figures"][kind]
        taken = (" ".join(f"{value:,.0f}" for value in found["right"][name]) for name in FIGURES)
        made.add_row(kind, str(found["regions"]), *taken, str(found["model"]["exact"]), str(found["model"]["kept"]))
    return made


def _fits(example: EditExample) -> bool:
    region = example.region_text
    return bool(region) and region.count("\n") <= MAX_REGION_LINES and len(region) <= MAX_REGION_CHARS


if __name__ == "__main__":
    raise SystemExit(main())
