"""Make a function asynchronous, with its calls and the functions around them."""

import random

from mercury_lab.training.edits.facts import Call, Function
from mercury_lab.training.edits.plan import EditPlan, Site, flipped, plan
from mercury_lab.training.edits.source import Source

_LANGUAGES = ("python", "javascript", "typescript")
_FIXED = frozenset(("__init__", "constructor", "__repr__", "__str__", "__len__", "__eq__", "__getattr__"))


def sample_plan(source: Source, rng: random.Random) -> EditPlan | None:
    """A plan that makes one function asynchronous, or restores one that is."""
    if source.language not in _LANGUAGES:
        return None
    functions = [f for f in source.facts.functions if f.name and f.name not in _FIXED and source.facts.only(f.name)]
    functions = [f for f in functions if _calls(source, f)]
    if not functions:
        return None
    function = rng.choice(functions)
    return (_from_real if function.is_async else _synthetic)(source, function, _calls(source, function))


def _calls(source: Source, function: Function) -> list[Call]:
    """The function's calls inside named functions; none if there are more than 8."""
    named = []
    for call in source.facts.calls_of(function.name):
        around = source.facts.enclosing(call.start)
        if function.may_be_meant(call) and around and around.name and around.name not in _FIXED and around != function:
            named.append(call)
    return named if len(named) <= 8 else []


def _synthetic(source: Source, function: Function, calls: list[Call]) -> EditPlan | None:
    if any(call.awaited_at >= 0 for call in calls):
        return None
    sites = [Site(function.marker, function.marker, "async ")]
    for call in calls:
        around = source.facts.enclosing(call.start)
        assert around is not None
        if call.is_base:
            sites.append(Site(call.start, call.end, f"(await {source.text[call.start : call.end]})"))
        else:
            sites.append(Site(call.start, call.start, "await "))
        if not around.is_async:
            sites.append(Site(around.marker, around.marker, "async "))
    return plan("async", source.text, sites)


def _from_real(source: Source, function: Function, calls: list[Call]) -> EditPlan | None:
    """A plan on the real text that removes `async` and `await`, flipped, so that the edit adds them."""
    awaited = [call for call in calls if call.awaited_at >= 0]
    if not awaited or not source.text.startswith("async ", function.marker):
        return None
    sites = [Site(function.marker, function.marker + len("async "), "")]
    sites += [Site(call.awaited_at, call.start, "") for call in awaited]
    made = plan("async", source.text, sites)
    return flipped(made) if made else None
