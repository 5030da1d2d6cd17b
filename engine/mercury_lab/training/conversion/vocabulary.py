"""Cut the base's vocabulary to the tokens that code uses, and build the tokenizer for them.

Mask and end are not in the vocabulary: they are the two rows after its last one (`markers` of the network), so that no
text can spell them. SmolLM2 has no token for 21 bytes, which UTF-8 never uses or which are rare control characters;
all its other single bytes stay.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from zlib import crc32

from rich.progress import track
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from mercury_lab.training.data.corpus import SourceFile, read_files, read_manifest

_QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
"""Qwen2 splits text before tokenizing: contractions, words, single digits, runs of signs, line breaks, blanks."""


def build_tokenizer(tokens: list[str], merges: list[str], special: int) -> Tokenizer:
    """SmolLM2's byte-level BPE, which splits digits; the first `special` tokens are control tokens."""
    vocabulary = {token: number for number, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs, fuse_unk=False))  # type: ignore[arg-type]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(tokens[:special])
    return tokenizer


def qwen_tokenizer(tokens: list[str], merges: list[str], types: list[int]) -> Tokenizer:
    """Qwen2.5's byte-level BPE; `types` are GGUF's token kinds: 1 text, 3 control, 4 user-defined, 5 unused."""
    vocabulary = {token: number for number, token in enumerate(tokens) if types[number] == 1}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs, fuse_unk=False))  # type: ignore[arg-type]
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(_QWEN_SPLIT), behavior="isolated")
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, by_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([token for token, kind in zip(tokens, types, strict=True) if kind in (3, 4)])
    return tokenizer


def cut_vocabulary(tokens: list[str], merges: list[str], special: int, used: set[int]) -> tuple[list[int], list[str]]:
    """The ids and merges to keep: used tokens, single bytes, and every intermediate token that merging needs.

    A token is always merged in the same way, whatever its neighbours; if several merges spell a token, all are
    followed. So every merge that leads to a kept token stays, in order, and a word whose tokens all stay is tokenized
    as before.
    """
    number = {token: i for i, token in enumerate(tokens)}
    parts: defaultdict[str, set[str]] = defaultdict(set)
    for left, right in (merge.split(" ") for merge in merges):
        parts[left + right] |= {left, right}
    keep = set(range(special)) | {i for i, token in enumerate(tokens) if len(token) == 1}
    waiting = list(used)
    while waiting:
        i = waiting.pop()
        if i in keep:
            continue
        keep.add(i)
        waiting += [number[part] for part in parts[tokens[i]]]
    kept = {tokens[i] for i in keep}
    alive = [m for m in merges if all(part in kept for part in (*m.split(" "), m.replace(" ", "", 1)))]
    return sorted(keep), alive


def used_tokens(tokenizer: Tokenizer, corpus: Path, size: int) -> set[int]:
    """The `size` most frequent tokens in about 6 MB of every language, four times as many of Python."""
    counts: Counter[int] = Counter()
    wanted = defaultdict(lambda: 6_000_000, python=24_000_000)
    for file in track(sample_by_language(corpus, wanted), "counting tokens"):
        counts.update(tokenizer.encode(file.text, add_special_tokens=False).ids)
    return {token for token, _ in counts.most_common(size)}


def sample_by_language(corpus: Path, wanted: Mapping[str, int]) -> Iterator[SourceFile]:
    """About `wanted` bytes of each language, from all parts of the corpus; always the same files."""
    languages = read_manifest(corpus)["languages"]
    for file in read_files(corpus):
        share = wanted[file.language] / max(1, languages[file.language].get("bytes", 0))
        if crc32(file.path.encode()) < share * 2**32:
            yield file
