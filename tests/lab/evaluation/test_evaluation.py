"""The evaluation commands, and the bundled model behind the command line."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from mercury_engine.errors import ModelNotFound
from mercury_lab import subcommands
from mercury_lab.evaluation import calibration, formats, gaps, infill, replay, suite

from mercury_lsp import cli
from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document
from tests.support import masked, tiny

CODE_FOLDER = Path(__file__).parents[2] / "data" / "code"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny.folder(tmp_path_factory.mktemp("tiny") / "model")


def run(main, model, folder: Path, capsys, *more: str, corpus: Path = CODE_FOLDER) -> dict:
    """The record of one suite; what was printed is the record and nothing else."""
    options = ["--model", model, "--corpus", corpus, "--backend", "torch", "--threads", 1, "--json"]
    written = ["--out", folder / "record.json"]
    assert main([str(option) for option in (*options, *written, *more)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((folder / "record.json").read_text())
    return record


def test_a_gaps_text_and_its_context_are_the_file():
    for gap in gaps.gaps(CODE_FOLDER, 20, 0):
        text = gap.path.read_text("utf-8").replace("\r\n", "\n")
        blocks = "".join((*gap.request.far[1:], gap.request.near)), "".join(gap.request.suffix)
        assert f"{blocks[0]}{gap.truth}{blocks[1]}" in text
        assert gap.prefix + gap.truth in text


def test_every_kind_of_gap_is_what_it_is_called():
    found = {kind: list(gaps.gaps(CODE_FOLDER, 15, 0, (kind,))) for kind in gaps.GAP_KINDS}
    after = {kind: {"".join(g.request.suffix)[:1] for g in some} for kind, some in found.items()}
    before = {kind: {g.prefix.rpartition("\n")[2].strip() for g in some} for kind, some in found.items()}
    assert all(1 <= g.truth.count("\n") <= 4 and g.request.multiline for g in found["lines"])
    assert not any("\n" in g.truth or g.request.multiline for kind in found if kind != "lines" for g in found[kind])
    assert all(after[kind] <= {"\n", ""} for kind in ("rest_of_line", "whole_line", "lines"))
    assert before["whole_line"] == before["lines"] == {""}
    assert len(before["rest_of_line"]) > 1 < len(after["random_span"])


def test_a_replayed_cursor_is_asked_for_as_the_server_asks():
    builder = ContextBuilder()
    for document, start, end in gaps.sample_places(gaps.held_out_files(CODE_FOLDER), 12, 0, "line"):
        text = document.text[:start] + document.text[end:]
        editor = Document(document.path.as_uri(), document.language, 1, text)
        server = builder.build(editor.snapshot(), start, document.name).request()
        ours = gaps.gap_at(document, start, end, "line").request
        assert (ours.near, ours.suffix[:2], ours.far[0]) == (server.near, server.suffix[:2], server.far[0])
        assert ours.far[-2:] == server.far[-2:]


@pytest.mark.parametrize("main", [infill.main, replay.main, calibration.main])
def test_a_folder_without_code_is_a_clear_error(main, tmp_path):
    with pytest.raises(ModelNotFound, match=f"{tmp_path}.*--corpus"):
        main(["--corpus", str(tmp_path)])


def test_the_command_names_its_suites_and_reports_errors(tmp_path, monkeypatch, capsys):
    for arguments, said in ((["nonsense"], "{replay,infill}"), (["infill", "--corpus", str(tmp_path)], "--corpus")):
        monkeypatch.setattr(sys, "argv", ["evaluation", *arguments])
        assert subcommands.run("evaluation", {"replay": "evaluation.replay", "infill": "evaluation.infill"}) == 2
        printed = capsys.readouterr()
        assert said in printed.err
        assert not printed.out


def test_infill_records_every_kind_of_span_with_all_baselines(model, tmp_path, capsys):
    record = run(infill.main, model, tmp_path, capsys, "--limit", "1")
    for kind in gaps.GAP_KINDS:
        row = record[kind]
        assert {"exact_match", "left_to_right_exact_match", "copy_exact_match", "steps_mean", "ms_p50"} <= row.keys()
        assert row["count"] == 1
    assert (record["seed"], record["device"]) == (0, "cpu")
    assert record["machine"]
    assert all(row["count"] == 1 for row in record["python"].values())


def test_replay_records_the_accounts_of_every_way_to_type(model, tmp_path, capsys):
    record = run(replay.main, model, tmp_path, capsys, "--limit", "1", "--baselines")
    keys = {"written_by_accepting", "shown_rate", "accepted_rate", "precision", "ms_p50", "count"}
    for part in (record, *record["baselines"].values()):
        assert keys <= part.keys() and keys <= part["python"].keys()
        assert part["count"] == 1
        assert part["shown"] <= part["requests"] <= part["characters"]
    assert set(record["baselines"]) == {"left to right", "copy"}


def test_a_written_calibration_leaves_a_model_that_loads(tmp_path, capsys):
    model = tiny.folder(tmp_path / "model", rank=0, seed=2)
    suite.store_settings(model, decoding={"lookahead": 3})
    record = run(calibration.main, model, tmp_path, capsys, "--limit", "20", "--wrong", "1", "--stubs", "1", "--write")
    saved = json.loads((model / "settings.json").read_text())
    assert saved == {"decoding": {"lookahead": 3}, "calibration": record["calibration"], "utility": record["utility"]}
    engine = tiny.load(model)
    assert engine.parts.options.lookahead == 3
    assert asdict(engine.utility) == record["utility"]
    assert record["count"] == record["fitted_on"] == 20


def test_files_below_a_folder_are_held_out_but_for_the_texts_that_are_left_out(tmp_path):
    code = "total = left + right\n"
    for name, text in {"two/src/b.py": code, "one/a.py": f"# first\n{code}"}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    found = gaps.held_out_files(tmp_path, {code})
    assert [(file.name, file.repository, file.language) for file in found] == [("one/a.py", "one", "python")]
    assert [file.name for file in gaps.held_out_files(tmp_path)] == ["one/a.py", "two/src/b.py"]


@pytest.mark.slow
def test_complete_prints_the_documented_keys(tmp_path, capsys):
    path = tmp_path / "mean.py"
    path.write_text("def mean(values):\n    return sum(values) / \n")
    assert cli.main(["complete", f"{path}:2:26", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"text", "confidence", "reason", "steps", "elapsed_ms", "device", "model"}
    assert answer["text"].startswith("len(")


def test_formats_compares_the_cached_format_with_one_causal_run_and_with_plain_blocks(tmp_path, capsys):
    folder = tiny.folder(tmp_path / "model", rank=0, markers=tiny.QWEN_MARKERS)
    options = ["--model", folder, "--corpus", CODE_FOLDER, "--backend", "torch", "--threads", 1, "--json", "--limit", 2]
    assert formats.main([str(option) for option in (*options, "--kinds", "random_span", "lines")]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["format"] == "qwen2.5-coder"
    for kind in ("random_span", "lines"):
        found = record[kind]
        assert found["count"] == 2
        assert found["uncached"]["nats_per_gap_more"] == 0
        assert len({found[way]["nats_per_token"] for way in ("cached", "uncached", "blocks")}) == 3
        assert all(found[way]["interval"][0] <= found[way]["exact_match"] for way in ("cached", "uncached", "blocks"))


def test_infill_compares_stale_keys_with_exact_steps_of_a_model_with_full_attention(tmp_path, capsys):
    model, _ = masked.folder(tmp_path / "model", "Open-dCoder")
    record = run(infill.main, model, tmp_path, capsys, "--limit", "1", "--kinds", "rest_of_line")
    row = record["rest_of_line"]
    assert row["stale_differs"] in (0, 1) and row["stale_exact_match"] is not None
    assert row["left_to_right_exact_match"] is None
