"""Changes that a user might have made in held-out files, and the other sites where they are right."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from on_edits.source import Name, Source, contains

LEAST, MOST = 3, 12
"""Allowed numbers of occurrences of a renamed name."""


@dataclass(frozen=True, slots=True)
class Swap:
    """The replacement of one text by another."""

    start: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Case:
    """A text, the user's changes in order, and the swaps that would be right next."""

    kind: str
    language: str
    name: str
    text: str
    swaps: tuple[Swap, ...]
    """The user's swaps, with offsets of `text`, from top to bottom."""
    right: frozenset[int]
    """The right next swaps, with offsets after all `swaps`; empty if nothing is left to change."""

    @property
    def made(self) -> list[Swap]:
        """The swaps, each with offsets of the text after the swaps before it."""
        moved, shift = [], 0
        for swap in self.swaps:
            moved.append(Swap(swap.start + shift, swap.old, swap.new))
            shift += len(swap.new) - len(swap.old)
        return moved


def cases(sources: Sequence[Source], each: int, rng: random.Random) -> list[Case]:
    """`each` cases of every kind, at most one per file and kind."""
    found = []
    for kind, make in CASE_KINDS.items():
        of_files = (list(make(kind, source, rng)) for source in rng.sample(sources, len(sources)))
        found += [rng.choice(of_file) for of_file in of_files if of_file][:each]
    return found


def local_names(kind: str, source: Source, rng: random.Random) -> Iterator[Case]:
    """Rename a parameter or variable of a function."""
    functions = source.functions()
    for function in functions:
        inner = [each for each in functions if each != function and contains(function, each)]
        here, itself = source.names_in(function), function.child_by_field_name("name")
        taken = {name.word for name in here}
        for word, names in _by_word(here):
            plain = [name for name in names if name.is_plain]
            again = any(name.is_bound and contains(each, name.node) for name in plain for each in inner)
            unclear = any(name.is_ambiguous or name.node == itself for name in names)
            if plain and plain[0].is_bound and not again and not unclear and word not in ("self", "cls"):
                yield from _renamed(kind, source, plain, taken, rng)


def global_names(kind: str, source: Source, rng: random.Random) -> Iterator[Case]:
    """Rename a function or class of the file that is bound nowhere else."""
    for _, names in _by_word(source.names):
        parent = names[0].node.parent
        if parent is None or parent.parent != source.root or parent.child_by_field_name("name") != names[0].node:
            continue
        if all(name.is_plain and not name.is_bound for name in names):
            yield from _renamed(kind, source, names, set(source.words), rng)


def members(kind: str, source: Source, rng: random.Random) -> Iterator[Case]:
    """Rename an attribute that only one Python class has."""
    for body in source.nodes("class_definition"):
        here = source.names_in(body)
        taken = {name.word for name in here}
        for _, names in _by_word(here):
            first = names[0].node.parent
            is_assigned = first is not None and first.parent is not None and first.parent.type == "assignment"
            if is_assigned and _all_own(source, names):
                yield from _renamed(kind, source, names, taken, rng)


def selves(kind: str, source: Source, rng: random.Random) -> Iterator[Case]:
    """Add a `self.` that was forgotten in a method."""
    for function in source.functions() if source.language == "python" else ():
        for _, names in _by_word(source.names_in(function)):
            if 2 <= len(names) <= MOST and _all_own(source, names):
                yield _lacking(kind, source, [name.start - len("self.") for name in names], "self.", rng)


def arguments(kind: str, source: Source, rng: random.Random) -> Iterator[Case]:
    """Add the last argument to calls that lack it."""
    ends: dict[tuple[str, str], list[int]] = {}
    for node in [*source.nodes("argument_list"), *source.nodes("arguments")]:
        callee = node.parent.child_by_field_name("function") if node.parent is not None else None
        given = [each for each in node.children if each.is_named]
        if callee is not None and len(given) > 1 and "\n" not in source.text_of(node):
            last = source.text_of(node).encode()[given[-2].end_byte - node.start_byte : -1].decode()
            ends.setdefault((source.text_of(callee), last), []).append(source.offset(given[-2].end_byte))
    for (_, last), starts in ends.items():
        apart = all(later - earlier > len(last) for earlier, later in pairwise(sorted(starts)))
        if LEAST <= len(starts) <= MOST and apart and len(last) < 40:
            yield _lacking(kind, source, sorted(starts), last, rng)


