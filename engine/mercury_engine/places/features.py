"""Features of candidate places, for the head: of the situation, of each candidate, and of candidates compared."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mercury_engine.places.candidates import Candidate, Names
from mercury_engine.places.context import CONTEXT_FEATURES, Occurrences, context_features
from mercury_engine.places.describing import GLANCE_FEATURES, LINES_FEATURES, NAME_WEIGHTS, Describer
from mercury_engine.places.likeness import REGION_FEATURES, lines_near, region_shares
from mercury_engine.places.situation import Situation

Array = npt.NDArray[np.float32]

COMPARED_FEATURES = (*NAME_WEIGHTS, "weight", "like_removed", "like_inserted", *REGION_FEATURES)
"""What candidates are compared in: each one's share of the greatest value, and for some whether it has that value.
A candidate's names count together with those around it, and `weight` is that of the names on its own line."""

BEST_FEATURES = ("weight", "like_removed", "like_inserted")

FEATURES = (
    *CONTEXT_FEATURES,
    *GLANCE_FEATURES,
    *REGION_FEATURES,
    *(f"{name}_of_most" for name in COMPARED_FEATURES),
    *(f"is_most_{name}" for name in BEST_FEATURES),
    "nearer",
)

_FROM_LAST = GLANCE_FEATURES.index("from_last")
_LIKES = [GLANCE_FEATURES.index(name) for name in ("like_removed", "like_inserted")]
_BEST = [COMPARED_FEATURES.index(name) for name in BEST_FEATURES]
_WEIGHT_OF_NAMES = np.array([2, 2, 2, 1], np.float32)
"""Names that a change took away, brought or defines, and names that it kept."""


def features(situation: Situation, places: Sequence[Candidate], names: Names, found: Occurrences) -> Array:
    """One row per candidate, which are in order, with the columns FEATURES; float32 [C, F]."""
    if not places:
        return np.empty((0, len(FEATURES)), np.float32)
    context = np.array(context_features(situation, len(places), names, found), np.float32)
    near = lines_near(situation, places)
    describe = Describer(situation, names, found, near)
    glances = np.array([describe(place) for place in places], np.float32)
    glances[:, : len(LINES_FEATURES)] = np.log1p(glances[:, : len(LINES_FEATURES)])
    regions = region_shares(situation, places, near)
    everywhere = np.broadcast_to(context, (len(places), len(context)))
    return np.concatenate([everywhere, glances, regions, *_compared(glances, regions)], 1)


def _compared(glances: Array, regions: Array) -> tuple[Array, Array, Array]:
    """The shares of COMPARED_FEATURES, the marks of BEST_FEATURES, and how much nearer the nearest candidate is."""
    count, first = len(NAME_WEIGHTS), GLANCE_FEATURES.index(NAME_WEIGHTS[0])
    here, around = glances[:, first : first + count], glances[:, first + count : first + 2 * count]
    weight = here @ _WEIGHT_OF_NAMES
    values = np.concatenate([here + around, weight[:, None], glances[:, _LIKES], regions], 1)
    most = values.max(0)
    best = (values[:, _BEST] >= most[_BEST]) & (most[_BEST] > 0)
    from_last = glances[:, _FROM_LAST, None]
    return values / np.maximum(most, 1e-6), best.astype(np.float32), from_last.min(0) - from_last
