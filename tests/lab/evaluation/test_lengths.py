"""The constants of the search for a gap's length are fitted, and measured on other files."""

import json

import pytest
from mercury_engine.decoding.diffusion.length import LengthBias
from mercury_engine.errors import RequestError
from mercury_lab.evaluation import lengths

from tests.support import masked, tiny

BIAS = LengthBias(0.5, lengths.RATES[12], 0.3, lengths.RATES[5], 0.2)


def test_the_fit_finds_the_constants_and_leaves_out_what_is_near_the_true_length():
    sure = [BIAS.at(n) + (abs(n - 12) < 3) for n in range(1, lengths.LONGEST + 1)]
    found = lengths.fitted_bias([(12, sure)])
    assert [found.at(n) for n in (1, 8, 20)] == pytest.approx([BIAS.at(n) for n in (1, 8, 20)])


def test_the_command_fits_and_measures_a_model_that_searches(tmp_path, capsys):
    folder, _ = masked.folder(tmp_path / "model", "Open-dCoder")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("a.py", "b.py"):
        (corpus / name).write_text(tiny.SAMPLE)
    options = ["--corpus", str(corpus), "--limit", "4", "--device", "cpu", "--json"]
    assert lengths.main(["--model", str(folder), *options]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["length_bias"]) == 5 and record["fitted_on"] and record["measured_on"]
    assert set(record["rules"]) == {"the model's own", "published constants", "fitted constants", "known length"}
    assert record["rules"]["the model's own"] == record["rules"]["published constants"]  # it has none of its own
    with pytest.raises(RequestError, match="searches no length"):
        lengths.main(["--model", str(tiny.folder(tmp_path / "causal", rank=0)), *options])
