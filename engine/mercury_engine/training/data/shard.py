"""A corpus in one compressed file, small enough to travel.

Layout: MAGIC, the header's SHA-256 and length (8 bytes, little end first), the header (JSON: `manifest`, and size and
SHA-256 of every section), then the sections: the tokenizer, an index of the files, their tokens (uint16), the texts
that its tokens cannot spell, and fingerprints of the held-out files. Each section is compressed with LZMA. Tokens take
8 % less room than the text and a tenth of the time to compress.
"""

import hashlib
import json
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from mercury_engine.errors import MercuryError

MAGIC = b"mercury corpus shard 1\n"
SECTIONS = ("tokenizer", "index", "tokens", "plain", "held_out")
WINDOW = 1 << 27
"""Bytes that LZMA looks back; files of one package lie side by side, so more brings nothing."""

ShardTokens = npt.NDArray[np.uint16]


class ShardCorrupt(MercuryError):
    """A file is no shard, or part of it is missing or damaged."""


class ShardEntry(TypedDict):
    """One file of a shard."""

    path: str
    package: str
    language: str
    text: str


class Speller:
    """Text to the uint16 tokens of a byte-level tokenizer, and back."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._spelled = _spelled(tokenizer)

    def spell(self, text: str) -> ShardTokens | None:
        """The tokens of a text; None if they do not spell it, as with bytes that have no token."""
        ids = np.array(self.tokenizer.encode(text, add_special_tokens=False).ids, np.int64)
        tokens = ids.astype(np.uint16)
        return tokens if np.array_equal(tokens, ids) and self.read(tokens) == text else None

    def read(self, tokens: ShardTokens) -> str:
        """The text of tokens; three times as fast as the tokenizer's decode."""
        return b"".join(map(self._spelled.__getitem__, tokens.tolist())).decode("utf-8", "replace")


def _spelled(tokenizer: Tokenizer) -> list[bytes]:
    """The bytes of every token: byte-level BPE writes bytes that print as themselves, the others from 256 on."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    byte = {chr(b): b for b in printed} | {chr(256 + place): b for place, b in enumerate(others)}
    whole = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    names = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return [name.encode() if name in whole else bytes(byte[letter] for letter in name) for name, _ in names]


def packed(sections: dict[str, bytes], manifest: dict[str, Any]) -> bytes:
    """The content of a shard file; the same sections and manifest give the same bytes."""
    parts = {name: _compress(sections[name], wide=name == "tokens") for name in SECTIONS}
    described = {name: {"bytes": len(p), "sha256": hashlib.sha256(p).hexdigest()} for name, p in parts.items()}
    header = json.dumps({"manifest": manifest, "sections": described}, separators=(",", ":")).encode()
    check = hashlib.sha256(header).digest()
    return b"".join([MAGIC, check, len(header).to_bytes(8, "little"), header, *parts.values()])


def _compress(content: bytes, *, wide: bool) -> bytes:
    pairs = {"lc": 3, "lp": 1, "pb": 1} if wide else {}  # tokens are pairs of bytes
    size = min(WINDOW, max(1 << 16, len(content)))
    preset = 9 | lzma.PRESET_EXTREME
    return lzma.compress(content, filters=[{"id": lzma.FILTER_LZMA2, "preset": preset, "dict_size": size, **pairs}])


def sections_of(
    records: Iterable[tuple[ShardEntry, ShardTokens | None]], tokenizer: Tokenizer, held_out: bytes
) -> dict[str, bytes]:
    """The sections of files in the given order; a file without tokens is stored as text."""
    index, tokens, plain = [], [np.empty(0, np.uint16)], []
    for record, ids in records:
        content = record["text"].encode() if ids is None else b""
        counts = {"bytes": len(content)} if ids is None else {"tokens": len(ids)}
        index.append({"path": record["path"], "package": record["package"], "language": record["language"], **counts})
        tokens += [] if ids is None else [ids]
        plain.append(content)
    return {
        "tokenizer": tokenizer.to_str().encode(),
        "index": json.dumps(index, ensure_ascii=False, separators=(",", ":")).encode(),
        "tokens": np.concatenate(tokens).astype("<u2").tobytes(),
        "plain": b"".join(plain),
        "held_out": held_out,
    }


def manifest(path: Path) -> dict[str, Any]:
    """The manifest of a shard; raises ShardCorrupt."""
    return _header(path)[0]["manifest"]


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The header and where the sections begin."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ShardCorrupt(f"{path} is not a corpus shard; make one with `mercury_engine.training pack`")
        check, size = file.read(32), int.from_bytes(file.read(8), "little")
        content = file.read(size) if size < path.stat().st_size else b""
        start = file.tell()
    if hashlib.sha256(content).digest() != check:
        raise _damaged(path, "its header")
    header = json.loads(content)
    end = start + sum(header["sections"][name]["bytes"] for name in SECTIONS)
    if path.stat().st_size != end:
        raise ShardCorrupt(f"{path} has {path.stat().st_size} of {end} bytes; copy it again")
    return header, start


def section(path: Path, name: str) -> bytes:
    """One section, checked against its hash; raises ShardCorrupt."""
    header, start = _header(path)
    sizes = {known: header["sections"][known]["bytes"] for known in SECTIONS}
    with path.open("rb") as file:
        file.seek(start + sum(sizes[known] for known in SECTIONS[: SECTIONS.index(name)]))
        packed = file.read(sizes[name])
    if hashlib.sha256(packed).hexdigest() != header["sections"][name]["sha256"]:
        raise _damaged(path, name)
    return lzma.decompress(packed)


def _damaged(path: Path, part: str) -> ShardCorrupt:
    return ShardCorrupt(f"{path} is damaged in {part}; copy it again or make it with `mercury_engine.training pack`")


def read(path: Path) -> Iterator[ShardEntry]:
    """The files of a shard in its order; raises ShardCorrupt before the first."""
    speller = Speller(Tokenizer.from_str(section(path, "tokenizer").decode()))
    tokens, plain = np.frombuffer(section(path, "tokens"), "<u2"), section(path, "plain")
    token, byte = 0, 0
    for entry in json.loads(section(path, "index")):
        place = {"path": entry["path"], "package": entry["package"], "language": entry["language"]}
        if "tokens" in entry:
            text = speller.read(tokens[token : token + entry["tokens"]])
            token += entry["tokens"]
        else:
            text = plain[byte : byte + entry["bytes"]].decode()
            byte += entry["bytes"]
        yield ShardEntry(path=place["path"], package=place["package"], language=place["language"], text=text)
