"""The evaluation command, and the bundled model behind the command line."""

import json
from pathlib import Path

import pytest
from mercury_engine.errors import ModelNotFound
from mercury_engine.evaluation import gaps, infill

from mercury_lsp import cli

HELD_OUT = Path(__file__).parents[1] / "data" / "held_out"


def test_the_same_seed_draws_the_same_gaps():
    first, second = (list(gaps.gaps(HELD_OUT, 5, 3)) for _ in range(2))
    assert [(g.truth, g.request.near) for g in first] == [(g.truth, g.request.near) for g in second]
    assert first != list(gaps.gaps(HELD_OUT, 5, 4))


def test_a_gaps_text_and_its_context_are_the_file():
    for gap in gaps.gaps(HELD_OUT, 20, 0):
        text = gap.path.read_text("utf-8").replace("\r\n", "\n")
        blocks = "".join((*gap.request.far[1:], gap.request.near)), "".join(gap.request.suffix)
        assert f"{blocks[0]}{gap.truth}{blocks[1]}" in text


def test_a_folder_without_code_is_a_clear_error(tmp_path):
    with pytest.raises(ModelNotFound, match="--corpus"):
        list(gaps.gaps(tmp_path, 1, 0))


@pytest.mark.slow
def test_infill_prints_its_figures_for_the_bundled_model(capsys):
    assert infill.main(["--limit", "2", "--kinds", "rest_of_line", "--json", "--corpus", str(HELD_OUT)]) == 0
    row = json.loads(capsys.readouterr().out)["rest_of_line"]
    assert row["count"] == 2
    assert {"exact_match", "left_to_right_exact_match", "steps_mean", "ms_p50"} <= row.keys()


@pytest.mark.slow
def test_complete_prints_the_documented_keys(tmp_path, capsys):
    path = tmp_path / "mean.py"
    path.write_text("def mean(values):\n    return sum(values) / \n")
    assert cli.main(["complete", f"{path}:2:26", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"text", "confidence", "shown", "steps", "elapsed_ms", "device", "model"}
    assert answer["text"].startswith("len(")
