"""Contamination: text of the repositories kept for evaluation inside training files.

A training file is contaminated if it is the same text as a held-out file but for white space, or if it shares too
many 13-grams of words with held-out files, the measure of GPT-3 (arXiv 2005.14165, appendix C). Words are names,
keywords and words of comments, in lower case; numbers and punctuation do not count, so tables are not alike. As there,
a 13-gram that occurs in more than COMMON files is nobody's own (licence headers, idioms) and does not count. Shared
13-grams next to each other are one run; too many is either of
- runs of at least SHORT words make up SHARE of the file's words ("not clean" in Llama 2, arXiv 2307.09288, A.6);
- one run has RUN words or more, however long the file.

13-grams are kept as 32-bit hashes: with a million held-out ones, about one in 4,000 is taken for shared by chance.
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
from mercury_engine.training.data.duplicates import digest

FORMAT = b"mercury held-out 1\n"
"""To be counted up whenever a text's words or hashes change: fingerprints of other rules would find nothing."""

GRAM = 13
COMMON = 10
SHORT = 20
SHARE = 0.2
RUN = 50

_WORD = re.compile(rb"(?<![\w\x80-\xff])[a-z_\x80-\xff][\w\x80-\xff]*")
_MIX = np.frombuffer(hashlib.shake_256(b"13-grams of words").digest(8 * GRAM), "<u8") | np.uint64(1)
_COARSE = 8
"""Bits of a hash that the first look-up leaves out; it turns away most words of ordinary files."""

Hashes = npt.NDArray[np.uint32]


class FingerprintsCorrupt(MercuryError):
    """The stored fingerprints of the held-out files cannot be read."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of a text is shared: the share of its words in runs that are not short; the longest run in words."""

    share: float
    run: int

    @property
    def contaminated(self) -> bool:
        return self.share >= SHARE or self.run >= RUN


def grams(text: str) -> Hashes:
    """The hash of every 13-gram of words, in order; empty for texts of fewer words."""
    found = _WORD.findall(text.lower().encode("utf-8", "surrogatepass"))
    words = np.fromiter(map(crc32, found), np.uint64, len(found))
    count = max(0, len(words) - GRAM + 1)
    mixed = np.zeros(count, np.uint64)
    for place, factor in enumerate(_MIX):  # multilinear hashing, modulo 2**64
        mixed += words[place : place + count] * factor
    return (mixed >> np.uint64(32)).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """What tells held-out text: sorted distinct hashes of 13-grams, and digests of whole files."""

    hashes: Hashes
    digests: frozenset[bytes]
    _coarse: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Fingerprints":
        """Fingerprints of the held-out texts; all their 13-grams, common ones too."""
        digests, parts = set(), [np.empty(0, np.uint32)]
        for text in texts:
            digests.add(digest(text))
            parts.append(np.unique(grams(text)))
        return cls._made(np.unique(np.concatenate(parts)), frozenset(digests))

    @classmethod
    def _made(cls, hashes: Hashes, digests: frozenset[bytes]) -> "Fingerprints":
        coarse = np.zeros(1 << (32 - _COARSE), np.bool_)
        coarse[hashes >> _COARSE] = True
        return cls(hashes, digests, coarse)

    def without_common(self, texts: Iterable[str]) -> "Fingerprints":
        """Leave out the 13-grams that occur in more than COMMON of the texts."""
        files = np.zeros(len(self.hashes), np.uint32)
        for text in texts:
            found = np.unique(self._places(grams(text)))
            files[found[found >= 0]] += 1
        return self._made(self.hashes[files <= COMMON], self.digests)

    def _places(self, found: Hashes) -> npt.NDArray[np.int64]:
        """Where each hash stands among the known ones; -1 where it does not."""
        places = np.full(len(found), -1, np.int64)
        likely = np.flatnonzero(self._coarse[found >> _COARSE])
        at = np.searchsorted(self.hashes, found[likely])
        at[at == len(self.hashes)] = 0
        known = self.hashes[at] == found[likely] if len(self.hashes) else np.zeros(0, np.bool_)
        places[likely[known]] = at[known]
        return places

    def overlap(self, text: str) -> Overlap:
        """How much of the text stands in shared 13-grams."""
        shared = self._places(grams(text)) >= 0
        if not shared.any():
            return Overlap(0.0, 0)
        edges = np.flatnonzero(np.diff(shared.astype(np.int8), prepend=0, append=0))
        starts, ends = edges[::2], edges[1::2] + GRAM - 1  # in words, ends exclusive
        long = ends - starts >= SHORT
        return Overlap(_covered(starts[long], ends[long]) / (len(shared) + GRAM - 1), int((ends - starts).max()))

    def fault(self, text: str) -> str | None:
        """Why the text may not be trained on, or None."""
        if digest(text) in self.digests:
            return "held-out file"
        return "held-out part" if self.overlap(text).contaminated else None

    def to_bytes(self) -> bytes:
        """A compact form, the same for the same fingerprints."""
        file = io.BytesIO()
        gaps = np.diff(self.hashes, prepend=np.uint32(0))
        np.save(file, gaps)
        np.save(file, np.frombuffer(b"".join(sorted(self.digests)), np.uint8))
        return FORMAT + lzma.compress(file.getvalue())

    @classmethod
    def from_bytes(cls, packed: bytes) -> "Fingerprints":
        """Read what to_bytes wrote; raises FingerprintsCorrupt."""
        if not packed.startswith(FORMAT):
            raise FingerprintsCorrupt("fingerprints of held-out files were made by another version; build again")
        try:
            file = io.BytesIO(lzma.decompress(packed[len(FORMAT) :]))
            hashes = np.cumsum(np.load(file, allow_pickle=False), dtype=np.uint32)
            digests = np.load(file, allow_pickle=False).tobytes()
        except (lzma.LZMAError, ValueError, EOFError) as error:
            raise FingerprintsCorrupt(f"fingerprints of held-out files are damaged ({error}); build again") from error
        return cls._made(hashes, frozenset(digests[i : i + 32] for i in range(0, len(digests), 32)))


def _covered(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> int:
    """Words inside any run; neighbouring runs may overlap."""
    return int((np.minimum(ends, np.append(starts[1:], ends[-1:])) - starts).sum())
