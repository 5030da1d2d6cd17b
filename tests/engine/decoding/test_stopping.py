"""In the middle of a line, a fill ends at the text behind the gap unless one of its brackets is still open."""

import numpy as np
import pytest
from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.drafting import Drafter, NgramLookup
from mercury_engine.decoding.autoregressive.speculation import NextTokens
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.text.ends import find_end
from mercury_lab.engine import Engine

from tests.support import tiny
from tests.support.asking import answered


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Engine:
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("endings"), rank=0))


def accepted(engine: Engine, text: str, suffix: str) -> Hypothesis:
    tokens = engine.tokenizer.encode(text)
    found = Hypothesis(engine.decoder.rules, FillRequest("", suffix=(suffix,)), [], len(tokens) + 4)
    for token in tokens:
        found.accept(token, 0.5)
    return found


def chosen(engine: Engine, suffix: str, written: str, likely: str) -> str:
    """The token chosen after a written text when the model is nearly certain of one; "end" for the end."""
    [token] = engine.tokenizer.encode(likely)
    rules, found = engine.decoder.rules, accepted(engine, written, suffix)
    logp_WV = np.full((1, engine.reader.config.vocab_size), -20.0, np.float32)
    logp_WV[0, token] = -1e-4
    following = NextTokens([found], [[]], Drafter((), NgramLookup()), 0.0)
    best, *_ = following.choose(found, following.places[0][0], answered(logp_WV, following.question), 0)
    return "end" if best == rules.end_id else rules.texts[best]


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
    rules = engine.decoder.rules
    inside, between = rules.stop_tokens(")\n", True, "x"), rules.stop_tokens("\n", True, "x")
    assert inside is not None and inside.is_certain
    assert between is not None and not between.is_certain
    [line_break] = engine.tokenizer.encode("\n")
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
    found = accepted(joining, "else" + likely, "\n")
    assert found.leaves_gap
    assert found.text() == line
    assert "".join(slot.text for slot in found.view()) == line
