"""Which of several fills of one line comes first."""

import pytest
from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.fit import is_ranked
from mercury_engine.utility import Utility

from tests.support import scripted_network

ABOVE = "def total(rows):\n    x = "
BELOW = "\n    return x\n"
MARKERS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|endoftext|>")
ASKED = FillRequest(near=ABOVE, suffix=(BELOW,), candidates=2)


def scripted(folder, texts: dict[str, float], fitting: str, markers=MARKERS):
    """An engine that writes one of the texts after `x = `, and expects BELOW after the `fitting` one only."""
    made, network = scripted_network.engine(folder, markers)

    def script(before: list[int]) -> dict[int, float]:
        _, _, written = made.tokenizer.decode(before).rpartition("x = ")
        nexts: dict[int, float] = {}
        for text, probability in texts.items():
            if text.startswith(written) and text != written:
                nexts[made.tokenizer.encode(text[len(written) :])[0]] = probability if not written else 0.9
            if written.startswith(text):
                after = written[len(text) :]
                if BELOW.startswith(after) and after != BELOW:
                    likely = 0.9 if text == fitting or not after else 1e-6
                    nexts[made.tokenizer.encode(BELOW[len(after) :])[0]] = likely
        return nexts

    network.script = script
    return made


def test_the_text_that_the_lines_below_fit_comes_before_the_surest(tmp_path):
    engine = scripted(tmp_path / "model", {"{}": 0.6, "0": 0.4}, fitting="0")
    fill = engine.fill(ASKED)
    assert [fill.text, *(each.text for each in fill.others)] == ["0", "{}"]


def test_a_model_with_a_gap_format_also_fills_as_it_was_pretrained(tmp_path):
    made, network = scripted_network.engine(tmp_path / "model", MARKERS)
    spelled = made.tokenizer.encode

    def script(before: list[int]) -> dict[int, float]:
        text = made.tokenizer.decode(before)
        _, marked, gap = text.rpartition(MARKERS[1])
        written = text.rpartition("x = ")[2]
        if not written:
            return {spelled("0" if marked and "return" in gap else "1")[0]: 0.9}
        return {spelled("\n")[0]: 0.9} if written in ("0", "1") else {}

    network.script = script
    fill = made.fill(ASKED)
    assert {"0", "1"} <= {fill.text, *(each.text for each in fill.others)}
    alone = made.fill(FillRequest(near=ABOVE, suffix=(BELOW,)))
    assert (alone.text, alone.others) == ("1", ())


@pytest.mark.parametrize("multiline", [False, True], ids=["ranking", "ends"])
def test_no_pass_follows_a_deadline_that_is_reached_while_the_fill_is_written(tmp_path, monkeypatch, multiline):
    made, network = scripted_network.engine(tmp_path / "model", MARKERS)
    near = ABOVE.rpartition("\n")[0] + "\n" if multiline else ABOVE
    network.script = lambda before: {made.tokenizer.encode("a")[0]: 0.6, made.tokenizer.encode("b")[0]: 0.4}
    now = "mercury_engine.scheduler.time.perf_counter"
    monkeypatch.setattr(now, lambda: float(len(network.passes) >= 6))
    late = FillRequest(near=near, suffix=(BELOW,), candidates=2, multiline=multiline, deadline_ms=500.0)
    assert made.fill(late).tokens and len(network.passes) == 6


@pytest.mark.parametrize(
    ("change", "ranked"),
    [
        ({}, True),
        ({"candidates": 1}, False),
        ({"multiline": True}, False),
        ({"prose": True}, False),
        ({"utility": Utility()}, False),
        ({"max_steps": 4}, False),
        ({"suffix": (")\n",)}, False),
        ({"suffix": ()}, False),
    ],
)
def test_one_line_of_code_with_lines_below_is_ranked_if_several_fills_are_asked_for(change, ranked):
    asked = {"near": ABOVE, "suffix": (BELOW,), "candidates": 2} | change
    assert is_ranked(FillRequest(**asked)) is ranked
