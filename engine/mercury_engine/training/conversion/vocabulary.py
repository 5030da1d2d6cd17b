"""The base's vocabulary cut to what code uses: which tokens stay, and the tokenizer made of them.

Mask and end are no tokens of it: they are the two rows behind its last one (model.Network.markers), so that no text
can spell them. SmolLM2 has no token for 21 bytes, which UTF-8 never uses or which are rare control characters; all
its other single bytes stay.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from zlib import crc32

from rich.progress import track
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from mercury_engine.training.data.corpus import SourceFile, read_files, read_manifest

_QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
"""What Qwen2 tokenizes for itself: contractions, words, single digits, runs of signs, line breaks, blanks."""


def build_tokenizer(tokens: list[str], merges: list[str], special: int) -> Tokenizer:
    """SmolLM2's byte-level BPE: digits one by one; the first `special` tokens are control tokens."""
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
    """Qwen2.5's byte-level BPE; `types` are GGUF's kinds of token: 1 text, 3 control, 4 user-defined, 5 unused."""
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
    """Ids and merges that stay: used tokens, single bytes and all that merging needs on the way to them.

    A token is always merged in the same way, whatever stands around it; of tokens that several merges spell, all
    are followed. So every merge on the way to a kept token stays, in its order, and a word whose tokens all stay is
    cut as before.
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


def used_tokens(tokenizer: Tokenizer, corpus: Path, size: int, per_language: int = 6_000_000) -> set[int]:
    """The `size` most frequent tokens of about so many bytes of every language of the corpus, Python four times."""
    counts: Counter[int] = Counter()
    wanted = defaultdict(lambda: per_language, python=4 * per_language)
    for file in track(sample_by_language(corpus, wanted), "counting tokens"):
        counts.update(tokenizer.encode(file.text, add_special_tokens=False).ids)
    return {token for token, _ in counts.most_common(size)}


def sample_by_language(corpus: Path, wanted: Mapping[str, int]) -> Iterator[SourceFile]:
    """About `wanted` bytes of each language, from all parts of the corpus; the same files each time."""
    languages = read_manifest(corpus)["languages"]
    for file in read_files(corpus):
        share = wanted[file.language] / max(1, languages[file.language].get("bytes", 0))
        if crc32(file.path.encode()) < share * 2**32:
            yield file
