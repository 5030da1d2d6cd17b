"""Figures of a ranking: recall of candidates, places right, and precision and recall by gate."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mercury_engine.places.candidates import Kind
from mercury_engine.places.head import LikelyPlace

from mercury_lab.intervals import wilson
from mercury_lab.training.ranking.cases import Case, covers

GATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def candidate_figures(found: Sequence[Case]) -> dict[str, Any]:
    """How often any candidate covers the next step or one that is left, by kind too; shares of moments with a step."""
    left = [case for case in found if not case.moment.is_quiet]
    kinds = Counter(
        kind.name
        for case in left
        for kind in Kind
        if any(is_next and each.kinds & kind for each, is_next in zip(case.candidates, case.is_next, strict=True))
    )
    return {
        "moments": len(found),
        "with_a_step_left": len(left),
        "candidates": round(sum(len(case.candidates) for case in found) / max(1, len(found)), 1),
        "next_covered": _share(sum(bool(case.is_next.any()) for case in left), len(left)),
        "any_covered": _share(sum(bool(case.is_right.any()) for case in left), len(left)),
        "next_covered_by_kind": {name: _share(count, len(left)) for name, count in sorted(kinds.items()) if name},
    }


def place_figures(found: Sequence[Case], ranked: Sequence[Sequence[LikelyPlace]]) -> dict[str, Any]:
    """First and first three places right at any probability, and offers by gate; `ranked` has best ones first."""
    pairs = [(case, places) for case, places in zip(found, ranked, strict=True)]
    left = [(case, places) for case, places in pairs if not case.moment.is_quiet]
    return {
        "first_is_left": _share(sum(is_right(case, places[:1]) for case, places in left), len(left)),
        "first_three_have_one_left": _share(sum(is_right(case, places[:3]) for case, places in left), len(left)),
        "first_is_next": _share(sum(is_right(case, places[:1], 1) for case, places in left), len(left)),
        "first_three_have_next": _share(sum(is_right(case, places[:3], 1) for case, places in left), len(left)),
        "by_gate": {str(gate): _gated(pairs, gate) for gate in GATES},
    }


def is_right(case: Case, places: Sequence[LikelyPlace], steps: int | None = None) -> bool:
    """Whether a place covers one of the steps that are left, or of the first `steps` of them."""
    wanted = case.moment.open[:steps]
    return any(covers(p.candidate, step.document, step.start, step.end) for p in places for step in wanted)


def _gated(pairs: Sequence[tuple[Case, Sequence[LikelyPlace]]], gate: float) -> dict[str, Any]:
    shown = [(case, places[:1]) for case, places in pairs if places and places[0].probability >= gate]
    right = sum(is_right(case, places) for case, places in shown)
    left = sum(not case.moment.is_quiet for case, _ in pairs)
    loud = sum(case.moment.is_quiet for case, _ in shown)
    return {
        "shown": len(shown),
        "right": right,
        "precision": _share(right, len(shown)),
        "recall": _share(right, left),
        "quiet": _share(len(pairs) - left - loud, len(pairs) - left),
    }


def _share(count: int, total: int) -> list[float] | None:
    """The share and its 95 % interval; None of nothing."""
    interval = wilson(count, total)
    return None if interval is None else [round(value, 3) for value in (count / total, *interval)]
