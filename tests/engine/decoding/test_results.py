"""Which beginning of a fill becomes the answer."""

from dataclasses import replace

import numpy as np
import pytest
from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.drafting import Drafter
from mercury_engine.decoding.autoregressive.next_tokens import NextTokens
from mercury_engine.decoding.autoregressive.ngram_lookup import NgramLookup
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis, Vocabulary
from mercury_engine.decoding.results import Cutter
from mercury_engine.utility import Utility

from tests.support import tiny
from tests.support.asking import answered

ASKED = FillRequest("", utility=Utility())
PROSE = FillRequest("# ", utility=Utility(), prose=True)


@pytest.fixture(scope="module")
def rules(tmp_path_factory) -> GapRules:
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("results") / "model", rank=0)).decoder.rules


def accepted(rules: GapRules, *slots: tuple[str, float], ended: bool = False) -> Hypothesis:
    """A hypothesis of these texts with these probabilities; the last one is the end marker's if it ended."""
    texts = [text for text, _ in slots]
    vocabulary = Vocabulary(texts, len(texts), len(texts) + 1)
    written = Hypothesis(vocabulary, [], 16, multiline=True)
    for token, (_, probability) in enumerate(slots):
        written.accept(vocabulary.end_id if ended and token == len(slots) - 1 else token, probability)
    return written


class Spelling:
    """Decodes the tokens of a hypothesis by its own vocabulary."""

    def __init__(self, written: Hypothesis) -> None:
        self.written = written

    def decode(self, ids: list[int]) -> str:
        return self.written.vocabulary.spelled(ids)


@pytest.fixture
def reading(rules, monkeypatch):
    def read(written: Hypothesis) -> GapRules:
        monkeypatch.setattr(rules, "tokenizer", Spelling(written))
        return rules

    return read


def test_an_unsure_end_is_cut_off_and_the_next_text_tells_where_the_word_ends(rules, reading):
    written = accepted(rules, ("a", 0.9), (" b", 0.5), (" c", 0.5))
    rules = reading(written)
    cuts = [
        Cutter(written, FillRequest("", give_up_below=least, prose=True), rules).best() for least in (0.4, 0.6, 0.95)
    ]
    assert [cut.text for cut in cuts] == ["a b", "a", ""]
    assert cuts[0].confidence == pytest.approx(0.45)


@pytest.mark.parametrize("asked", [ASKED, FillRequest("")])
def test_tokens_whose_bytes_are_no_characters_are_never_shown(rules, reading, asked):
    written = accepted(rules, ("a = f", 0.99), ("(x);", 0.99), ("\ufffd", 0.99), (" b", 0.99), ("", 0.99), ended=True)
    cut = Cutter(written, asked, reading(written)).best()
    assert (cut.text, cut.is_finished) == ("a = f(x);", False)


def test_half_an_expression_is_never_shown(rules, reading):
    written = accepted(rules, ("item.price_of_all", 0.95), (" *", 0.1), (" item", 0.9), ("", 0.9), ended=True)
    assert Cutter(written, ASKED, reading(written)).best().text == ""
    assert Cutter(written, PROSE, reading(written)).best().text == "item.price_of_all"


def test_the_beginning_that_is_worth_most_is_shown_not_the_surest(rules, reading):
    written = accepted(rules, ("self", 0.95), (".measure", 0.85), ("(argument)", 0.9), (";", 0.1), (" or", 0.9))
    assert Cutter(written, ASKED, reading(written)).best().text == "self.measure(argument)"


def test_a_doubtful_end_that_would_cost_more_than_it_saves_is_left_out(rules, reading):
    written = accepted(rules, ("self.measurement", 0.95), ("; x + 1", 0.4), ("", 0.9), ended=True)
    assert Cutter(written, ASKED, reading(written)).best().text == "self.measurement"


def test_no_beginning_ends_inside_a_word(rules, reading):
    written = accepted(rules, ("meas", 0.9), ("ure", 0.9), (" it", 0.9))
    found = [Cutter(written, PROSE, reading(written)).after(tokens) for tokens in (1, 2, 3)]
    assert [cut.text for cut in found] == ["", "measure", "measure"]
    assert [cut.confidence for cut in found] == pytest.approx([0.9, 0.81, 0.729])


def test_a_token_counts_for_every_run_of_marks_that_it_begins_with(rules):
    texts = rules.tokenizer.texts
    closing = next(token for token, text in enumerate(texts) if text[:1] == ")")
    likely = np.zeros((1, len(rules.vocabulary.texts)), np.float32)
    likely[0, closing] = np.log(9)

    def closings(likely, **more):
        hypothesis = Hypothesis(rules.vocabulary, [], 4, multiline=True, writes_on=True, **more)
        following = NextTokens(rules, Drafter((), NgramLookup()), 0.0, [hypothesis], [[]])
        [[place]] = following.places
        *_, closings = following.choose(hypothesis, place, answered(likely, following.question), 0)
        return closings, int((~place.hidden_V).sum()) - 1  # the end is not written

    [(mark, share), *_], free = closings(likely)
    begins = sum(text.startswith(")") for text in texts)
    assert mark == ")" and share == pytest.approx((begins + 8) / (free + 8), rel=1e-5)
    assert closings(likely, begun="x")[0] == ()
    likely[0, closing], likely[0, texts.index("a")] = 0, 9
    assert closings(likely)[0] == ()


def test_of_several_lines_only_whole_ones_are_shown(rules, reading):
    written = accepted(rules, ("total = left", 0.95), ("\n    call", 0.9), ("(left", 0.9), (", right", 0.2))
    assert Cutter(written, PROSE, reading(written)).after(3).text == "total = left"


def test_the_beginning_of_a_line_that_turns_out_to_stand_below_is_not_shown(rules, reading):
    written = accepted(rules, ("a = 1", 0.9), ("\n    check", 0.9), ("(a)", 0.9), ("", 0.9), ended=True)
    written.line, written.below, written.above = "    ", "\n    check(a)\n", ""
    assert Cutter(written, ASKED, reading(written)).after(2).text == ""
    assert Cutter(written, ASKED, reading(written)).after(1).text == "a = 1"


def test_a_text_takes_along_what_alone_closes_its_line(rules, reading):
    asked = FillRequest("area(", suffix=("\n",), utility=Utility())
    written = accepted(rules, ("width, height", 0.95), (");", 0.4), ("", 0.9), ended=True)
    cut = Cutter(written, asked, reading(written)).best()
    found = Cutter(written, asked, rules).closed(cut, lambda _: None)
    assert (cut.text, found.text, found.confidence) == ("width, height", "width, height);", cut.confidence)


def test_what_breaks_the_syntax_or_stands_behind_the_cursor_is_not_taken_along(rules, reading):
    asked = FillRequest("area(", suffix=("\n",), utility=Utility())
    written = accepted(rules, ("width, height", 0.95), (")];", 0.4), ("", 0.9), ended=True)
    cut = Cutter(written, asked, reading(written)).best()
    assert Cutter(written, asked, rules).closed(cut, lambda text: text.find("]")).text == "width, height"
    assert Cutter(written, replace(asked, suffix=(")\n",)), rules).closed(cut, None).text == "width, height"
