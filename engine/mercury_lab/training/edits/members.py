"""Add a field to a class: declare it, pass it to the constructor, store it, and give it in calls."""

import random

from mercury_lab.training.edits.plan import EditPlan, applied, flipped, plan
from mercury_lab.training.edits.python_text import parses
from mercury_lab.training.edits.source import Source

MAX_FIELD_SITES = 10
REMOVAL_SHARE = 0.2


def sample_plan(source: Source, rng: random.Random) -> EditPlan | None:
    """A plan that adds one of the file's fields at all its sites, or sometimes removes it."""
    several = sorted(key for key, sites in source.facts.members.items() if 2 <= len(sites) <= MAX_FIELD_SITES)
    if not several:
        return None
    sites = sorted(source.facts.members[rng.choice(several)], key=lambda site: site.start)
    made = plan("field", source.text, sites)
    if made is None or (source.language == "python" and not parses(applied(source.text, sites))):
        return None
    return made if rng.random() < REMOVAL_SHARE else flipped(made)
