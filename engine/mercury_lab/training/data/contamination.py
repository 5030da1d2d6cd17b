"""Find text of the repositories kept for evaluation in training files (contamination).

A training file is contaminated if it equals a held-out file except for white space, or if it shares too many 13-grams
of words with held-out files, the measure of GPT-3 (arXiv 2005.14165, appendix C). Words are names, keywords and the
words of comments, in lower case; numbers and punctuation are ignored, so that tables do not look alike. As in GPT-3, a
13-gram that occurs in more than MAX_FILES_PER_GRAM files is common text (licence headers, idioms) and is ignored.
Adjacent shared 13-grams form a run. A file shares too much when either
- runs of at least MIN_RUN_WORDS words make up CONTAMINATED_SHARE of its words ("not clean" in Llama 2, arXiv
  2307.09288, A.6), or
- one run has CONTAMINATED_RUN_WORDS words or more, however long the file is.

13-grams are stored as 32-bit hashes: with a million held-out ones, about 1 in 4,000 matches by chance.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt

GRAM_WORDS = 13
"""Words in one n-gram."""

MAX_FILES_PER_GRAM = 10
"""Files; an n-gram that occurs in more of them is common text."""

MIN_RUN_WORDS = 20
"""Words; shorter runs do not count towards the share."""

CONTAMINATED_SHARE = 0.2
"""Share of a file's words in counted runs from which it is contaminated."""

CONTAMINATED_RUN_WORDS = 50
"""Words of the longest run from which a file is contaminated."""

_WORD = re.compile(rb"(?<![\w\x80-\xff])[a-z_\x80-\xff][\w\x80-\xff]*")
_HASH_FACTORS = np.frombuffer(hashlib.shake_256(b"13-grams of words").digest(8 * GRAM_WORDS), "<u8") | np.uint64(1)

Hashes = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much text is shared: the share of words in runs of at least MIN_RUN_WORDS, and the longest run in words."""

    share: float
    run: int

    @property
    def contaminated(self) -> bool:
        return self.share >= CONTAMINATED_SHARE or self.run >= CONTAMINATED_RUN_WORDS


def digest(text: str) -> bytes:
    """The SHA-256 of a text after every run of white space is replaced by one space."""
    return hashlib.sha256(" ".join(text.split()).encode()).digest()


def gram_hashes(text: str) -> Hashes:
    """The hash of every 13-gram of words, in text order; empty for texts with fewer words."""
    found = _WORD.findall(text.lower().encode("utf-8", "surrogatepass"))
    words = np.fromiter(map(crc32, found), np.uint64, len(found))
    count = max(0, len(words) - GRAM_WORDS + 1)
    mixed = np.zeros(count, np.uint64)
    for place, factor in enumerate(_HASH_FACTORS):  # multilinear hashing, modulo 2**64
        mixed += words[place : place + count] * factor
    return (mixed >> np.uint64(32)).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """What identifies held-out text: sorted distinct hashes of its 13-grams, and digests of whole files."""

    hashes: Hashes
    digests: frozenset[bytes]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Fingerprints":
        """Fingerprints of the held-out texts, without the 13-grams that are common among them."""
        parts = [np.empty(0, np.uint32), *(np.unique(gram_hashes(text)) for text in texts)]
        found, files = np.unique(np.concatenate(parts), return_counts=True)
        return cls(found[files <= MAX_FILES_PER_GRAM], frozenset(map(digest, texts)))

    def overlap(self, text: str) -> Overlap:
        """How much of the text lies in shared 13-grams."""
        found = gram_hashes(text)
        at = np.searchsorted(self.hashes, found)
        shared = self.hashes.take(at, mode="clip") == found if len(self.hashes) else at < 0
        if not shared.any():
            return Overlap(0.0, 0)
        edges = np.flatnonzero(np.diff(shared.astype(np.int8), prepend=0, append=0))
        starts, ends = edges[::2], edges[1::2] + GRAM_WORDS - 1  # in words, ends exclusive
        long = ends - starts >= MIN_RUN_WORDS
        return Overlap(_covered(starts[long], ends[long]) / (len(shared) + GRAM_WORDS - 1), int((ends - starts).max()))

    def fault(self, text: str) -> str | None:
        """Why the text may not be trained on, or None."""
        if digest(text) in self.digests:
            return "held-out file"
        return "held-out part" if self.overlap(text).contaminated else None


def _covered(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> int:
    """Words covered by any run; neighbouring runs may overlap."""
    return int((np.minimum(ends, np.append(starts[1:], ends[-1:])) - starts).sum())
