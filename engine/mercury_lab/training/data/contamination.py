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
import io
import lzma
import re
from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt
from mercury_engine.errors import MercuryError

from mercury_lab.training.data.duplicates import digest

FORMAT_HEADER = b"mercury held-out 1\n"
"""Increment the number whenever words or hashes are computed differently: older fingerprints would find nothing."""

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
_COARSE_BITS = 8
"""Bits of a hash that the first look-up drops; that look-up rejects most n-grams of ordinary files."""

Hashes = npt.NDArray[np.uint32]


class FingerprintsCorrupt(MercuryError):
    """The stored fingerprints of the held-out files cannot be read."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much text is shared: the share of words in runs of at least MIN_RUN_WORDS, and the longest run in words."""

    share: float
    run: int

    @property
    def contaminated(self) -> bool:
        return self.share >= CONTAMINATED_SHARE or self.run >= CONTAMINATED_RUN_WORDS


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
    _coarse: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Fingerprints":
        """Fingerprints of the held-out texts with all their 13-grams, including common ones."""
        digests, parts = set(), [np.empty(0, np.uint32)]
        for text in texts:
            digests.add(digest(text))
            parts.append(np.unique(gram_hashes(text)))
        return cls._made(np.unique(np.concatenate(parts)), frozenset(digests))

    @classmethod
    def _made(cls, hashes: Hashes, digests: frozenset[bytes]) -> "Fingerprints":
        coarse = np.zeros(1 << (32 - _COARSE_BITS), np.bool_)
        coarse[hashes >> _COARSE_BITS] = True
        return cls(hashes, digests, coarse)

    def without_common(self, texts: Iterable[str]) -> "Fingerprints":
        """Drop the 13-grams that occur in more than MAX_FILES_PER_GRAM of the texts."""
        files = np.zeros(len(self.hashes), np.uint32)
        for text in texts:
            found = np.unique(self._places(gram_hashes(text)))
            files[found[found >= 0]] += 1
        return self._made(self.hashes[files <= MAX_FILES_PER_GRAM], self.digests)

    def _places(self, found: Hashes) -> npt.NDArray[np.int64]:
        """Each hash's index among the known ones; -1 if it is unknown."""
        places = np.full(len(found), -1, np.int64)
        likely = np.flatnonzero(self._coarse[found >> _COARSE_BITS])
        at = np.searchsorted(self.hashes, found[likely])
        at[at == len(self.hashes)] = 0
        known = self.hashes[at] == found[likely] if len(self.hashes) else np.zeros(0, np.bool_)
        places[likely[known]] = at[known]
        return places

    def overlap(self, text: str) -> Overlap:
        """How much of the text lies in shared 13-grams."""
        shared = self._places(gram_hashes(text)) >= 0
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

    def to_bytes(self) -> bytes:
        """A compact form; equal fingerprints give equal bytes."""
        file = io.BytesIO()
        gaps = np.diff(self.hashes, prepend=np.uint32(0))
        np.save(file, gaps)
        np.save(file, np.frombuffer(b"".join(sorted(self.digests)), np.uint8))
        return FORMAT_HEADER + lzma.compress(file.getvalue())

    @classmethod
    def from_bytes(cls, packed: bytes) -> "Fingerprints":
        """The fingerprints that `to_bytes` wrote; raises FingerprintsCorrupt."""
        if not packed.startswith(FORMAT_HEADER):
            raise FingerprintsCorrupt("fingerprints of held-out files were made by another version; build again")
        try:
            file = io.BytesIO(lzma.decompress(packed[len(FORMAT_HEADER) :]))
            hashes = np.cumsum(np.load(file, allow_pickle=False), dtype=np.uint32)
            digests = np.load(file, allow_pickle=False).tobytes()
        except (lzma.LZMAError, ValueError, EOFError) as error:
            raise FingerprintsCorrupt(f"fingerprints of held-out files are damaged ({error}); build again") from error
        return cls._made(hashes, frozenset(digests[i : i + 32] for i in range(0, len(digests), 32)))


def _covered(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> int:
    """Words covered by any run; neighbouring runs may overlap."""
    return int((np.minimum(ends, np.append(starts[1:], ends[-1:])) - starts).sum())
