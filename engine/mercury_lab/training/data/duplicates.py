"""Find exact and near duplicates among texts."""

import hashlib
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from mercury_kernels.installation import install_command

from mercury_lab.training.data.sources import SourceError

MINHASH_PERMUTATIONS = 64
NEAR_DUPLICATE_SIMILARITY = 0.7
"""Files whose sets of lines have a Jaccard index above about this value are near duplicates."""

MIN_LINE_CHARS = 8
"""Characters; shorter lines (brackets, `else:`) say nothing about similarity."""


def digest(text: str) -> bytes:
    """The SHA-256 of a text after every run of white space is replaced by one space."""
    return hashlib.sha256(" ".join(text.split()).encode()).digest()


@dataclass(slots=True)
class Duplicates:
    """Remembers texts; `near` also finds texts that share most lines (MinHash of datasketch)."""

    near: bool = True
    _seen: set[bytes] = field(default_factory=set)
    _index: Any = None

    def add(self, text: str) -> str | None:
        """Remember the text; returns "duplicate" or "near duplicate" if it was known, else None."""
        key = digest(text)
        if key in self._seen:
            return "duplicate"
        self._seen.add(key)
        return "near duplicate" if self.near and self._is_near(key, text) else None

    def _is_near(self, key: bytes, text: str) -> bool:
        try:
            from datasketch import MinHash, MinHashLSH
        except ImportError as error:
            raise SourceError(
                f"near duplicates need {error.name}: {install_command('training')}; or use --no-near-dedup"
            ) from error
        if not isinstance(self._index, MinHashLSH):
            self._index = MinHashLSH(threshold=NEAR_DUPLICATE_SIMILARITY, num_perm=MINHASH_PERMUTATIONS)
        lines = {line.strip() for line in text.splitlines()}
        hashes = sorted(crc32(line.encode()) for line in lines if len(line) >= MIN_LINE_CHARS)
        if not hashes:
            return False
        signature = MinHash(num_perm=MINHASH_PERMUTATIONS, hashfunc=int)
        signature.update_batch(hashes)
        known = bool(self._index.query(signature))
        if not known:
            self._index.insert(key, signature)
        return known
