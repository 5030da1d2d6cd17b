"""Which beginning of a fill becomes the answer."""

from dataclasses import replace

import numpy as np
import pytest
from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.drafting import Drafter, NgramLookup
from mercury_engine.decoding.autoregressive.speculation import NextTokens
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.results import Cutter
from mercury_engine.utility import Utility

from tests.support import tiny
from tests.support.asking import answered, rules_of

ASKED = FillRequest("", utility=Utility(), multiline=True)
PROSE = FillRequest("# ", utility=Utility(), multiline=True, prose=True)


def accepted(asked: FillRequest, *slots: tuple[str, float], ended: bool = False) -> Hypothesis:
    """A hypothesis of these texts with these probabilities; the last one is the end marker's if it ended."""
    rules = rules_of(*(text for text, _ in slots))
    written = Hypothesis(rules, asked, [], 16)
    for token, (_, probability) in enumerate(slots):
        written.accept(rules.end_id if ended and token == len(slots) - 1 else token, probability)
    return written


def test_an_unsure_end_is_cut_off_and_the_next_text_tells_where_the_word_ends():
    slots = ("a", 0.9), (" b", 0.5), (" c", 0.5)
    asked = [FillRequest("", give_up_below=least, prose=True) for least in (0.4, 0.6, 0.95)]
    cuts = [Cutter(accepted(each, *slots)).best() for each in asked]
    assert [cut.text for cut in cuts] == ["a b", "a", ""]
    assert cuts[0].confidence == pytest.approx(0.45)


@pytest.mark.parametrize("asked", [ASKED, FillRequest("")])
def test_tokens_whose_bytes_are_no_characters_are_never_shown(asked):
    written = accepted(asked, ("a = f", 0.99), ("(x);", 0.99), ("\ufffd", 0.99), (" b", 0.99), ("", 0.99), ended=True)
    cut = Cutter(written).best()
    assert (cut.text, cut.is_finished) == ("a = f(x);", False)


def test_half_an_expression_is_never_shown():
    slots = ("item.price_of_all", 0.95), (" *", 0.1), (" item", 0.9), ("", 0.9)
    assert Cutter(accepted(ASKED, *slots, ended=True)).best().text == ""
    assert Cutter(accepted(PROSE, *slots, ended=True)).best().text == "item.price_of_all"


def test_the_beginning_that_is_worth_most_is_shown_not_the_surest():
    written = accepted(ASKED, ("self", 0.95), (".measure", 0.85), ("(argument)", 0.9), (";", 0.1), (" or", 0.9))
    assert Cutter(written).best().text == "self.measure(argument)"


def test_a_doubtful_end_that_would_cost_more_than_it_saves_is_left_out():
    written = accepted(ASKED, ("self.measurement", 0.95), ("; x + 1", 0.4), ("", 0.9), ended=True)
    assert Cutter(written).best().text == "self.measurement"


def test_no_beginning_ends_inside_a_word():
    written = accepted(PROSE, ("meas", 0.9), ("ure", 0.9), (" it", 0.9))
    found = [Cutter(written).after(tokens) for tokens in (1, 2, 3)]
    assert [cut.text for cut in found] == ["", "measure", "measure"]
    assert [cut.confidence for cut in found] == pytest.approx([0.9, 0.81, 0.729])


def test_a_token_counts_for_every_run_of_marks_that_it_begins_with(tmp_path):
    rules = tiny.load(tiny.folder(tmp_path / "model", rank=0)).decoder.rules
    closing = next(token for token, text in enumerate(rules.texts) if text[:1] == ")")
    likely = np.zeros((1, len(rules.texts)), np.float32)
    likely[0, closing] = np.log(9)

    def closings(likely, begun=""):
        hypothesis = Hypothesis(rules, FillRequest("", multiline=True), [], 4, begun, writes_on=True)
        following = NextTokens([hypothesis], [[]], Drafter((), NgramLookup()), 0.0)
        [[place]] = following.places
        *_, closings = following.choose(hypothesis, place, answered(likely, following.question), 0)
        return closings, int((~place.hidden_V).sum()) - 1  # the end is not written

    [(mark, share), *_], free = closings(likely)
    begins = sum(text.startswith(")") for text in rules.texts)
    assert mark == ")" and share == pytest.approx((begins + 8) / (free + 8), rel=1e-5)
    assert closings(likely, begun="x")[0] == ()
    likely[0, closing], likely[0, rules.texts.index("a")] = 0, 9
    assert closings(likely)[0] == ()


def test_of_several_lines_only_whole_ones_are_shown():
    written = accepted(PROSE, ("total = left", 0.95), ("\n    call", 0.9), ("(left", 0.9), (", right", 0.2))
    assert Cutter(written).after(3).text == "total = left"


def test_the_beginning_of_a_line_that_turns_out_to_stand_below_is_not_shown():
    asked = replace(ASKED, near="    ", suffix=("\n    check(a)\n",))
    written = accepted(asked, ("a = 1", 0.9), ("\n    check", 0.9), ("(a)", 0.9), ("", 0.9), ended=True)
    assert Cutter(written).after(2).text == ""
    assert Cutter(written).after(1).text == "a = 1"


def test_a_text_takes_along_what_alone_closes_its_line():
    asked = FillRequest("area(", suffix=("\n",), utility=Utility())
    written = accepted(asked, ("width, height", 0.95), (");", 0.4), ("", 0.9), ended=True)
    cut = Cutter(written).best()
    found = Cutter(written).closed(cut, lambda _: None)
    assert (cut.text, found.text, found.confidence) == ("width, height", "width, height);", cut.confidence)


def test_what_breaks_the_syntax_or_stands_behind_the_cursor_is_not_taken_along():
    slots = ("width, height", 0.95), (")];", 0.4), ("", 0.9)
    for suffix, check in (("\n", lambda text: text.find("]")), (")\n", None)):
        asked = FillRequest("area(", suffix=(suffix,), utility=Utility())
        cutter = Cutter(accepted(asked, *slots, ended=True))
        assert cutter.closed(cutter.best(), check).text == "width, height"
