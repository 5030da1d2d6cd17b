"""Wrap every call of a function in another call."""

import random

from mercury_lab.training.edits.facts import Call
from mercury_lab.training.edits.plan import EditPlan, Site, flipped, plan
from mercury_lab.training.edits.source import Source

_WRAPPERS = {
    "python": ("str", "list", "tuple", "sorted", "Path", "cached", "validate", "normalize"),
    "javascript": ("String", "Number", "Object.freeze", "Promise.resolve", "structuredClone"),
    "typescript": ("String", "Number", "Object.freeze", "Promise.resolve", "structuredClone"),
    "go": ("string", "strings.TrimSpace", "wrapError", "must"),
    "rust": ("Some", "Ok", "Box::new", "Arc::new"),
    "java": ("Optional.of", "String.valueOf", "Objects.requireNonNull"),
    "c": ("checked", "CHECK"),
    "cpp": ("std::move", "checked", "std::make_optional"),
    "lua": ("tostring", "assert", "tonumber"),
}

MAX_CALL_CHARS = 120


def sample_plan(source: Source, rng: random.Random) -> EditPlan | None:
    """A plan that wraps the calls of one function whose values are used, or its inverse."""
    groups: dict[tuple[str, str], list[Call]] = {}
    for call in source.facts.calls:
        if (
            not call.is_statement
            and not call.is_base
            and call.awaited_at < 0
            and call.end - call.start < MAX_CALL_CHARS
        ):
            groups.setdefault((call.receiver, call.name), []).append(call)
    several = sorted(key for key, found in groups.items() if 2 <= len(found) <= 10)
    if not several or source.language not in _WRAPPERS:
        return None
    receiver, name = rng.choice(several)
    wrapper = rng.choice([w for w in _WRAPPERS[source.language] if w != name])
    spans = [(call.start, call.end) for call in groups[receiver, name]]
    sites = [Site(*span, f"{wrapper}({source.text[slice(*span)]})") for span in spans]
    made = plan("wrap", source.text, sites)
    return flipped(made) if made and rng.random() < 0.3 else made
