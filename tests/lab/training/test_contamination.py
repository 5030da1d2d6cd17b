"""The text of held-out files is distinguished from common text, however it is laid out."""

from mercury_lab.training.data.contamination import (
    CONTAMINATED_RUN_WORDS,
    MAX_FILES_PER_GRAM,
    Fingerprints,
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


def test_case_punctuation_and_numbers_hide_nothing():
    text = "".join(f"{word.upper()}({n}, -1.5e3);\n" for n, word in enumerate(HELD[:CONTAMINATED_RUN_WORDS]))
    assert KNOWN.fault(text) == "held-out part"


def test_what_stands_in_many_files_is_nobodys_own():
    header = " ".join(words("licence", 80))
    held = f"{header} {' '.join(HELD)}"
    copies = [f"{header} {' '.join(words(f'file{n}x', 50))}" for n in range(MAX_FILES_PER_GRAM + 1)]
    rare, common = (Fingerprints.of([held, *copies[1:count]]) for count in (MAX_FILES_PER_GRAM, MAX_FILES_PER_GRAM + 1))
    assert rare.fault(copies[0]) == "held-out part"
    assert common.fault(copies[0]) is None
    assert common.fault(mixed(CONTAMINATED_RUN_WORDS, 900)) == "held-out part"
