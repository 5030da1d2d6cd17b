"""Rules for the length of a gap: constants are refitted, and each rule is measured on other files."""

import json
import math

import pytest
from mercury_engine.decoding.diffusion.length import LengthBias
from mercury_lab.evaluation import lengths
from mercury_lab.evaluation.lengths import LONGEST, MeasuredGap, Written, figures, searched

from tests.support import masked, tiny

BIAS = LengthBias(0.5, 0.5, 0.3, 0.05, 0.2)


def made(length: int, own: int = 1) -> MeasuredGap:
    """A gap whose masks are as sure as usual, and half as sure again near its length; only its length gives the text.

    The model's own rule writes `own` tokens.
    """
    sure = (BIAS.at(n) * (1 + 0.5 * math.exp(-abs(n - length))) for n in range(1, LONGEST + 1))

    def at(slots: int) -> Written:
        return Written(slots, -abs(slots - length), steps=2, right=slots == length)

    return MeasuredGap(length, tuple(sure), at, at(own))


def test_a_search_with_the_right_constants_finds_the_length_and_counts_its_passes():
    slots, tried = searched(made(10), BIAS)
    assert slots == 10
    assert tried == 1 + 4 + 2  # 8; then up to 12, two of them worse; then down, two worse


def test_each_rule_counts_its_right_texts_and_its_passes():
    found = figures([made(10, own=11), made(4, own=4)], BIAS)
    own = found["the model's own"]
    assert (own["exact"], own["length_right"], own["within_two"], own["passes"]) == (0.5, 0.5, 1.0, 2.0)
    known = found["known length"]
    assert (known["exact"], known["won"], known["lost"], known["passes"]) == (1.0, 1, 0, 2.0)
    assert found["refitted constants"]["exact"] == 1.0
    ranked = found["likeliest of eight lengths"]  # 10 is none of them
    assert (ranked["exact"], ranked["passes"]) == (0.5, 16.0)


@pytest.mark.parametrize("kind", ["full attention", "canvas"])
def test_the_command_measures_both_kinds_of_masked_models(kind, tmp_path, capsys):
    folder = tmp_path / "model"
    if kind == "canvas":
        tiny.folder(folder)
    else:
        masked.folder(folder, "Open-dCoder")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("a.py", "b.py"):
        (corpus / name).write_text(tiny.SAMPLE)
    assert (
        lengths.main(["--model", str(folder), "--corpus", str(corpus), "--limit", "4", "--device", "cpu", "--json"])
        == 0
    )
    record = json.loads(capsys.readouterr().out)
    assert len(record["length_bias"]) == 5 and record["fitted_on"] and record["measured_on"]
    assert record["rules"].keys() == record["rules_where_fitted"].keys()
