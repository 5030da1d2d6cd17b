"""Measure the cost of the cut vocabulary: `python -m mercury_lab.training compression --corpus DIR [--json]`.

It reports bytes per token for every language, with the base's whole vocabulary and with the cut one.
"""

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

import tokenizers
from mercury_engine.model_folders import BUNDLED_MODEL
from mercury_engine.prompt.tokenizer import Tokenizer
from rich.console import Console
from rich.progress import track

from mercury_lab.training.conversion.base import SMOLLM2, obtain
from mercury_lab.training.conversion.gguf_weights import GGUFReader, vocabulary_of
from mercury_lab.training.conversion.vocabulary import build_tokenizer, sample_by_language


def whole_tokenizer(gguf: Path) -> tokenizers.Tokenizer:
    """The tokenizer of a SmolLM2 file with its whole vocabulary."""
    tokens, merges, types = vocabulary_of(GGUFReader(gguf))
    return build_tokenizer(tokens, merges, types.index(1))


def measure(corpus: Path, by_name: dict[str, tokenizers.Tokenizer], per_language: int) -> dict[str, dict[str, float]]:
    """For every language: the bytes measured (about `per_language`), and each tokenizer's bytes per token."""
    sizes: Counter[str] = Counter()
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    chosen = sample_by_language(corpus, defaultdict(lambda: per_language))
    for file in track(chosen, "counting tokens", console=Console(stderr=True)):
        sizes[file.language] += len(file.text.encode())
        for name, tokenizer in by_name.items():
            counts[file.language][name] += len(tokenizer.encode(file.text, add_special_tokens=False).ids)
    rates = {language: {n: sizes[language] / count for n, count in of.items()} for language, of in counts.items()}
    return {language: {"bytes": sizes[language], **rates[language]} for language in sorted(rates)}


def main(argv: list[str]) -> int:
    """Print the figures as a table, or as JSON."""
    parser = argparse.ArgumentParser(prog="mercury_lab.training compression", description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="a corpus folder or shard")
    parser.add_argument(
        "--cut", type=Path, default=BUNDLED_MODEL, help="model folder with the cut vocabulary (the bundled one)"
    )
    parser.add_argument("--cache", type=Path, default=Path("runs/downloads"), help="folder of downloaded bases")
    parser.add_argument("--per-language", type=int, default=4_000_000, help="bytes of each language to measure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    by_name = {"whole": whole_tokenizer(obtain(SMOLLM2, options.cache)), "cut": Tokenizer(options.cut).bpe}
    rows = measure(options.corpus, by_name, options.per_language)
    if options.json:
        print(json.dumps({"vocabulary": {n: t.get_vocab_size() for n, t in by_name.items()}, "languages": rows}))
        return 0
    print("| language | MB looked at | bytes per token, whole | cut | more tokens |\n| --- | --- | --- | --- | --- |")
    for language, row in rows.items():
        more = f"{100 * (row['whole'] / row['cut'] - 1):.1f} %"
        print(f"| {language} | {row['bytes'] / 1e6:.1f} | {row['whole']:.2f} | {row['cut']:.2f} | {more} |")
    return 0
