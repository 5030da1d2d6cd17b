"""A cut vocabulary reads like the whole one wherever nothing was cut."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mercury_engine.model_folders import BUNDLED_MODEL
from mercury_lab.training.conversion.base import SMOLLM2
from mercury_lab.training.conversion.gguf_weights import GGUFReader, vocabulary_of
from mercury_lab.training.conversion.vocabulary import (
    build_tokenizer,
    cut_vocabulary,
    sample_by_language,
    used_tokens,
)
from mercury_lab.training.data.corpus import Corpus, SourceFile
from tokenizers import Tokenizer, pre_tokenizers

from tests.support import tiny

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
MERGES = ["b c", "a b", "c d", "a bc", "ab c", "abc d", "ab cd", "a bcd", "b cd", "x y", "xy x", "xy xy", "d a"]
"""Of abc and abcd there are several ways to merge; which one is taken depends on the order."""
TOKENS = ["<|endoftext|>", *ALPHABET, *dict.fromkeys(merge.replace(" ", "") for merge in MERGES)]
LETTERS = st.text(alphabet="abcdxy", max_size=20)


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def words(tokenizer: Tokenizer, text: str) -> list[str]:
    return [text[start:end] for _, (start, end) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]


@settings(max_examples=400)
@given(st.sets(st.sampled_from(range(1 + len(ALPHABET), len(TOKENS)))), st.lists(LETTERS, min_size=1, max_size=20))
def test_whatever_is_cut_the_words_of_kept_tokens_are_read_as_before(used, texts):
    keep, alive = cut_vocabulary(TOKENS, MERGES, 1, used)
    whole, small = build_tokenizer(TOKENS, MERGES, 1), build_tokenizer([TOKENS[i] for i in keep], alive, 1)
    assert set(keep) >= used | set(range(1 + len(ALPHABET)))
    for text in texts:
        before, after = encode(whole, text), [keep[i] for i in encode(small, text)]
        assert small.decode(encode(small, text)) == text
        if set(before) <= set(keep):
            assert after == before


def test_nothing_unused_is_kept_but_bytes_and_the_way_to_what_is_used():
    keep, alive = cut_vocabulary(TOKENS, MERGES, 1, {TOKENS.index("xyxy")})
    assert [TOKENS[i] for i in keep if len(TOKENS[i]) > 1] == ["<|endoftext|>", "xy", "xyxy"]
    assert alive == ["x y", "xy xy"]


CACHE = Path(os.environ.get("MERCURY_DOWNLOADS", "runs/downloads"))
GGUF = CACHE / SMOLLM2.file
SHIPPED = BUNDLED_MODEL / "tokenizer.json"
SOURCES = sorted((Path(__file__).parents[3] / "engine").rglob("*.py")) + sorted(
    path for path in (Path(__file__).parents[2] / "data" / "held_out").rglob("*") if path.is_file()
)


@pytest.fixture(scope="module")
def both() -> tuple[Tokenizer, Tokenizer, dict[int, int]]:
    """The base's whole tokenizer, the shipped one, and the whole one's number of every shipped token."""
    if not GGUF.is_file():
        pytest.skip(
            f"the base with its whole vocabulary is not in {CACHE}; run the base step, or set MERCURY_DOWNLOADS"
        )
    tokens, merges, types = vocabulary_of(GGUFReader(GGUF))
    whole, shipped = build_tokenizer(tokens, merges, types.index(1)), Tokenizer.from_file(str(SHIPPED))
    numbers = whole.get_vocab()
    return whole, shipped, {i: numbers[token] for token, i in shipped.get_vocab().items()}


def assert_reads_alike(both: tuple[Tokenizer, Tokenizer, dict[int, int]], text: str) -> Counter[bool]:
    """Every word of kept tokens is read as before, and every other spells the same; counts both kinds."""
    whole, shipped, number = both
    kept = set(number.values())
    seen: Counter[bool] = Counter()
    for word in set(words(whole, text)):
        before, after = encode(whole, word), [number[i] for i in encode(shipped, word)]
        assert whole.decode(after) == whole.decode(before)
        uncut = kept.issuperset(before)
        assert not uncut or after == before, word
        seen[uncut] += 1
    return seen


def test_the_shipped_vocabulary_reads_real_code_as_the_base_does_wherever_nothing_was_cut(both):
    seen = sum((assert_reads_alike(both, path.read_text("utf-8")) for path in SOURCES), Counter())
    assert seen[True] > 20_000
    assert seen[False] > 0


@settings(max_examples=100)
@given(text=st.text(max_size=200))
def test_the_shipped_vocabulary_reads_any_text_as_the_base_does_wherever_nothing_was_cut(both, text):
    assert_reads_alike(both, text)


def test_the_shipped_vocabulary_keeps_every_byte_and_every_merge_between_kept_tokens(both):
    whole, shipped, _ = both
    kept = shipped.get_vocab()
    assert {token for token in whole.get_vocab() if len(token) == 1} <= kept.keys()
    merges, alive = (json.loads(t.to_str())["model"]["merges"] for t in (whole, shipped))
    between = [pair for pair in merges if {*pair, "".join(pair)} <= kept.keys()]
    assert alive == between


def test_no_text_can_spell_mask_or_end_which_stand_behind_the_last_token():
    config = json.loads((BUNDLED_MODEL / "config.json").read_text())
    shipped = Tokenizer.from_file(str(SHIPPED))
    assert shipped.get_vocab_size() == max(shipped.get_vocab().values()) + 1 == config["vocab_size"]


def corpus(folder: Path, sizes: dict[str, int]) -> Path:
    """Files of 100 bytes, so many of each language."""
    text = "for name in names:\n    print(name, end='')\n".ljust(99, "#") + "\n"
    Corpus([SourceFile(f"{n}.{of}", "toy", of, text) for of, count in sizes.items() for n in range(count)]).write(
        folder
    )
    return folder


def test_a_sample_takes_about_what_is_wanted_from_all_parts_of_a_language(tmp_path):
    folder = corpus(tmp_path, {"python": 1_000, "lua": 10})
    taken = list(sample_by_language(folder, {"python": 20_000, "lua": 20_000}))
    assert taken == list(sample_by_language(folder, {"python": 20_000, "lua": 20_000}))
    counts = Counter(file.language for file in taken)
    assert counts["lua"] == 10
    assert 130 < counts["python"] < 270
    numbers = [int(file.path.partition(".")[0]) for file in taken if file.language == "python"]
    assert min(numbers) < 100
    assert max(numbers) > 900


def test_used_tokens_are_the_most_frequent_of_the_corpus(tmp_path):
    tokenizer = tiny.tokenizer(400)
    folder = corpus(tmp_path, {"python": 3})
    few, many = used_tokens(tokenizer, folder, 3), used_tokens(tokenizer, folder, 400)
    assert len(few) == 3
    assert few < many < set(tokenizer.get_vocab().values())
