"""Words and figures of the rules, from the files beside this one."""

from functools import cache
from importlib import resources


def read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


@cache
def listed(name: str) -> tuple[str, ...]:
    """The words of a list in `words.txt`."""
    lists = (line.split(":", 1) for line in read("words.txt").splitlines() if not line.startswith("#"))
    return tuple(dict(lists)[name].split("|"))
