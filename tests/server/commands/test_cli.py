"""Commands that cannot do what they are asked say so in one line."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from mercury_engine.api import Fill, FillRequest, SlotView
from mercury_engine.errors import ModelNotFound
from mercury_engine.models import adapters, gpu, weights
from mercury_engine.utility import Utility
from mercury_kernels import ops
from mercury_kernels.cpu import library
from mercury_kernels.installation import cuda_torch_command, install_command
from mercury_lab.training.conversion.adapter_file import write_adapter
from safetensors.numpy import load_file, save_file

from mercury_lsp import default_model
from mercury_lsp.cli import main
from mercury_lsp.commands import doctor, loading, relay, try_
from mercury_lsp.commands.file_position import FilePosition
from mercury_lsp.commands.shown import Shown
from mercury_lsp.engine_host.worker import why_not_loaded
from mercury_lsp.errors import UsageError
from mercury_lsp.installed_models import larger
from mercury_lsp.settings import Settings
from tests.support import tiny
from tests.support.fake_engine import FakeEngine

EXAMPLES = Path(__file__).parents[3] / "examples"


def engine(settings: Settings | None = None) -> FakeEngine:
    """Completes `1 + 1` in two steps."""
    made = FakeEngine("1 + 1", confidence=0.875)
    made.canvases = (
        (SlotView("", "mask", 0.0),) * 3,
        (SlotView("1", "committed", 0.9), SlotView("", "mask", 0.0), SlotView("", "mask", 0.0)),
        (SlotView("1", "committed", 0.9), SlotView(" + 1", "draft", 0.4), SlotView("", "end", 1.0)),
    )
    return made


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(loading, "load_engine", engine)
    path = tmp_path / "sample.py"
    path.write_bytes(b"x = \r\ny = 2\r\n")
    return path


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("{}", "is not FILE:LINE:COL"),
        ("{}:1", "is not FILE:LINE:COL"),
        ("{}:one:1", "with numbers from 1"),
        ("{}:0:1", "with numbers from 1"),
        ("{}:1:-1", "with numbers from 1"),
        pytest.param("{}:" + 5000 * "9" + ":1", "with numbers from 1", id="more digits than int() takes"),
        (":1:1", "is not FILE:LINE:COL"),
        ("{}.gone:1:1", "there is no file"),
        ("{}/..:1:1", ""),
        ("{}:4:1", "has 3 lines"),
        ("{}:1:6", "has 5 columns"),
    ],
)
@pytest.mark.parametrize("command", ["complete", "watch"])
def test_an_impossible_position_is_one_line_on_stderr(sample, capsys, command: str, place: str, said: str):
    assert main([command, place.format(sample)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1 and err.startswith("mercury-lsp: ")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /dev/full")
@pytest.mark.parametrize(("reader", "code", "said"), [("gone", 1, ""), ("full", 2, "No space left on device")])
def test_output_that_cannot_be_written_is_no_traceback(reader: str, code: int, said: str):
    there, writing = os.pipe()
    os.close(there)
    with open("/dev/full" if reader == "full" else writing, "wb") as output:
        command = [sys.executable, "-m", "mercury_lsp", "stats", "--json"]
        ended = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    if reader == "full":
        os.close(writing)
    assert ended.returncode == code and said in ended.stderr and ended.stderr.count("\n") == bool(said)


def test_a_folder_is_not_a_file(sample: Path, capsys):
    assert main(["complete", f"{sample.parent}:1:1"]) == 2
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("command", ["complete", "watch"])
def test_a_pipe_into_which_nobody_writes_is_refused_at_once(tmp_path: Path, capsys, command: str):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert main([command, f"{path}:1:1"]) == 2
        assert f"{path} is a pipe or a device; name a file" in capsys.readouterr().err


def test_a_file_that_is_not_utf_8_is_named_with_the_byte(sample: Path, capsys):
    sample.write_bytes(b"x = '\xff'")
    assert main(["complete", f"{sample}:1:1"]) == 2
    assert "is not UTF-8 (byte 5)" in capsys.readouterr().err


def test_a_drive_letter_is_part_of_the_file():
    assert FilePosition.parse(r"C:\code\a.py:3:7") == FilePosition(Path(r"C:\code\a.py"), 3, 7)


def test_the_end_of_the_last_line_is_a_position(sample: Path):
    context, snapshot = FilePosition.parse(f"{sample}:3:1").context()
    assert context.offset == snapshot.length
    context, _ = FilePosition.parse(f"{sample}:1:5").context()
    assert (context.line_prefix, context.line_suffix) == ("x = ", "")


def test_an_unknown_command_exits_with_2(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["guess"])
    assert caught.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


def test_complete_prints_json_with_exactly_its_keys(sample: Path, capsys):
    assert main(["complete", f"{sample}:1:5", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {
        "text": "1 + 1",
        "reason": None,
        "confidence": 0.875,
        "steps": 2,
        "elapsed_ms": 2.0,
        "device": "cpu",
        "model": "fake",
    }


def test_complete_prints_the_text_alone_otherwise(sample: Path, capsys):
    assert main(["complete", f"{sample}:1:5"]) == 0
    assert capsys.readouterr().out == "1 + 1\n"


@pytest.mark.parametrize(
    ("utility", "text", "why"),
    [
        (Utility(10.0, 0.0, 0.8), "1 + 1", "the model is only 75% sure of its text"),
        (Utility(10.0, 10.0), "1 + 1", "at 75.0% the model is not sure enough of a text as short as this"),
        (Utility(10.0, 20.0), "1 + 1", "the text is too short to save you anything"),
        (Utility(), '"one and two', "the text would leave a string open"),
        (Utility(), "", "the model is not sure enough of anything that could come here"),
    ],
)
def test_complete_says_in_plain_words_why_an_editor_shows_nothing(
    sample: Path, capsys, monkeypatch, utility: Utility, text: str, why: str
):
    monkeypatch.setattr(FakeEngine, "utility", utility)
    monkeypatch.setattr(loading, "load_engine", lambda settings: FakeEngine(text, confidence=0.75))
    assert main(["complete", f"{sample}:1:5"]) == 0
    assert capsys.readouterr() == ("", f"an editor shows nothing here, because {why}\n")
    assert main(["complete", f"{sample}:1:5", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["text"], answer["reason"]) == ("", why)


def test_commands_ask_the_model_as_an_editor_does_that_asks_by_itself(sample: Path, monkeypatch):
    made = engine()
    monkeypatch.setattr(loading, "load_engine", lambda settings: made)
    for command in (["complete"], ["watch", "--delay", "0"]):
        main([*command, f"{sample}:1:5"])
        assert made.asked[-1].utility == made.utility


def test_complete_says_when_the_code_behind_the_cursor_is_all_of_the_fill(sample: Path, capsys):
    sample.write_text("x = 1 + 1\n")
    assert main(["complete", f"{sample}:1:5"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "an editor shows nothing here, because the code around the cursor already says '1 + 1'\n"


@pytest.mark.parametrize("command", ["complete", "watch"])
@pytest.mark.parametrize("name", [".env", ".aws/credentials"])
def test_a_file_of_secrets_is_not_shown_to_the_model(tmp_path, monkeypatch, capsys, command: str, name: str):
    monkeypatch.setattr(loading, "load_engine", lambda settings: pytest.fail("the model was loaded"))
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("API_TOKEN=\n")
    assert main([command, f"{path}:1:11"]) == 2
    assert "often hold secrets" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "count", "said"),
    [("x" * 200_000, 1, "which has a line of more than 50,000"), ("x = 1\n", 400_000, "which has more than 2,000,000")],
)
def test_a_file_in_which_no_editor_gets_suggestions_gets_none_here(
    tmp_path, monkeypatch, capsys, line: str, count: int, said: str
):
    monkeypatch.setattr(loading, "load_engine", lambda settings: pytest.fail("asked the model"))
    path = tmp_path / "long.py"
    path.write_text(line * count)
    assert main(["complete", f"{path}:1:1"]) == 2
    assert f"nothing is suggested in long.py, {said}" in capsys.readouterr().err


def test_watch_says_which_part_an_editor_shows(sample: Path, capsys, monkeypatch):
    sample.write_text("x =  + 1\n")
    monkeypatch.setattr(FakeEngine, "utility", Utility(0.0, 0.0, 0.0))
    assert main(["watch", f"{sample}:1:5", "--delay", "0"]) == 0
    assert "an editor shows 1" in capsys.readouterr().out.splitlines()


def test_watch_says_when_an_editor_would_not_show_it_as_complete_does(sample: Path, capsys, monkeypatch):
    monkeypatch.setattr(FakeEngine, "utility", Utility(10.0, 15.0))
    main(["complete", f"{sample}:1:5"])
    [said] = capsys.readouterr().err.splitlines()
    main(["watch", f"{sample}:1:5", "--delay", "0"])
    assert said in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("text", "said"), [("1 + 1", True), ("", False)])
def test_watch_names_a_confidence_only_where_there_is_a_text(sample: Path, capsys, monkeypatch, text, said):
    monkeypatch.setattr(loading, "load_engine", lambda settings: FakeEngine(text, confidence=1.0))
    main(["watch", f"{sample}:1:5", "--delay", "0"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("2 steps") and ("confidence" in last) is said


@pytest.mark.parametrize(("terminal", "lines"), [(True, 1), (False, 0)])
def test_the_server_started_at_a_terminal_says_that_it_waits_for_an_editor(monkeypatch, capsys, terminal, lines):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: terminal)
    monkeypatch.setattr(relay, "run", lambda arguments: 0)
    main([])
    out, err = capsys.readouterr()
    assert out == "" and err.count("waiting for an editor") == err.count("\n") == lines


def test_watch_prints_every_step_on_a_line_without_a_terminal(sample: Path, capsys):
    assert main(["watch", f"{sample}:1:5", "--delay", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["  0 ░░░", "  1 1░░", "  2 1 + 1", "an editor shows 1 + 1"]


@pytest.mark.parametrize("command", ["complete", "watch", "doctor"])
@pytest.mark.parametrize(("terminal", "said"), [(True, "loading the model ...\n"), (False, "")])
def test_at_a_terminal_the_wait_for_the_model_is_explained(
    sample: Path, capsys, monkeypatch, command: str, terminal: bool, said: str
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    main([command] if command == "doctor" else [command, f"{sample}:1:5"])
    assert capsys.readouterr().err == said


def test_doctor_finds_nothing_wrong_with_a_model_that_works():
    found = {each.name: each for each in doctor.findings(Settings(), engine)}
    assert found["model"].fix is None and "fake" in found["model"].value
    assert found["fill"].fix is None and "2 steps" in found["fill"].value
    assert found["folders"].fix is None


@pytest.mark.skipif(sys.platform == "win32", reason="there the home is not in HOME")
@pytest.mark.parametrize(("edit_format", "fix"), [("sweep", None), (None, "use another with --edits, or same")])
def test_doctor_loads_the_model_that_was_chosen_for_next_edits(monkeypatch, edit_format: str | None, fix: str | None):
    class Chosen(FakeEngine):
        def __init__(self, settings: Settings):
            super().__init__()
            self.edit_format = edit_format if settings.model == "edits" else None

    monkeypatch.setattr("mercury_lsp.default_model.read", lambda edits=False: "edits" if edits else None)
    found = {each.name: each for each in doctor.findings(Settings(), Chosen)}["edit model"]
    assert found.fix == fix or fix in found.fix
    assert found.value == ("edits on cpu by torch, in the format of sweep" if fix is None else "does not work")


def test_doctor_says_that_nothing_can_be_kept_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name)
    found = {each.name: each for each in doctor.findings(Settings(), engine)}["folders"]
    assert found.value.count(f"{tmp_path / 'gone'} is no folder") == 2
    assert found.fix is not None and "set HOME" in found.fix
    assert not (tmp_path / "gone").exists(), "a check makes nothing"


def test_doctor_names_other_plugins_that_draw_suggestions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert "plugins" not in {each.name for each in doctor.findings(Settings(), engine)}
    for folder in (
        ".vscode/extensions/github.copilot-1.388.0",
        ".vscode-server/extensions/tabbyml.vscode-tabby-1.30.0-linux-x64",
        ".vscode/extensions/ms-python.python-2026.1.0",
        "data/nvim/lazy/copilot.lua",
        "data/nvim/site/pack/core/opt/supermaven-nvim",
        ".vim/plugged/fugitive",
    ):
        (tmp_path / folder).mkdir(parents=True)
    found = {each.name: each for each in doctor.findings(Settings(), engine)}["plugins"]
    assert found.fix is None
    assert found.value.split(": ")[0].split(", ") == [
        "Copilot in VS Code",
        "Tabby in VS Code",
        "copilot.lua in Vim or Neovim",
        "supermaven-nvim in Vim or Neovim",
    ]


def test_doctor_says_which_folder_takes_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "file").touch()
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path / "file" / "mercury-lsp")
    found = {each.name: each for each in doctor.findings(Settings(), engine)}["folders"]
    assert "cannot be written" in found.value and found.value.count("mercury-lsp") == 1


def test_with_a_file_in_the_homes_place_there_is_no_choice_of_a_model_and_doctor_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    assert default_model.read() is None
    found = {each.name: each for each in doctor.findings(Settings(), engine)}["folders"]
    assert "cannot be written" in found.value and str(tmp_path / "file") in found.value


@pytest.mark.parametrize(
    "name", [None, "model.safetensors", "adapter.safetensors", "reader.safetensors", "gap.adapter.safetensors"]
)
@pytest.mark.parametrize("damage", ["cut", "not a number"])
def test_doctor_reads_every_weight_file(tmp_path: Path, name: str | None, damage: str):
    folder = tiny.folder(tmp_path / "model")
    config = weights.read_config(folder)
    save_file({"x": np.ones((2, 2), np.float32)}, folder / "reader.safetensors")
    factor = {"layers.0.qkv.down": np.ones((4, config.hidden_size), np.float32)}
    write_adapter(folder / "gap.adapter.safetensors", config, factor)
    if name is not None:
        path = folder / name
        if damage == "cut":
            path.write_bytes(path.read_bytes()[:-3])
        else:
            last = sorted(load_file(path).items())[-1]
            damaged = {last[0]: np.full(last[1].shape, np.nan, np.float16)}
            save_file(load_file(path) | damaged, path, adapters.metadata(path))

    class Loaded(FakeEngine):
        path = folder

    found = {each.name: each for each in doctor.findings(Settings(), lambda _: Loaded())}["weights"]
    if name is None:
        assert found.fix is None and "all values of 4 files were read" in found.value
    else:
        assert found.fix is not None and name in found.fix


def test_doctor_says_how_to_fix_a_missing_model():
    def fail(settings: Settings) -> FakeEngine:
        raise ModelNotFound("no model x; name another")

    found = {each.name: each for each in doctor.findings(Settings(), fail)}
    assert found["model"].fix == "no model x; name another"
    assert "fill" not in found


def test_doctor_reports_kernels_that_turned_out_broken_while_filling(monkeypatch: pytest.MonkeyPatch):
    broken: list[str] = []

    class Filling(FakeEngine):
        def fill(self, request: FillRequest) -> Fill:
            broken.append("linear (no compiler)")
            return super().fill(request)

    monkeypatch.setattr(gpu, "nvidia_gpus", lambda: ("NVIDIA H200",))
    monkeypatch.setattr(ops, "availability", lambda: "; ".join(broken) or "kernels run")
    found = {each.name: each for each in doctor.findings(Settings(), lambda settings: Filling())}
    assert found["gpu kernels"].value == "linear (no compiler)"


def gpu_finding(
    monkeypatch: pytest.MonkeyPatch, gpus: tuple[str, ...], torch_is_there: bool
) -> dict[str, doctor.Finding]:
    monkeypatch.setattr(gpu, "nvidia_gpus", lambda: gpus)
    monkeypatch.setattr(gpu, "has_torch", lambda: torch_is_there)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return {each.name: each for each in doctor.findings(Settings(), engine)}


@pytest.mark.parametrize("torch_is_there", [False, True])
def test_doctor_says_that_there_is_no_gpu_and_what_is_used_instead(monkeypatch, torch_is_there):
    found = gpu_finding(monkeypatch, (), torch_is_there)
    assert "no NVIDIA GPU" in found["gpu"].value and "C kernels" in found["gpu"].value
    assert found["gpu"].fix is None and "gpu kernels" not in found


def test_doctor_says_what_would_use_a_gpu(monkeypatch):
    found = gpu_finding(monkeypatch, ("NVIDIA H200",), torch_is_there=False)
    assert "NVIDIA H200 is not used" in found["gpu"].value
    assert install_command("gpu") in found["gpu"].value and "gpu kernels" not in found


def test_doctor_says_when_torch_cannot_use_a_gpu(monkeypatch):
    found = gpu_finding(monkeypatch, ("NVIDIA H200",), torch_is_there=True)
    assert f"torch {torch.__version__} was built without CUDA" in found["gpu"].value
    assert found["gpu"].fix == cuda_torch_command()
    assert "torch twins are used" in found["gpu kernels"].value


@pytest.mark.parametrize(
    ("raised", "torch_is_there", "said", "fix"),
    [
        (None, True, "built for avx2", None),
        (OSError("not built; reinstall"), True, "do not work", "not built; reinstall"),
        (library.UnsupportedProcessor("install torch"), True, "none for this processor", None),
        (library.UnsupportedProcessor("install torch"), False, "none for this processor", "install torch"),
    ],
)
def test_doctor_says_which_kernels_the_processor_has(monkeypatch, raised, torch_is_there, said, fix):
    def load():
        if raised:
            raise raised

    monkeypatch.setattr(library, "library", load)
    monkeypatch.setattr(library, "built", lambda: "avx2")
    monkeypatch.setattr(doctor, "find_spec", lambda name: name if torch_is_there else None)
    found = {each.name: each for each in doctor.findings(Settings(), engine)}["cpu kernels"]
    assert said in found.value
    assert found.fix == fix


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_every_example_has_one_cursor_between_text(path: Path):
    example = try_.read_example(path)
    assert example is not None
    assert example.before.strip() and example.after.strip()
    assert try_.CURSOR_MARK not in example.after


def test_binary_files_in_a_folder_of_examples_are_skipped(tmp_path: Path):
    (tmp_path / "a.bin").write_bytes(b"\xff\x00")
    (tmp_path / "b.py").write_text(f"x = {try_.CURSOR_MARK}\n", "utf-8")
    assert [example.path.name for example in try_.examples(tmp_path)] == ["b.py"]


def test_a_folder_without_examples_is_an_error(tmp_path: Path):
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match="no file"):
        try_.examples(tmp_path)


def test_try_tells_users_of_the_bundled_model_of_the_larger_one_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path)
    said = larger.hint()
    assert said is not None and "0.5 GB, Apache-2.0" in said and f"models add {larger.NAME}" in said
    (tmp_path / "default-model").write_text("mine\n")
    assert larger.hint() is None
    (tmp_path / "default-model").write_text("bundled\n")
    assert larger.hint() is not None
    (tmp_path / "models" / larger.NAME).mkdir(parents=True)
    assert larger.hint() is None


def test_serving_imports_nothing_of_downloads_and_remote_engines():
    program = (
        "import sys, mercury_lsp.cli, mercury_lsp.commands.stdio, mercury_lsp.daemon.server; "
        "names = ('downloads', 'installed_models', 'huggingface_hub', 'engine_host.remote', 'httpx', 'httpcore'); "
        "print([name for name in sys.modules if any(each in name for each in names)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


RIGHT = {
    "debounce.js": ("timer",),
    "moving_average.py": ("value",),
    "point.rs": ("self.y - other.y",),
    "stack.go": ("s.items, item",),
    "word_count.py": ("word",),
}
"""What belongs at the cursors of the bundled examples."""


@pytest.mark.slow
def test_the_bundled_model_shows_nothing_wrong_in_the_bundled_examples():
    examples = try_.examples(try_.bundled_folder())
    settings = loading.settings_for("bundled")
    bundled = loading.load(settings)
    shown = {each.path.name: Shown.of(bundled, settings, *each.context()).text for each in examples}
    assert shown.keys() == RIGHT.keys()
    assert {name: text for name, text in shown.items() if text not in RIGHT[name]} == {}


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        RuntimeError("can't start new thread"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_where_memory_is_short_a_line_says_so(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def run(*_: object) -> None:
        raise error

    monkeypatch.setattr("mercury_lsp.cli.relay.run", run)
    assert main(["--in-process"]) == 2
    assert capsys.readouterr().err == (
        "mercury-lsp: there is not enough memory; raise its limit (ulimit -v) or free some\n"
    )
    assert "not enough memory for the model" in why_not_loaded(error)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit no address space")
def test_with_300_mb_of_address_space_a_command_ends_without_a_traceback():
    command = f"ulimit -v 300000; exec {sys.executable} -m mercury_lsp complete {__file__}:1:1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("mercury-lsp: there is not enough memory")
