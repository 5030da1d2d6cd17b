"""What a user types, key by key: lines of a real file again, with slips taken back, looks elsewhere and pauses."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["type", "delete", "jump"]

MEDIAN_SECONDS = 0.14
"""Between two keys; log-normal around it."""

INTERVAL_SIGMA = 0.45
"""Of the logarithm of the time between keys."""

PAUSE_SECONDS = (0.4, 0.9)
"""Of thinking."""

PAUSE_SHARE, SLIP_SHARE, JUMP_SHARE, HURRY_SHARE = 0.03, 0.03, 0.25, 0.06
"""Chances of a pause and of a slip per key, of a look elsewhere per line, of a key that waits for no answer."""

MAX_SLIP_CHARS = 3

_SLIP_CHARS = "etaoinsr_("


@dataclass(frozen=True, slots=True)
class Key:
    """One key: text[start:end] becomes `text`, and the cursor stands behind it."""

    kind: Kind
    start: int
    end: int
    text: str
    seconds: float
    """Since the key before."""
    hurried: bool = False
    """The next key comes before the answer to this one."""

    @property
    def cursor(self) -> int:
        return self.start + len(self.text)

    def applied(self, text: str) -> str:
        """The document after this key."""
        return text[: self.start] + self.text + text[self.end :]


@dataclass(frozen=True, slots=True)
class Script:
    """A document in which lines are missing, and the keys that put them back."""

    text: str
    keys: tuple[Key, ...]

    def states(self) -> Iterator[tuple[Key, str]]:
        """Every key with the document behind it."""
        text = self.text
        for key in self.keys:
            text = key.applied(text)
            yield key, text


def retyped(text: str, start: int, end: int, seed: int) -> Script:
    """Type text[start:end] again where it stood; same seed, same keys. What is typed in the end is the text."""
    rng = random.Random(f"{seed}/{start}/{end}")
    keys: list[Key] = []
    at = start
    while at < end:
        if rng.random() < SLIP_SHARE:
            keys += _slip(rng, at)
        keys.append(_typed(rng, at, text[at]))
        at += 1
        if text[at - 1] == "\n" and rng.random() < JUMP_SHARE:
            keys += _look_elsewhere(rng, text, start, at)
    return Script(text[:start] + text[end:], tuple(keys))


def lines_to_type(text: str, characters: int, seed: int) -> tuple[int, int]:
    """A span of whole lines of at least so many characters from the middle of the text, or to its end."""
    starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
    third = len(starts) // 3
    start = random.Random(f"lines {seed}").choice(starts[third : 2 * third] or starts)
    end = text.find("\n", min(len(text), start + characters - 1))
    return start, len(text) if end < 0 else end + 1


def _slip(rng: random.Random, at: int) -> list[Key]:
    """Wrong characters, and as many backspaces."""
    count = rng.randint(1, MAX_SLIP_CHARS)
    wrong = [_typed(rng, at + i, rng.choice(_SLIP_CHARS)) for i in range(count)]
    return wrong + [Key("delete", at + i, at + i + 1, "", _interval(rng)) for i in reversed(range(count))]


def _look_elsewhere(rng: random.Random, text: str, start: int, at: int) -> list[Key]:
    """The cursor goes to the end of some line before the typed ones, and comes back."""
    ends = [i for i, c in enumerate(text[:start]) if c == "\n"]
    places = [rng.choice(ends), at] if ends else []
    return [Key("jump", place, place, "", rng.uniform(*PAUSE_SECONDS)) for place in places]


def _typed(rng: random.Random, at: int, character: str) -> Key:
    hurried = rng.random() < HURRY_SHARE
    return Key("type", at, at, character, _interval(rng), hurried)


def _interval(rng: random.Random) -> float:
    seconds = MEDIAN_SECONDS * rng.lognormvariate(0, INTERVAL_SIGMA)
    return seconds + (rng.uniform(*PAUSE_SECONDS) if rng.random() < PAUSE_SHARE else 0.0)


def repeated(text: str, lines: int) -> tuple[str, int]:
    """The text over and over until it has so many lines, and where its middle copy begins."""
    own = text.count("\n")
    copies = max(1, lines // own)
    return text * copies, (copies // 2) * len(text)


def moved(script: Script, before: str, after: str) -> Script:
    """The same keys in a document with other text around it."""
    by = len(before)
    keys = (Key(k.kind, k.start + by, k.end + by, k.text, k.seconds, k.hurried) for k in script.keys)
    return Script(before + script.text + after, tuple(keys))