def switched(kind: str, source: Source, rng: random.Random) -> Iterator[Case]:
    """Replace one argument by another variable of the function; nothing else should change."""
    yield from _one_offs(kind, source, rng, is_known=True)


def unseen(kind: str, source: Source, rng: random.Random) -> Iterator[Case]:
    """Replace one argument by a name that is new to the function; nothing else should change."""
    yield from _one_offs(kind, source, rng, is_known=False)


def types(kind: str, source: Source, rng: random.Random) -> Iterator[Case]:
    """Change one type; nothing else should change."""
    above = [*source.nodes("type"), *source.nodes("type_identifier")]
    found = [name for node in above for name in source.names_in(node)]
    words = sorted({name.word for name in found})
    for name in found:
        if len(words) > 1:
            swap = Swap(name.start, name.word, rng.choice([word for word in words if word != name.word]))
            yield Case(kind, source.language, source.name, source.text, (swap,), frozenset())


CASE_KINDS: dict[str, Callable[[str, Source, random.Random], Iterator[Case]]] = {
    "local": local_names,
    "global": global_names,
    "member": members,
    "self": selves,
    "argument": arguments,
    "switched": switched,
    "unseen": unseen,
    "type": types,
}


def _one_offs(kind: str, source: Source, rng: random.Random, is_known: bool) -> Iterator[Case]:
    for function in source.functions():
        plain = [name for name in source.names_in(function) if name.is_plain]
        bound = {name.word for name in plain if name.is_bound} - {"self", "cls"}
        words = sorted(bound if is_known else set(source.words) - {name.word for name in plain})
        for name in plain:
            others = [word for word in words if word != name.word]
            is_often = sum(each.word == name.word for each in plain) >= LEAST
            if name.is_argument and name.word in bound and is_often and others:
                swap = Swap(name.start, name.word, rng.choice(others))
                yield Case(kind, source.language, source.name, source.text, (swap,), frozenset())


def _all_own(source: Source, names: Sequence[Name]) -> bool:
    return all(source.text_of(name.node.parent) == f"self.{name.word}" for name in names)


def _renamed(kind: str, source: Source, names: Sequence[Name], taken: set[str], rng: random.Random) -> Iterator[Case]:
    word = names[0].word
    if LEAST <= len(names) <= MOST and len(word) > 1:
        new = _other(word, source, taken, rng)
        yield _case(kind, source, source.text, [Swap(name.start, word, new) for name in names], rng)


def _lacking(kind: str, source: Source, starts: Sequence[int], text: str, rng: random.Random) -> Case:
    """The user inserts a text that the original file has, and this one lacks so far."""
    bare = source.text
    for start in reversed(starts):
        bare = bare[:start] + bare[start + len(text) :]
    swaps = [Swap(start - number * len(text), "", text) for number, start in enumerate(starts)]
    return _case(kind, source, bare, swaps, rng)


def _case(kind: str, source: Source, text: str, swaps: Sequence[Swap], rng: random.Random) -> Case:
    """A case in which the user has made one, some or all of the swaps."""
    done = rng.choice([1, rng.randint(1, len(swaps) - 1), len(swaps)])
    shift = sum(len(swap.new) - len(swap.old) for swap in swaps[:done])
    right = frozenset(swap.start + shift for swap in swaps[done:])
    return Case(kind, source.language, source.name, text, tuple(swaps[:done]), right)


def _other(word: str, source: Source, taken: set[str], rng: random.Random) -> str:
    """A plausible new name: another of the file, or the old one with a part added or removed."""
    capital = word[0].upper() + word[1:]
    parts = [f"{word}_value", f"new_{word}"] if "_" in word or word.islower() else [f"{word}Value", f"new{capital}"]
    parts += [f"{word}s", *re.findall("[a-z]{3,}", word)]
    alike = [each for each in source.words if each.islower() == word.islower() and len(each) > 2]
    chosen = alike if rng.random() < 0.5 else parts
    free = [each for each in chosen if each not in taken and each.isidentifier()]
    return rng.choice(free) if free else f"{word}2"


def _by_word(names: Sequence[Name]) -> Iterator[tuple[str, list[Name]]]:
    for word, same in groupby(sorted(names, key=lambda name: name.word), lambda name: name.word):
        yield word, list(same)
