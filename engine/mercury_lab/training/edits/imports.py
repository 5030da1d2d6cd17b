"""Use a name first and import it afterwards."""

import random
import re

from mercury_lab.training.edits.plan import EditPlan, Site, applied, flipped, plan
from mercury_lab.training.edits.python_text import parses
from mercury_lab.training.edits.source import Source

MAX_USES = 3


def sample_plan(source: Source, rng: random.Random) -> EditPlan | None:
    """A plan that adds the statements that use an imported name, and the import last."""
    candidates = list(source.facts.imports)
    rng.shuffle(candidates)
    for found in candidates:
        uses = _uses(source, found.name, found.removal)
        if not uses:
            continue
        made = plan("import", source.text, [*uses, found.removal], ordered=True)
        if made and (source.language != "python" or parses(applied(source.text, made.sites))):
            return flipped(made)
    return None


def _uses(source: Source, name: str, removal: Site) -> list[Site]:
    """The statements that use a name; none if they are too many or cannot be removed on their own."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    places = [m.start() for m in word.finditer(source.text) if not removal.start <= m.start() < removal.end]
    if not 1 <= len(places) <= 2 * MAX_USES:
        return []
    found: dict[Site, None] = {}
    for at in places:
        around = [s for s in source.facts.statements if s.start <= at < s.end]
        if not around:
            return []
        found[min(around, key=lambda s: s.end - s.start)] = None
    return list(found) if len(found) <= MAX_USES else []
