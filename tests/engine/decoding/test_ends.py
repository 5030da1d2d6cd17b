"""Where a fill of several lines ends that somebody asked for."""

import pytest
from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.fit import MOST_BELOW_CHARS, line_ends, lines_below, writes_on
from mercury_engine.utility import Utility

from tests.support import scripted_network

ABOVE = "def total(rows):\n"
BELOW = "\n    return done\n\n\nmain()\n"
WRITTEN = "    a = 1\n    b = 2\n    c = 3\n    d = 4\n    e = 5\n"
ENDED = "    a = 1\n    b = 2"


@pytest.fixture
def engine(tmp_path):
    """An engine that always goes on with WRITTEN, and finds BELOW likely after the line `b = 2` only."""
    made, network = scripted_network.engine(tmp_path / "model")
    spelled = made.tokenizer.encode

    def script(before: list[int]) -> dict[int, float]:
        _, found, text = made.tokenizer.decode(before).rpartition(ABOVE)
        nexts = {}
        if found and WRITTEN.startswith(text) and text != WRITTEN:
            nexts = {spelled("@")[0]: 0.1, spelled(WRITTEN[len(text) :])[0]: 0.9}
        if found and text.startswith(ENDED) and BELOW.startswith(after := text[len(ENDED) :]) and after != BELOW:
            nexts.setdefault(spelled(BELOW[len(after) :])[0], 0.05)
        return nexts

    network.script = script
    return made


def test_a_fill_ends_where_the_text_below_is_likeliest(engine):
    fill = engine.fill(FillRequest(near=ABOVE, suffix=(BELOW,), multiline=True))
    assert (fill.text, fill.is_finished) == (ENDED, True)


def test_a_fill_whose_time_is_up_keeps_the_best_end_so_far(engine):
    assert engine.fill(FillRequest(near=ABOVE, suffix=(BELOW,), multiline=True, deadline_ms=0.0)).text == ""


def test_the_ends_are_those_of_lines_where_no_bracket_is_open():
    text = "a(\n  1,\n)\n\nb\nc"
    assert [text[:end] for end in line_ends(text, is_whole=False)] == ["a(\n  1,\n)", "a(\n  1,\n)\n\nb"]
    assert [text[:end] for end in line_ends(text, is_whole=True)][-1] == text
    windows = text.replace("\n", "\r\n")
    assert [windows[:end] for end in line_ends(windows, is_whole=False)][-1] == windows[: windows.index("b") + 1]


@pytest.mark.parametrize(
    ("suffix", "below"),
    [
        ("\n\n  b\n\n  c\n  d\n  e\n", "\n\n  b\n\n  c"),
        (")\n  b\n", ""),
        ("\n \n", ""),
        ("", ""),
        ("\n" + "b" * 999, "\n" + "b" * (MOST_BELOW_CHARS - 1)),
    ],
)
def test_the_lines_below_are_the_first_that_are_not_blank(suffix, below):
    assert lines_below(suffix) == below


@pytest.mark.parametrize(
    ("change", "passes_over_its_end"),
    [
        ({}, True),
        ({"multiline": False}, False),
        ({"prose": True}, False),
        ({"utility": Utility()}, False),
        ({"max_steps": 0}, False),
        ({"suffix": (")\n",)}, False),
        ({"suffix": ("\n",)}, False),
        ({"suffix": ("\n",), "near": ABOVE + "    a = 1\n"}, True),
        ({"near": ABOVE + "    a ="}, False),
        ({"near": ABOVE.rstrip()}, True),
    ],
)
def test_only_code_of_several_lines_that_somebody_asked_for_writes_on(change, passes_over_its_end):
    asked = FillRequest(**{"near": ABOVE, "suffix": (BELOW,), "multiline": True} | change)
    assert writes_on(asked) is passes_over_its_end
