"""Simulate a user's keys: lines of a real file typed again, with corrected typos, jumps to other places and pauses."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["type", "delete", "jump"]

MEDIAN_SECONDS = 0.14
"""Median seconds between two keys; log-normal."""

INTERVAL_SIGMA = 0.45
"""Standard deviation of the logarithm of the time between keys."""

PAUSE_SECONDS = (0.4, 0.9)
"""Range of a pause for thought."""

PAUSE_SHARE, SLIP_SHARE, JUMP_SHARE, HURRY_SHARE = 0.03, 0.03, 0.25, 0.06
"""Probabilities of a pause and of a typo per key, of a jump per line, and of a key that waits for no answer."""

MAX_SLIP_CHARS = 3

_SLIP_CHARS = "etaoinsr_("


@dataclass(frozen=True, slots=True)
class Key:
    """One key: text[start:end] becomes `text`, and the cursor is after it."""

    kind: Kind
    start: int
    end: int
    text: str
    seconds: float
    """Seconds since the previous key."""
    hurried: bool = False
    """Whether the next key comes before the answer to this one."""

    @property
    def cursor(self) -> int:
        return self.start + len(self.text)

    def applied(self, text: str) -> str:
        """The document after this key."""
        return text[: self.start] + self.text + text[self.end :]


@dataclass(frozen=True, slots=True)
class Script:
    """A document with missing lines, and the keys that restore them."""

    text: str
    keys: tuple[Key, ...]

    def states(self) -> Iterator[tuple[Key, str]]:
        """Every key with the document after it."""
        text = self.text
        for key in self.keys:
            text = key.applied(text)
            yield key, text


def retyped(text: str, start: int, end: int, seed: int) -> Script:
    """A script that types text[start:end] again; the same seed gives the same keys, and the result is the text."""
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
    """A span of whole lines with at least `characters` characters, from the middle of the text or to its end."""
    starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
    third = len(starts) // 3
    start = random.Random(f"lines {seed}").choice(starts[third : 2 * third] or starts)
    end = text.find("\n", min(len(text), start + characters - 1))
    return start, len(text) if end < 0 else end + 1


def _slip(rng: random.Random, at: int) -> list[Key]:
    """Wrong characters, then as many backspaces."""
    count = rng.randint(1, MAX_SLIP_CHARS)
    wrong = [_typed(rng, at + i, rng.choice(_SLIP_CHARS)) for i in range(count)]
    return wrong + [Key("delete", at + i, at + i + 1, "", _interval(rng)) for i in reversed(range(count))]


def _look_elsewhere(rng: random.Random, text: str, start: int, at: int) -> list[Key]:
    """A jump to the end of a line above the typed ones, and back."""
    ends = [i for i, c in enumerate(text[:start]) if c == "\n"]
    places = [rng.choice(ends), at] if ends else []
    return [Key("jump", place, place, "", rng.uniform(*PAUSE_SECONDS)) for place in places]


def _typed(rng: random.Random, at: int, character: str) -> Key:
    hurried = rng.random() < HURRY_SHARE
    return Key("type", at, at, character, _interval(rng), hurried)


def _interval(rng: random.Random) -> float:
    seconds = MEDIAN_SECONDS * rng.lognormvariate(0, INTERVAL_SIGMA)
    return seconds + (rng.uniform(*PAUSE_SECONDS) if rng.random() < PAUSE_SHARE else 0.0)


def repeated(text: str, lines: int) -> str:
    """The text repeated to at least `lines` lines."""
    return text * -(-lines // max(1, text.count("\n")))


def moved(script: Script, before: str, after: str) -> Script:
    """The same keys in a document with different text around it."""
    by = len(before)
    keys = (Key(k.kind, k.start + by, k.end + by, k.text, k.seconds, k.hurried) for k in script.keys)
    return Script(before + script.text + after, tuple(keys))
