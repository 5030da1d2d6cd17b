"""In the middle of a line, a fill ends at the text behind the gap unless one of its brackets is still open."""

import numpy as np
import pytest
from mercury_engine.decoding.autoregressive.drafting import Drafter
from mercury_engine.decoding.autoregressive.next_tokens import NextTokens
from mercury_engine.decoding.autoregressive.ngram_lookup import NgramLookup
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.stopping import StoppingCriteria, find_end
from mercury_lab.engine import Engine

from tests.support import tiny
from tests.support.asking import answered


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Engine:
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("endings"), rank=0))


def accepted(engine: Engine, tokens: list[int], **more) -> Hypothesis:
    found = Hypothesis(engine.decoder.rules.vocabulary, [], len(tokens) + 4, **more)
    for token in tokens:
        found.accept(token, 0.5)
    return found


def chosen(engine: Engine, suffix: str, written: str, likely: str, multiline: bool = False) -> str:
    """The token chosen after a written text when the model is nearly certain of one; "end" for the end."""
    [token] = engine.tokenizer.encode(likely)
    vocabulary = engine.decoder.rules.vocabulary
    found = accepted(engine, engine.tokenizer.encode(written), follows=suffix, multiline=multiline)
    logp_WV = np.full((1, engine.reader.config.vocab_size), -20.0, np.float32)
    logp_WV[0, token] = -1e-4
    following = NextTokens(engine.decoder.rules, Drafter((), NgramLookup()), 0.0, [found], [[]])
    best, *_ = following.choose(found, following.places[0][0], answered(logp_WV, following.question), 0)
    return "end" if best == vocabulary.end_id else vocabulary.texts[best]


@pytest.mark.parametrize(
    ("suffix", "written", "likely", "expected"),
    [
        (")\n", "x", ")", "end"),
        ("]\n", "x", "]", "end"),
        (", y)\n", "x", ",", "end"),
        (")\n", "f(x", ")", ")"),
        (", y)\n", "f(x", ",", ","),
        ("]\n", "f(x", "]", "]"),
        (";\n", "x", "\n", "end"),
        (")\n", "x", ".", "."),
        (" = 1\n", "x", " =", "end"),
        (" = 1\n", "f(x", " =", "end"),
        (" and x\n", "a >", " ", " "),
    ],
)
def test_a_fill_ends_before_the_text_that_is_already_there(engine, suffix, written, likely, expected):
    assert chosen(engine, suffix, written, likely) == expected


@pytest.mark.parametrize(
    ("text", "follows", "end"),
    [
        ('path, "r") as file:', ") as file:", 9),
        ('"select":', ":\n", 8),
        ('"a: b"', ":\n", None),
        ("{ return sum + item }, 0);", ", 0);", 21),
        ("f(x)", ")", None),
        ("f(x))", ")", 4),
        ("[f(x)]", ")", None),
        ("x", ")", None),
        ("", ")", None),
        (")", ")", 0),
        ("a, b", " + c", None),
        ("a, b", "", None),
    ],
)
def test_a_token_that_runs_beyond_the_end_is_cut_there(text, follows, end):
    assert find_end(text, follows) == end


def test_between_lines_a_line_break_may_belong_to_the_fill(engine):
    tokenizer = engine.tokenizer
    stopping = StoppingCriteria(tokenizer, engine.decoder.rules.vocabulary.texts)
    inside, between = stopping.at(")\n", True, "x"), stopping.at("\n", True, "x")
    assert inside is not None and inside.is_certain
    assert between is not None and not between.is_certain
    [line_break] = tokenizer.encode("\n")
    assert line_break not in inside.tokens and line_break in between.tokens


@pytest.fixture(scope="module")
def joining(tmp_path_factory) -> Engine:
    """A vocabulary with a token that joins a line break to the text before it, as Qwen's does."""
    folder = tiny.folder(tmp_path_factory.mktemp("joining"), rank=0, vocab_size=502)
    tokenizer = tiny.tokenizer()
    tokenizer.add_tokens([":\n", ")\r\n"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return tiny.load(folder)


@pytest.mark.parametrize(("likely", "line"), [(":\n", "else:"), (")\r\n", "else)")])
def test_a_token_that_joins_text_and_line_break_writes_its_text_and_ends_the_line(joining, likely, line):
    assert chosen(joining, "\n", "else", likely) == likely
    rules = joining.decoder.rules
    found = accepted(joining, joining.tokenizer.encode("else" + likely), follows="\n")
    assert rules.leaves_gap(found)
    assert rules.text(found) == line
    assert "".join(slot.text for slot in found.view()) == line
