"""Fit the weights of reader and writer: `python -m mercury_lab.evaluation mixture --model DIR --corpus DIR`.

At random positions inside held-out gaps, with the true text settled up to there, it measures the mixture's probability
of the true next token (or of the end) over a grid of weights, and stores the best weights in settings.json.
"""

import argparse
import json
import random
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from mercury_engine.api import FillRequest
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.rule import DenoisingRule
from mercury_engine.denoising.verifier import Verifier
from mercury_engine.engine import Engine
from mercury_engine.errors import RequestError
from mercury_engine.models import weights
from mercury_engine.models.arrays import Array
from mercury_engine.models.backend import Backend
from mercury_engine.models.batching import finished

from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import Gap, gaps

WEIGHT_CANDIDATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)

CANVAS_SLOTS = 24


@dataclass(frozen=True, slots=True)
class ScoredPosition:
    """Both models' log probabilities for one slot; `ahead` is 0 if the writer saw all that the reader saw, else 1."""

    request: FillRequest
    canvas: Canvas
    written_V: Array
    read_V: Array
    ahead: int
    target: int


def scored_positions(engine: Engine, gap: Gap, rng: random.Random) -> list[ScoredPosition]:
    """One or two positions inside the gap; none if the gap does not fit the canvas."""
    tokenizer = engine.tokenizer
    cut = engine.context_reader.cut(gap.request)
    truth = [*tokenizer.encode(cut.spell + gap.truth), engine.reader.config.end_id]
    if len(truth) > CANVAS_SLOTS:
        return []
    settled = rng.randrange(len(truth))
    ids = [*truth[:settled], *[engine.reader.config.mask_id] * (CANVAS_SLOTS - settled)]
    canvas = Canvas(engine.denoiser.vocabulary, ids, settled, follows=gap.request.follows)
    around = engine.surroundings(gap.request, [*cut.read, *cut.known], settled)
    [written] = engine.denoiser.write([canvas], around)
    assert written is not None, "a model without a writer has nothing to weigh"
    reading = Verifier.behind(engine.reader, around)
    next_token = truth[settled]
    behind = [] if next_token == engine.reader.config.end_id else [next_token]
    [read] = finished(reading.verify([truth[:settled]], [behind]), engine.reader)
    found = [ScoredPosition(gap.request, canvas, written[0], read[0], 0, next_token)]
    if behind:
        canvas = Canvas(engine.denoiser.vocabulary, ids, settled + 1, follows=gap.request.follows)
        found.append(ScoredPosition(gap.request, canvas, written[1], read[1], 1, truth[settled + 1]))
    return found


def score(engine: Engine, found: list[ScoredPosition], rule: DenoisingRule) -> tuple[float, float]:
    """Mean nats and accuracy of the mixture under a rule."""
    engine.denoiser.rule = rule
    nats = hits = 0.0
    for position in found:
        mixed_V = engine.denoiser.mix(
            position.request, position.canvas, position.written_V, position.read_V, position.ahead
        )
        nats -= min(0.0, max(-20.0, float(mixed_V[position.target])))
        hits += int(mixed_V.argmax()) == position.target
    return nats / len(found), hits / len(found)


def _with(rule: DenoisingRule, field: str, share: float) -> DenoisingRule:
    changed: dict[str, Any] = {field: share}
    return replace(rule, **changed)


def fit_weights(engine: Engine, found: list[ScoredPosition]) -> tuple[DenoisingRule, dict[str, list[float]]]:
    """The best weights, fitted one at a time, and (nats, accuracy) of reader, writer and mixture."""
    first, later = [p for p in found if p.ahead == 0], [p for p in found if p.ahead == 1]
    rule = replace(engine.denoiser.rule, next_weight=0.4, later_weight=0.15)
    for field, where in (
        ("end_weight", first),
        ("next_weight", first),
        ("end_weight", first),
        ("later_weight", later),
    ):
        rule = min((_with(rule, field, share) for share in WEIGHT_CANDIDATES), key=lambda r: score(engine, where, r)[0])
    alone = replace(rule, next_weight=0.0, end_weight=0.0)
    figures = {"reader": alone, "writer": replace(rule, next_weight=1.0, end_weight=1.0), "mixture": rule}
    return rule, {name: list(score(engine, first, r)) for name, r in figures.items()}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mercury_lab.evaluation mixture", description=__doc__)
    parser.add_argument("--model", required=True, help="the model folder; its settings.json is written")
    parser.add_argument("--corpus", type=Path, required=True, help="held-out text on which no figure is reported")
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", choices=get_args(Backend), default="auto")
    options = parser.parse_args(argv)
    cases = list(gaps(options.corpus, options.limit, options.seed, ("rest_of_line", "random_span")))
    engine = Engine.load(options.model, backend=options.backend)
    if engine.writer is None:
        raise RequestError(f"{engine.name} has no writer, so there is nothing to weigh; name another --model")
    rng = random.Random(options.seed)
    found = [place for gap in suite.progress(cases, "reading") for place in scored_positions(engine, gap, rng)]
    if {place.ahead for place in found} != {0, 1}:
        raise RequestError("too few gaps fit the canvas; ask for more with --limit")
    rule, figures = fit_weights(engine, found)
    kept = {name: asdict(rule)[name] for name in ("next_weight", "later_weight", "end_weight")}
    suite.store_settings(engine.path, rule=weights.read_settings(engine.path).rule | kept)
    print(json.dumps({"places": len(found), "rule": kept, "nats_and_accuracy": figures}, indent=2))
    return 0
