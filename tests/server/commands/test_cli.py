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
from mercury_engine.api import SlotView
from mercury_engine.errors import ModelNotFound
from mercury_engine.models import gpu, weights
from mercury_engine.models.tensors import StoredTensors
from mercury_engine.utility import Utility
from mercury_kernels.cpu import library
from mercury_lab.training.conversion.adapter_file import write_adapter
from safetensors.numpy import load_file, save_file

from mercury_lsp.cli import main
from mercury_lsp.commands import doctor, stdio, terminal, try_
from mercury_lsp.commands.complete import Shown
from mercury_lsp.engine_host.loading import why_not_loaded
from mercury_lsp.installed_models import larger
from mercury_lsp.settings import Settings
from tests.support import tiny
from tests.support.fake_engine import FakeEngine


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
    monkeypatch.setattr("mercury_lsp.engine_host.loading.load_engine", engine)
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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("command", ["complete", "watch"])
def test_a_pipe_into_which_nobody_writes_is_refused_at_once(tmp_path: Path, capsys, command: str):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert main([command, f"{path}:1:1"]) == 2
        assert f"{path} is a pipe or a device; name a file" in capsys.readouterr().err


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
    monkeypatch.setattr(
        "mercury_lsp.engine_host.loading.load_engine", lambda settings: FakeEngine(text, confidence=0.75)
    )
    assert main(["complete", f"{sample}:1:5"]) == 0
    assert capsys.readouterr() == ("", f"an editor shows nothing here, because {why}\n")
    assert main(["complete", f"{sample}:1:5", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["text"], answer["reason"]) == ("", why)


@pytest.mark.parametrize("command", ["complete", "watch"])
@pytest.mark.parametrize("name", [".env", ".aws/credentials"])
def test_a_file_of_secrets_is_not_shown_to_the_model(tmp_path, monkeypatch, capsys, command: str, name: str):
    monkeypatch.setattr(
        "mercury_lsp.engine_host.loading.load_engine", lambda settings: pytest.fail("the model was loaded")
    )
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
    monkeypatch.setattr("mercury_lsp.engine_host.loading.load_engine", lambda settings: pytest.fail("asked the model"))
    path = tmp_path / "long.py"
    path.write_text(line * count)
    assert main(["complete", f"{path}:1:1"]) == 2
    assert f"nothing is suggested in long.py, {said}" in capsys.readouterr().err


@pytest.mark.parametrize(("terminal", "lines"), [(True, 1), (False, 0)])
def test_the_server_started_at_a_terminal_says_that_it_waits_for_an_editor(monkeypatch, capsys, terminal, lines):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: terminal)
    monkeypatch.setattr(stdio, "run", lambda arguments: 0)
    main([])
    out, err = capsys.readouterr()
    assert out == "" and err.count("waiting for an editor") == err.count("\n") == lines


@pytest.mark.skipif(sys.platform == "win32", reason="there the home is not in HOME")
@pytest.mark.parametrize(("edit_format", "fix"), [("sweep", None), (None, "mercury-lsp models use NAME --edits")])
def test_doctor_loads_the_model_that_was_chosen_for_next_edits(monkeypatch, edit_format: str | None, fix: str | None):
    class Chosen(FakeEngine):
        def __init__(self, settings: Settings):
            super().__init__()
            self.edit_format = edit_format if settings.model == "edits" else None

    monkeypatch.setattr("mercury_lsp.default_model.read", lambda edits=False: "edits" if edits else None)
    found = {each.name: each for each in doctor.findings(Settings(), Chosen)}["edit model"]
    assert found.fix == fix or fix in found.fix
    assert found.value == ("edits on cpu by torch, in the format of sweep" if fix is None else "does not work")


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
            save_file(load_file(path) | damaged, path, StoredTensors(folder, name).metadata)

    class Loaded(FakeEngine):
        path = folder

    found = {each.name: each for each in doctor.findings(Settings(), lambda _: Loaded())}["weights"]
    if name is None:
        assert found.fix is None and "read all values of 4 files" in found.value
    else:
        assert found.fix is not None and name in found.fix


def test_doctor_says_how_to_fix_a_missing_model():
    def fail(settings: Settings) -> FakeEngine:
        raise ModelNotFound("no model x; name another")

    found = {each.name: each for each in doctor.findings(Settings(), fail)}
    assert found["model"].fix == "no model x; name another"
    assert "fill" not in found


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
    settings = terminal.settings_for("bundled")
    bundled = terminal.load(settings)
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

    monkeypatch.setattr("mercury_lsp.cli.stdio.run", run)
    assert main(["--in-process"]) == 2
    assert capsys.readouterr().err == (
        "mercury-lsp: there is not enough memory; raise its limit (ulimit -v) or free some\n"
    )
    assert "not enough memory for the model" in why_not_loaded(error)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit no address space")
def test_with_240_mb_of_address_space_a_command_ends_without_a_traceback():
    command = f"ulimit -v 240000; exec {sys.executable} -m mercury_lsp complete {__file__}:1:1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("mercury-lsp: there is not enough memory")


def test_a_named_instruction_set_that_the_processor_lacks_is_reported_with_those_that_it_has(monkeypatch):
    if not library.suitable():
        pytest.skip("no kernels")
    monkeypatch.setenv(library.FORCED, "avx9")
    library.library.cache_clear()
    try:
        found = doctor._cpu_kernels()
    finally:
        library.library.cache_clear()
    assert found.value == "not loaded: MERCURY_CPU_KERNELS is 'avx9'"
    assert found.fix is not None and library.suitable()[0] in found.fix
