"""Lengths of gaps: `python -m mercury_lab.evaluation lengths --model NAME [--json]`.

Measures what each rule for a gap's length brings to a masked diffusion model: how often the length is right, and how
often the text of that length is the author's. The rules: the length of the author's text, which nobody knows; the
search of `decoding.diffusion.length` with the published constants and with constants refitted here; the length at
which the masks are surest; several lengths written, of which the likeliest text counts; and what the model does by
itself, end its text or search. Constants are fitted on every second file, and all rules are measured on either half.
`settings.json` takes the constants as `{"decoding": {"length_bias": [...]}}`.

Dimensions: S slots, V vocabulary.
"""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from mercury_engine.api import Control, Fill
from mercury_engine.decoding.diffusion import length
from mercury_engine.decoding.diffusion.canvas import Tokens
from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder
from mercury_engine.decoding.diffusion.layouts import FIRST_SLOTS
from mercury_engine.decoding.diffusion.length import LengthBias
from mercury_engine.decoding.diffusion.texts import GapText
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.errors import RequestError
from rich.table import Table

from mercury_lab.engine import Engine, finished
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import Gap, gaps
from mercury_lab.evaluation.judge import exact, fitted
from mercury_lab.intervals import wilson

KINDS = ("rest_of_line", "whole_line")

LONGEST = 24
"""Lengths that are tried, in slots; longer gaps are left out."""

NEAR = 4
"""Lengths so near to the true one are left out of the fit: there the masks are surer than usual."""

RATES = 0.01 * 1.35 ** np.arange(20)
"""Rates of decay that the fit tries, per slot."""

RANKED = (1, 2, 3, 4, 6, 8, 12, 16)
"""Lengths whose texts are compared by the mean log-probability of their tokens."""


@dataclass(frozen=True, slots=True)
class Written:
    """A text of the model for a gap."""

    tokens: int
    nats: float
    """Mean log-probability of its tokens."""
    steps: int
    right: bool


@dataclass(frozen=True, slots=True)
class MeasuredGap:
    """A gap's length, how sure its masks are at each length, and what the model writes."""

    length: int
    sure: tuple[float, ...]
    """Mean of the masks' highest probabilities, of one slot first."""
    at: Callable[[int], Written]
    """What it writes in so many slots."""
    own: Written
    """What it writes by its own rule."""


Outcome = tuple[int, Written, int]
"""A length, what is written there, and the passes of finding and writing it."""

Rule = Callable[[MeasuredGap], Outcome]


def measured(engine: Engine, fixed: Engine, gap: Gap) -> MeasuredGap | None:
    """The gap with one pass for each length; None for one that is too long. `fixed` writes texts of a given length."""
    begun = engine.decoder.contexts.cut(gap.request).spell
    length = len(engine.tokenizer.encode(begun + gap.truth))
    if not 0 < length <= LONGEST:
        return None
    masks = _masks(engine, gap)
    sure = tuple(masks(slots) for slots in range(1, LONGEST + 1))

    @cache
    def at(slots: int) -> Written:
        return _written(fixed.fill(replace(gap.request, max_slots=slots)), gap)

    return MeasuredGap(length, sure, at, _written(engine.fill(replace(gap.request, max_slots=LONGEST)), gap))


def _written(fill: Fill, gap: Gap) -> Written:
    nats = math.log(max(fill.confidence, 1e-300)) / max(1, fill.tokens)
    return Written(fill.tokens, nats, fill.steps, exact(fitted(fill.text, gap.request), gap.truth))


def _masks(engine: Engine, gap: Gap) -> Callable[[int], float]:
    """The mean of the masks' highest probabilities in so many slots of a fill that has not begun."""
    decoder = engine.decoder
    assert isinstance(decoder, DiffusionDecoder)
    layout, cut = decoder.layout, decoder.contexts.cut(gap.request)
    around = finished(layout.read(gap.request, cut.read), engine.reader)
    [written, *_] = decoder.rules.begin(gap.request, cut)
    mask = Tokens(engine.reader.config.mask_id)  # without an end, so that all slots are text
    text = GapText(written, mask, layout.ends, decoder.rules, gap.request, Control())

    def sure(slots: int) -> float:
        text.open(slots)
        [told] = finished(layout.told(around, [text], rule=None), engine.reader)
        return float(np.exp(told.logp_W).mean())

    return sure


def fitted_bias(found: Sequence[MeasuredGap]) -> LengthBias:
    """The constants of least squares: heights and floor for each pair of rates, then the best pair."""
    of = [(n, sure) for each in found for n, sure in enumerate(each.sure, 1) if abs(n - each.length) > NEAR]
    n_N, sure_N = np.array(of).T
    best, least = LengthBias(), np.inf
    for fast, slow in product(RATES, RATES):
        if fast > slow:
            terms = np.stack((np.exp(-fast * n_N), np.exp(-slow * n_N), np.ones_like(n_N)), 1)
            heights, residual, rank, _ = np.linalg.lstsq(terms, sure_N, rcond=None)
            if rank == 3 and min(heights) > 0 and residual[0] < least:
                least, best = residual[0], LengthBias(heights[0], fast, heights[1], slow, heights[2])
    return best


