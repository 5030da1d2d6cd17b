"""Which beginning of a fill becomes the answer."""

import pytest
from mercury_engine.api import FillRequest
from mercury_engine.denoising.canvas import Canvas, Vocabulary
from mercury_engine.denoising.loop import Denoiser
from mercury_engine.results import beginnings, cut_after, most_worth, sure_enough
from mercury_engine.worth import Worth

from tests.support import tiny


@pytest.fixture(scope="module")
def denoiser(tmp_path_factory) -> Denoiser:
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("results") / "model", rank=0)).denoiser


def settled(denoiser: Denoiser, *slots: tuple[str, float], ended: bool = False) -> Canvas:
    """A canvas whose slots hold these texts, with these chances; the last chance is the end marker's if it ended."""
    texts = [text for text, _ in slots]
    vocabulary = Vocabulary(texts, len(texts), len(texts) + 1)
    canvas = Canvas(vocabulary, [len(texts)] * 16, 0, multiline=True)
    for token, (_, chance) in enumerate(slots):
        canvas.settle(vocabulary.end_id if ended and token == len(slots) - 1 else token, chance)
    return canvas


class Spelling:
    """Decodes the tokens of a canvas by its own vocabulary."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas

    def decode(self, ids: list[int]) -> str:
        return self.canvas.vocabulary.spelled(ids)


@pytest.fixture
def reading(denoiser, monkeypatch):
    def read(canvas: Canvas) -> Denoiser:
        monkeypatch.setattr(denoiser, "tokenizer", Spelling(canvas))
        return denoiser

    return read


def test_an_unsure_end_is_cut_off_and_the_next_text_tells_where_the_word_ends(denoiser, reading):
    canvas = settled(denoiser, ("a", 0.9), (" b", 0.5), (" c", 0.5))
    denoiser = reading(canvas)
    assert sure_enough(canvas, FillRequest("", give_up_below=0.4), denoiser).text == "a b"
    assert sure_enough(canvas, FillRequest("", give_up_below=0.4), denoiser).confidence == pytest.approx(0.45)
    assert sure_enough(canvas, FillRequest("", give_up_below=0.6), denoiser).text == "a"
    assert sure_enough(canvas, FillRequest("", give_up_below=0.95), denoiser).text == ""


def test_a_fill_that_is_sure_to_its_end_stays_whole(denoiser, reading):
    canvas = settled(denoiser, ("a", 0.9), (" =", 0.9), ("", 0.9), ended=True)
    cut = sure_enough(canvas, FillRequest("", give_up_below=0.5), reading(canvas))
    assert (cut.text, cut.is_finished) == ("a =", True)
    shorter = sure_enough(canvas, FillRequest("", give_up_below=0.75), reading(canvas))
    assert (shorter.text, shorter.is_finished) == ("a", False)


def test_the_beginning_that_is_worth_most_is_shown_not_the_surest(denoiser, reading):
    canvas = settled(denoiser, ("self", 0.95), (".measure", 0.8), ("(argument)", 0.9), (" or", 0.1))
    assert most_worth(canvas, Worth(), reading(canvas)).text == "self.measure(argument)"


def test_a_doubtful_end_that_would_cost_more_than_it_saves_is_left_out(denoiser, reading):
    canvas = settled(denoiser, ("self.measurement", 0.95), (" + 1", 0.4), ("", 0.9), ended=True)
    assert most_worth(canvas, Worth(), reading(canvas)).text == "self.measurement"


def test_a_line_is_finished_where_its_end_is_nearly_as_sure(denoiser, reading):
    canvas = settled(denoiser, ("self.measurement", 0.95), (" + 1", 0.85), ("", 0.9), ended=True)
    cut = most_worth(canvas, Worth(), reading(canvas))
    assert (cut.text, cut.is_finished) == ("self.measurement + 1", True)


def test_a_beginning_that_loses_more_than_it_can_gain_is_not_cut(denoiser, reading, monkeypatch):
    canvas = settled(denoiser, ("self", 0.2), (".a", 0.5))
    monkeypatch.setattr("mercury_engine.results.cut_after", lambda *_: pytest.fail("a cut was made"))
    assert most_worth(canvas, Worth(), reading(canvas)).text == ""


def test_nothing_is_left_of_a_fill_that_is_worth_nothing(denoiser, reading):
    canvas = settled(denoiser, ("self", 0.2), (".a", 0.5))
    assert most_worth(canvas, Worth(), reading(canvas)).text == ""


def test_no_beginning_ends_inside_a_word(denoiser, reading):
    canvas = settled(denoiser, ("meas", 0.9), ("ure", 0.9), (" it", 0.9))
    found = beginnings(canvas, reading(canvas))
    assert [cut.text for cut in found] == ["", "measure", "measure"]
    assert [cut.confidence for cut in found] == pytest.approx([0.9, 0.81, 0.729])


def test_judging_a_canvas_leaves_it_as_it_is(denoiser, reading):
    canvas = settled(denoiser, ("f", 0.9), ("(x", 0.5), (")", 0.5), ("", 0.5), ended=True)
    before = (list(canvas.ids), canvas.settled, canvas.confidence, list(canvas.chances), canvas.ended)
    most_worth(canvas, Worth(), reading(canvas))
    sure_enough(canvas, FillRequest("", give_up_below=0.9), reading(canvas))
    assert before == (canvas.ids, canvas.settled, canvas.confidence, canvas.chances, canvas.ended)


def test_a_line_is_finished_where_the_model_breaks_it(denoiser, reading):
    canvas = settled(denoiser, ("total = left", 0.95), ("\n", 0.9), ("    pri", 0.3), ("nt", 0.9))
    cut = most_worth(canvas, Worth(), reading(canvas))
    assert (cut.text, cut.is_finished, cut.confidence) == ("total = left", True, pytest.approx(0.855))


def test_of_several_lines_only_whole_ones_are_shown(denoiser, reading):
    canvas = settled(denoiser, ("total = left", 0.95), ("\n    call", 0.9), ("(left", 0.9), (", right", 0.2))
    assert cut_after(canvas, 3, reading(canvas)).text == "total = left"


def test_brackets_that_the_model_would_close_are_closed(denoiser, reading):
    canvas = settled(denoiser, ("f", 0.9), ("(x", 0.9), (")", 0.1))
    assert cut_after(canvas, 2, reading(canvas)).text == "f(x)"
