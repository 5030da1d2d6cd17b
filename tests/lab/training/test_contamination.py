"""The text of held-out files is distinguished from common text, however it is laid out."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mercury_lab.training.data.contamination import (
    CONTAMINATED_RUN_WORDS,
    CONTAMINATED_SHARE,
    GRAM_WORDS,
    MAX_FILES_PER_GRAM,
    MIN_RUN_WORDS,
    Fingerprints,
    Overlap,
    gram_hashes,
)


def words(stem: str, count: int) -> list[str]:
    return [f"{stem}{n}" for n in range(count)]


HELD = words("held", 400)
KNOWN = Fingerprints.of([" ".join(HELD)])


def mixed(held: int, other: int) -> str:
    """A text of so many held-out words in one run, amid so many others."""
    return " ".join(words("before", other // 2) + HELD[30 : 30 + held] + words("after", other - other // 2))


def test_the_same_text_laid_out_otherwise_is_a_held_out_file():
    assert KNOWN.fault("\n\t".join(HELD) + "\n") == "held-out file"


def test_a_run_as_long_as_the_rule_says_is_too_much_in_a_file_of_any_length():
    assert KNOWN.overlap(mixed(CONTAMINATED_RUN_WORDS, 9_000)) == Overlap(
        CONTAMINATED_RUN_WORDS / (9_000 + CONTAMINATED_RUN_WORDS), CONTAMINATED_RUN_WORDS
    )
    assert KNOWN.fault(mixed(CONTAMINATED_RUN_WORDS, 9_000)) == "held-out part"
    assert KNOWN.fault(mixed(CONTAMINATED_RUN_WORDS - 1, 9_000)) is None


def test_a_share_as_large_as_the_rule_says_is_too_much_in_a_short_file():
    others = round(MIN_RUN_WORDS / CONTAMINATED_SHARE) - MIN_RUN_WORDS
    assert KNOWN.fault(mixed(MIN_RUN_WORDS, others)) == "held-out part"
    assert KNOWN.fault(mixed(MIN_RUN_WORDS, others + 1)) is None


def test_runs_too_short_to_be_copied_do_not_add_up():
    pieces = ([*HELD[at : at + MIN_RUN_WORDS - 1], f"between{at}"] for at in range(0, 400, MIN_RUN_WORDS))
    text = " ".join(word for piece in pieces for word in piece)
    assert KNOWN.overlap(text) == Overlap(0.0, MIN_RUN_WORDS - 1)
    assert KNOWN.fault(text) is None


def test_case_punctuation_and_numbers_hide_nothing():
    text = "".join(f"{word.upper()}({n}, -1.5e3);\n" for n, word in enumerate(HELD[:CONTAMINATED_RUN_WORDS]))
    assert KNOWN.fault(text) == "held-out part"


def test_a_table_of_numbers_shares_nothing_with_another():
    table = "rows = [\n" + "".join(f"    [{n}, 0, 0, 0, 1.0, 1e-6, 0xFF],\n" for n in range(200)) + "]\n"
    assert Fingerprints.of([table]).overlap(table.replace("rows", "table")) == Overlap(0.0, 0)


def test_what_stands_in_many_files_is_nobodys_own():
    header = " ".join(words("licence", 80))
    held = f"{header} {' '.join(HELD)}"
    copies = [f"{header} {' '.join(words(f'file{n}x', 50))}" for n in range(MAX_FILES_PER_GRAM + 1)]
    rare, common = (Fingerprints.of([held, *copies[1:count]]) for count in (MAX_FILES_PER_GRAM, MAX_FILES_PER_GRAM + 1))
    assert rare.fault(copies[0]) == "held-out part"
    assert common.fault(copies[0]) is None
    assert common.fault(mixed(CONTAMINATED_RUN_WORDS, 900)) == "held-out part"


def overlap_by_sets(held: list[str], text: list[str]) -> Overlap:
    """The rule told plainly: sets of 13-grams, word by word."""
    known = {tuple(held[at : at + GRAM_WORDS]) for at in range(len(held) - GRAM_WORDS + 1)}
    starts = [at for at in range(len(text) - GRAM_WORDS + 1) if tuple(text[at : at + GRAM_WORDS]) in known]
    runs: list[list[int]] = []
    for at in starts:
        if runs and at == runs[-1][-1] + 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    lengths = [len(run) + GRAM_WORDS - 1 for run in runs]
    covered = {
        run[0] + n for run, size in zip(runs, lengths, strict=True) if size >= MIN_RUN_WORDS for n in range(size)
    }
    return Overlap(len(covered) / max(1, len(text)), max(lengths, default=0))


TEXTS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), max_size=12).map(
    lambda spans: [f"w{n}" for start, size in spans for n in range(start, start + size)]
)


@settings(max_examples=200)
@given(TEXTS, TEXTS)
def test_the_overlap_is_that_of_sets_of_13_grams(held, text):
    found = Fingerprints.of([" ".join(held)]).overlap(" ".join(text))
    assert (pytest.approx(found.share), found.run) == (
        overlap_by_sets(held, text).share,
        overlap_by_sets(held, text).run,
    )


@given(st.text(max_size=300))
def test_any_text_has_one_gram_less_than_its_words_and_thirteen(text):
    words = re.findall(rb"[\w\x80-\xff]+", text.lower().encode("utf-8", "surrogatepass"))
    count = sum(not word[:1].isdigit() for word in words)
    assert len(gram_hashes(text)) == max(0, count - GRAM_WORDS + 1)
