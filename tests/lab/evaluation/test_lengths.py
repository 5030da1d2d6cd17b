"""Rules for the length of a gap: constants are refitted, and each rule is measured on other files."""

import json
import math

import pytest
from mercury_engine.api import FillRequest
from mercury_engine.decoding.diffusion.length import LengthBias
from mercury_engine.errors import RequestError
from mercury_lab.evaluation import lengths
from mercury_lab.evaluation.gaps import Gap
from mercury_lab.evaluation.lengths import LONGEST, MeasuredGap, Written, figures, fitted_bias, searched

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


def test_constants_are_refitted_from_lengths_that_are_not_near_the_true_one():
    found = fitted_bias([made(length) for length in range(1, LONGEST, 3)])
    assert [found.at(n) for n in range(1, 30)] == pytest.approx([BIAS.at(n) for n in range(1, 30)], abs=0.02)


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


def test_slots_are_counted_after_the_part_of_a_word_that_stands_before_the_gap(tmp_path):
    """A canvas begins with that part: what is measured in so many masks is what a fill of so many slots sees."""
    engine = tiny.load(tiny.folder(tmp_path))
    request = FillRequest("def blueprint(self):\n    return self._blue", suffix=("\n",), max_slots=4, max_steps=1)
    seen, denoise = [], engine.parts.denoiser.denoise_together
    engine.parts.denoiser.denoise_together = lambda all_: (
        seen.extend(each.ids_R.tolist() for each in all_) or denoise(all_)
    )
    engine.fill(request)
    lengths._masks(engine, Gap("rest_of_line", request, request.near, "print", tmp_path, "python"))(4)
    assert seen[0] == seen[1] and engine.decoder.contexts.cut(request).spell


def test_models_that_need_no_length_are_refused(tmp_path):
    tiny.folder(tmp_path / "causal", rank=0)
    masked.folder(tmp_path / "blocks", "SDAR")
    for name in ("causal", "blocks"):
        with pytest.raises(RequestError, match="needs no length"):
            lengths.main(["--model", str(tmp_path / name), "--device", "cpu"])