def searched(each: MeasuredGap, bias: LengthBias) -> tuple[int, int]:
    """The length that the search finds, and the number of lengths that it tries."""
    tried = list[int]()

    def sure(lengths: Sequence[int]) -> Generator[None, None, list[float]]:
        yield from ()
        tried.extend(lengths)
        return [each.sure[slots - 1] for slots in lengths]

    try:
        next(length.searched(sure, bias, FIRST_SLOTS, LONGEST))
    except StopIteration as end:
        return int(end.value), len(tried)
    raise AssertionError("the search asked for a pass")


def rules(bias: LengthBias) -> dict[str, Rule]:
    """The rules by name; `bias` has the refitted constants."""

    def at(each: MeasuredGap, slots: int, passes: int) -> Outcome:
        return slots, each.at(slots), passes + each.at(slots).steps

    def surest(each: MeasuredGap, usual: Callable[[int], float]) -> int:
        return 1 + int(np.argmax([sure / usual(n) for n, sure in enumerate(each.sure, 1)]))

    def likeliest(each: MeasuredGap) -> Outcome:
        slots = max(RANKED, key=lambda slots: each.at(slots).nats)
        return slots, each.at(slots), sum(each.at(slots).steps for slots in RANKED)

    return {
        "known length": lambda each: at(each, each.length, 0),
        "published constants": lambda each: at(each, *searched(each, LengthBias())),
        "refitted constants": lambda each: at(each, *searched(each, bias)),
        "surest": lambda each: at(each, surest(each, lambda _: 1.0), LONGEST),
        "surer than usual, all lengths": lambda each: at(each, surest(each, bias.at), LONGEST),
        "likeliest of eight lengths": likeliest,
        "the model's own": lambda each: (each.own.tokens, each.own, each.own.steps),
    }


def figures(found: Sequence[MeasuredGap], bias: LengthBias) -> dict[str, dict[str, object]]:
    """By rule: the share of right texts, with its interval, and of right lengths; and its passes.

    `won` and `lost` count the gaps that only this rule, or only the model's own, gets right.
    """
    made = dict[str, dict[str, object]]()
    for name, rule in rules(bias).items():
        chosen = [(each, *rule(each)) for each in found]
        off = np.array([abs(each.length - length) for each, length, _, _ in chosen])
        right = [written.right for _, _, written, _ in chosen]
        own = [each.own.right for each in found]
        made[name] = {
            "exact": float(np.mean(right)),
            "interval": wilson(sum(right), len(right)),
            "won": sum(mine and not theirs for mine, theirs in zip(right, own, strict=True)),
            "lost": sum(theirs and not mine for mine, theirs in zip(right, own, strict=True)),
            "length_right": float(np.mean(off == 0)),
            "within_two": float(np.mean(off <= 2)),
            "passes": float(np.mean([passes for _, _, _, passes in chosen])),
        }
    return made


def main(argv: list[str]) -> int:
    options = suite.parser("lengths", __doc__, 40, "gaps of each kind").parse_args(argv)
    engine = suite.load_engine(options)
    attention, decoding = engine.reader.config.masked_attention, engine.parts.options
    if not isinstance(decoding, DiffusionOptions) or (attention is not None and attention.block is not None):
        raise RequestError(
            f"{engine.name} needs no length before it writes; name a masked diffusion model with --model"
        )
    parts = replace(engine.parts, options=replace(decoding, searches_length=False))
    fixed = Engine(parts, engine.decoder.contexts)  # shares what was read
    cases = list(gaps(options.corpus, options.limit, options.seed, KINDS))
    paths = sorted({gap.path for gap in cases})
    taught, held_out = list[MeasuredGap](), list[MeasuredGap]()
    for gap in suite.progress(cases, "lengths"):
        if (each := measured(engine, fixed, gap)) is not None:
            (held_out if paths.index(gap.path) % 2 else taught).append(each)
    if not taught or not held_out:
        raise RequestError("too few gaps; raise --limit, or name a larger --corpus")
    bias = fitted_bias(taught)
    record = {
        "length_bias": [*astuple(bias)],
        "fitted_on": len(taught),
        "measured_on": len(held_out),
        "rules": figures(held_out, bias),
        "rules_where_fitted": figures(taught, bias),
        **suite.circumstances(engine, options),
    }
    suite.deliver(record, _table(record), options)
    return 0


def _table(record: suite.SuiteRecord) -> Table:
    table = Table("rule", "exact", "95 %", "won, lost", "length right", "within two", "passes")
    for name, row in record["rules"].items():
        low, high = row["interval"]
        shares = f"{row['length_right']:.1%}", f"{row['within_two']:.1%}", f"{row['passes']:.1f}"
        table.add_row(name, f"{row['exact']:.1%}", f"{low:.1%} to {high:.1%}", f"{row['won']}, {row['lost']}", *shares)
    return table
