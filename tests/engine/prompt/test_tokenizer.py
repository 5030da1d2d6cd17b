"""Text to tokens and back; typing adds few tokens to the part that is read."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mercury_engine.model_folders import BUNDLED_MODEL
from mercury_engine.prompt import tokenizer_file
from mercury_engine.prompt.tokenizer import RELEASED_PER_CHARACTER, Tokenizer
from tokenizers import pre_tokenizers

from tests.support import tiny

FILES = sorted(p for p in tiny.CODE.rglob("*") if p.suffix in {".py", ".js", ".go", ".rs"})

CODE = st.text(st.sampled_from("aeirst_XY09 \n\t.,:;'\"()[]{}=+-*/\\<>|#@é世😀"), max_size=120)

PIECES = st.lists(
    st.sampled_from(
        [
            "import os",
            "\n\n",
            "    ",
            "\t",
            "b'r",
            "'re",
            "don't",
            "self",
            ".",
            "==",
            "\r\n",
            "12",
            "é",
            "世",
            "_",
            " ",
            "antidisestablishment",
            "x" * 70,
            "=" * 80,
            "<|endoftext|>",
            "(",
            "'''",
            "\ufffd",
            "²",
        ]
    ),
    max_size=24,
).map("".join)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codec")
    tiny.tokenizer().save(str(folder / "tokenizer.json"))
    return Tokenizer(folder)


def common(left, right):
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def assert_typing_releases_few(tokenizer: Tokenizer, text: str) -> int:
    """The most tokens that one typed character adds to the part that is read."""
    before, most = tokenizer.cut("").read, 0
    for size in range(1, len(text) + 1):
        read = tokenizer.cut(text[:size]).read
        added = len(read) - common(before, read)
        assert added <= RELEASED_PER_CHARACTER, (added, text[max(0, size - 40) : size])
        before, most = read, max(most, added)
    return most


@given(st.text(max_size=200))
def test_a_text_survives_the_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_lone_surrogates_become_replacement_characters(tokenizer):
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"
    assert tokenizer.cut("a\ud800").spell != "\ud800"


@settings(max_examples=60)
@given(st.one_of(CODE, PIECES))
def test_one_typed_character_adds_at_most_two_tokens(tokenizer, text):
    assert_typing_releases_few(tokenizer, text)


@pytest.mark.slow
@pytest.mark.skipif(not (BUNDLED_MODEL / "tokenizer.json").is_file(), reason="the bundled model is not built")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_typing_real_code_adds_two_tokens_at_most_with_the_bundled_tokenizer(path):
    bundled = Tokenizer(Path(BUNDLED_MODEL))
    assert assert_typing_releases_few(bundled, path.read_text("utf-8")[:900]) > 0


def test_the_word_under_the_cursor_is_spelled_and_the_text_before_it_read(tokenizer):
    cut = tokenizer.cut("import os\nprint")
    assert cut.spell == "print"
    assert tokenizer.decode(cut.read) == "import os\n"


@given(st.text("abcdef_ (\n", min_size=1, max_size=70))
def test_tokens_that_spell_a_text_begin_it_or_continue_beyond_it(tokenizer, text):
    fitting = {i for i, t in enumerate(tokenizer.texts) if t and (t.startswith(text) or text.startswith(t))}
    assert set(tokenizer.spelling(text)) == fitting
    assert set(tokenizer.beginning(text)) == {i for i in fitting if text.startswith(tokenizer.texts[i])}


PRE_TOKENIZERS = {
    **{name: split.pre_tokenizer() for name, split in tokenizer_file._SPLITS.items()},
    "the bundled model's": tiny.tokenizer().pre_tokenizer,
    "a blank in front": pre_tokenizers.ByteLevel(add_prefix_space=True),
    "blanks replaced": pre_tokenizers.Metaspace(prepend_scheme="first"),
    "blanks dropped": pre_tokenizers.WhitespaceSplit(),
    "none": None,
}


@pytest.mark.parametrize("kind", PRE_TOKENIZERS)
def test_a_text_that_goes_on_from_another_is_cut_as_if_it_were_the_first(tokenizer, kind, monkeypatch):
    spans = SimpleNamespace(bpe=SimpleNamespace(pre_tokenizer=PRE_TOKENIZERS[kind]), _latest_spans=("", []))
    spans._spans_from = lambda *given: Tokenizer._spans_from(spans, *given)

    @given(PIECES, st.lists(st.tuples(st.integers(0, 12), st.one_of(CODE, PIECES)), max_size=4))
    def edited(text, edits):
        for deleted, typed in edits:
            text = text[: len(text) - deleted] + typed
            assert Tokenizer._spans(spans, text) == Tokenizer._spans_from(spans, text, 0)

    edited()


def test_a_key_cuts_only_the_end_of_a_long_text_again(tokenizer, monkeypatch):
    searched, original = [], Tokenizer._spans_from
    monkeypatch.setattr(
        Tokenizer,
        "_spans_from",
        lambda self, text, first: (searched.append(len(text) - first), original(self, text, first))[1],
    )
    text = tiny.SAMPLE[:2000]
    for size in range(1900, 2000):
        tokenizer.cut(text[:size])
    assert max(searched[1:]) < 120
