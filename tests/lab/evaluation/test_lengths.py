"""Rules for the length of a gap: constants are refitted, and each rule is measured on other files."""

import json
import math

import pytest
from mercury_engine.decoding.diffusion.length import LengthBias
from mercury_engine.errors import RequestError
from mercury_lab.evaluation import lengths
from mercury_lab.evaluation.lengths import LONGEST, MeasuredGap, figures, fitted, searched

from tests.support import masked, tiny

BIAS = LengthBias((0.5, 0.5), (0.3, 0.05), 0.2)


def made(length: int, own: int | None = None) -> MeasuredGap:
    """A gap whose masks are as sure as usual, and half as sure again near its length."""
    sure = (BIAS.at(n) * (1 + 0.5 * math.exp(-abs(n - length))) for n in range(1, LONGEST + 1))
    return MeasuredGap(length, tuple(sure), own)


def test_constants_are_refitted_from_lengths_that_are_not_near_the_true_one():
    found = fitted([made(length) for length in range(1, LONGEST, 3)])
    assert [found.at(n) for n in range(1, 30)] == pytest.approx([BIAS.at(n) for n in range(1, 30)], abs=0.02)


def test_a_search_with_the_right_constants_finds_the_length_and_counts_its_passes():
    slots, tried = searched(made(10), BIAS)
    assert slots == 10
    assert tried == 1 + 4 + 2  # 8; then up to 12, two of them worse; then down, two worse


def test_rules_that_the_model_lacks_are_left_out():
    assert "the model's own end" not in figures([made(10)], BIAS)
    found = figures([made(10, own=11), made(4, own=4)], BIAS)
    assert (found["the model's own end"]["right"], found["the model's own end"]["within_two"]) == (0.5, 1.0)
    assert found["refitted constants"]["right"] == 1.0


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
    assert ("the model's own end" in record["rules"]) == (kind == "canvas")


def test_models_that_need_no_length_are_refused(tmp_path):
    tiny.folder(tmp_path / "causal", rank=0)
    masked.folder(tmp_path / "blocks", "SDAR")
    for name in ("causal", "blocks"):
        with pytest.raises(RequestError, match="needs no length"):
            lengths.main(["--model", str(tmp_path / name), "--device", "cpu"])
