"""`mercury-lsp doctor`: checks the installation, and says how to fix what does not work."""

import argparse
import asyncio
import os
import platform
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from mercury_engine.api import FillRequest, InferenceEngine
from mercury_engine.errors import MercuryError, ModelError
from mercury_engine.models import gpu, weights
from mercury_kernels.installation import install_command, version_of
from rich.console import Console
from rich.text import Text

from mercury_lsp import default_model, private_files
from mercury_lsp.commands import gpu_report
from mercury_lsp.commands.terminal import add_model_argument, settings_for
from mercury_lsp.commands.terminal import load as load_at_terminal
from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import Address, all_addresses
from mercury_lsp.engine_host import gpu_proof
from mercury_lsp.engine_host.loading import LoadEngine, filled, rewritten
from mercury_lsp.errors import MORE_MEMORY, is_short_of_memory
from mercury_lsp.settings import EDIT_ENGINE_VARIABLE, ENGINE_VARIABLE, Settings, named_engines
from mercury_lsp.statistics.store import default_path as statistics_path

REQUIRED_PACKAGES = ("lsprotocol", "tree-sitter", "tokenizers", "numpy")

VSCODE_FOLDERS = (".vscode", ".vscode-server", ".vscode-insiders", ".vscode-oss", ".cursor", ".windsurf")

VIM_FOLDERS = ("lazy", "plugged", "site/pack/*/start", "site/pack/*/opt", "pack/*/start", "pack/*/opt")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; `fix` is None if all is well."""

    name: str
    value: str
    fix: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_argument(parser)
    parser.add_argument(
        "--gpu", action="store_true", help="compare the GPU with the CPU (minutes) and write mercury-gpu.json"
    )
    parser.add_argument("--quick", action="store_true", help="with --gpu: only the checks that allow its use (seconds)")


def run(arguments: argparse.Namespace, load: LoadEngine = load_at_terminal) -> int:
    """Print each finding when it is ready; return 1 if something is wrong."""
    console = Console(highlight=False, soft_wrap=True)
    wrong = 0
    for finding in on_gpu(arguments) if arguments.gpu else findings(settings_for(arguments.model), load):
        mark = Text("ok   ", "green") if finding.fix is None else Text("wrong", "bold red")
        console.print(mark + Text(f" {finding.name:12} {finding.value}", "default"))
        if finding.fix is not None:
            wrong += 1
            console.print(Text(f"      fix: {finding.fix}"))
    console.print(Text(f"{wrong} wrong" if wrong else "all is well", "bold"))
    return 1 if wrong else 0


def on_gpu(arguments: argparse.Namespace) -> Iterator[Finding]:
    """Whether the GPU may be used; without `--quick` also the full report."""
    if (why := gpu.why_without_cuda()) is not None:
        value, _, fix = why.partition(": ")
        yield Finding("gpu", value, fix or "see docs/gpu.md")
        return
    model = default_model.named(arguments.model)
    if not arguments.quick:
        yield from (Finding(*each) for each in gpu_report.report(model))
    wrong = gpu_report.why_not_trusted(model)
    gpu_proof.note(model, wrong)
    remedy = "send us mercury-gpu.json, or set mercury.device to 'cuda' to use the GPU anyway" if wrong else None
    yield Finding("verdict", wrong or "the GPU writes the same texts as the CPU and is used from now on", remedy)


def findings(settings: Settings, load: LoadEngine) -> Iterator[Finding]:
    """Check everything from the interpreter to a fill."""
    yield Finding("python", f"{platform.python_version()} at {sys.executable}")
    yield Finding("platform", platform.platform())
    for package in REQUIRED_PACKAGES:
        there = version_of(package)
        yield Finding(package, there or "not installed", None if there else f"pip install {package}")
    yield _folders()
    yield _guarded("daemon", _daemons, "run mercury-lsp --in-process")
    yield _gpu(settings)
    yield _cpu_kernels()
    if (url := settings.engine) is not None:
        yield _guarded("engine", lambda: _remote(url), f"correct {ENGINE_VARIABLE}, or unset it", url)
        settings = replace(settings, engine=None)
    engine: list[InferenceEngine] = []
    yield _guarded("model", lambda: _model(settings, load, engine), "reinstall mercury-lsp, or name a model")
    if engine:
        if (path := getattr(engine[0], "path", None)) is not None:
            yield _guarded("weights", lambda: _weights(path), "download the model again, or name another with --model")
        yield _guarded("fill", lambda: _fill(engine[0]), "try --model with another model")
    if edits := named_engines(EDIT_ENGINE_VARIABLE):
        fix = f"correct {EDIT_ENGINE_VARIABLE}, or unset it"
        yield _guarded("edit server", lambda: _edit_server(load, edits[0]), fix, edits[0])
    edit_model = _guarded("edit model", lambda: _edit_model(load), "mercury-lsp models use same --edits")
    if edit_model.value:
        yield edit_model
    if others := _other_plugins():
        value = "they also draw text at the cursor: disable them there, unless Mercury is their server"
        yield Finding("plugins", f"{', '.join(others)}: {value}")
    if gpu.nvidia_gpus() and gpu.has_torch():  # after the fill, which may have found broken kernels
        from mercury_kernels import ops

        yield _guarded("gpu kernels", ops.availability, "set mercury.device to 'cpu'")


def _folders() -> Finding:
    """Whether models and statistics can be written."""
    home, wrong = Path("~").expanduser(), []
    for folder in (default_model.path().parent, statistics_path().parent):
        there = next(each for each in (folder, *folder.parents) if each.exists())
        try:
            if home in folder.parents and not home.is_dir():
                raise FileNotFoundError(f"{home} is not a folder")
            with TemporaryFile(dir=there, buffering=0) as file:  # permissions say nothing of a read-only or full disk
                file.write(b"\0")
        except OSError as error:
            wrong.append(f"{folder} ({error.strerror or error})")
    fix = "free some space, set HOME to your home folder, or set XDG_DATA_HOME and XDG_STATE_HOME to writable folders"
    if wrong:
        return Finding("folders", f"cannot be written: {', '.join(wrong)}", fix)
    return Finding("folders", "models and statistics can be written")


def _daemons() -> str:
    """The daemons of all versions: an older one runs until its last editor is closed."""
    return "; ".join(filter(None, map(_daemon_at, all_addresses()))) or "none is running; the next editor starts one"


def _daemon_at(address: Address) -> str:
    if (status := control.ask(address, "status")) is None:
        is_silent = private_files.is_locked(control.lock_path(address))
        return f"the one at {address.path} does not answer; mercury-lsp serve --stop stops it" if is_silent else ""
    engines = ", ".join(f"{each['name']} on {each['device']}" for each in status["engines"]) or "no model"
    editors = f"{status['connections']} editor{'' if status['connections'] == 1 else 's'}"
    memory = f", {status['memoryMb']:.0f} MB" if status["memoryMb"] else ""
    return f"process {status['pid']} of version {status['version']}, {editors}, {engines}{memory}"


def _gpu(settings: Settings) -> Finding:
    """The GPU and the libraries that run models on it, or that could."""
    found = gpu.nvidia_gpus()
    if not found:
        return Finding("gpu", "no NVIDIA GPU, and none is needed: C kernels run the model on the CPU")
    unused = f"{found[0]} is not used"
    if not gpu.has_torch():
        how = f"to use it, install torch and triton (about 4 GB): {install_command('gpu')}"
        return Finding("gpu", f"{unused}; {how}")
    if (why := gpu.why_without_cuda()) is not None:
        value, _, fix = why.partition(": ")
        return Finding("gpu", f"{unused}: {value}", fix)
    if why_not := gpu_proof.why_not(settings):
        return Finding("gpu", f"{unused}: {why_not}", "mercury-lsp doctor --gpu")
    return Finding("gpu", f"{found[0]}, torch {version_of('torch')}")


def _cpu_kernels() -> Finding:
    from mercury_kernels.cpu import library

    try:
        library.library()
        return Finding("cpu kernels", f"built for {library.built()}")
    except library.UnsupportedProcessor as error:
        value = "none for this processor: torch runs the model, several times slower"
        return Finding("cpu kernels", value, None if find_spec("torch") else str(error))
    except OSError as error:
        forced = os.environ.get(library.FORCED)
        value = f"not loaded: {library.FORCED} is {forced!r}" if forced else "do not work"
        return Finding("cpu kernels", value, str(error))


def _model(settings: Settings, load: LoadEngine, loaded: list[InferenceEngine]) -> str:
    loaded.append(load(settings))
    path = getattr(loaded[0], "path", None) or settings.model or "bundled"
    gap_format = getattr(loaded[0], "gap_format", None)
    reads = f", in the gap format of {gap_format}" if gap_format else ""
    edits = f", edits in the format of {loaded[0].edit_format}" if loaded[0].edit_format else ""
    return f"{loaded[0].name} ({path}) on {loaded[0].device} by {loaded[0].backend}{reads}{edits}"


def _remote(url: str) -> str:
    """The remote engine that editors use instead of the local model."""
    from mercury_lsp.engine_host.remote.engine import described  # importing an HTTP client is slow

    about = asyncio.run(described(url))
    return f"{url} answers with {about.name} by {about.backend}; editors and other commands send the text there"


def _edit_server(load: LoadEngine, url: str) -> str:
    """The edit server's answer to a harmless request."""
    engine = load(Settings(model=url))
    try:
        found = rewritten(engine, gpu_report.REWRITE)
    finally:
        engine.close()
    wrote = f"wrote {found.text!r}" if found.is_finished else "returned no usable answer"
    about = f"{engine.name} at {url}, in the format of {engine.edit_format}"
    return f"{about}, {wrote} in {found.elapsed * 1000:.0f} ms; editors send the text around the cursor there"


def _edit_model(load: LoadEngine) -> str:
    """The model for next edits; empty if the model for completions makes them."""
    if (name := default_model.read(edits=True)) is None:
        return ""
    engine = load(Settings(model=name))
    if engine.edit_format is None:
        raise ModelError(f"{name} makes no edits; choose another model, or same: mercury-lsp models use NAME --edits")
    return f"{name} on {engine.device} by {engine.backend}, in the format of {engine.edit_format}"


def _weights(path: Path) -> str:
    """Read all weights: loading skips what the first fill does not need."""
    files = weights.check_values(path)
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    return f"read all values of {len(files)} file{'' if len(files) == 1 else 's'}, {megabytes:.0f} MB"


def _fill(engine: InferenceEngine) -> str:
    fill = filled(engine, FillRequest(near="def add(a, b):\n    return ", suffix=("\n",)))
    return f"{fill.text!r} after {fill.steps} steps in {fill.elapsed * 1000:.1f} ms"


def _other_plugins() -> list[str]:
    """The other installed editor plugins that draw suggestions, each with its editor; they may be disabled."""
    known = tomllib.loads(Path(__file__).with_name("other_plugins.toml").read_text("utf-8"))
    return sorted({*_in_vscode(known["vscode"]), *_in_vim(known["vim"])})


def _in_vscode(known: dict[str, str]) -> Iterator[str]:
    for folder in VSCODE_FOLDERS:
        for path in Path.home().joinpath(folder, "extensions").glob("*-*"):
            identifier = re.split(r"-\d+\.", path.name.lower())[0]
            if identifier in known:
                yield f"{known[identifier]} in VS Code"


def _in_vim(known: list[str]) -> Iterator[str]:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "nvim"
    windows = Path(os.environ.get("LOCALAPPDATA") or data) / "nvim-data"
    for root in (data, windows, Path.home() / ".vim"):
        for folder in VIM_FOLDERS:
            yield from (f"{path.name} in Vim or Neovim" for path in root.glob(f"{folder}/*") if path.name in known)


def _guarded(name: str, check: Callable[[], str], fix: str, url: str = "") -> Finding:
    """The check's result, or its error. Our own errors include the fix, but for a server at `url`."""
    try:
        return Finding(name, check())
    except MercuryError as error:
        return Finding(name, "does not work", f"start the server at {url}, or {fix}: {error}" if url else str(error))
    except Exception as error:
        return Finding(name, f"{type(error).__name__}: {error}", MORE_MEMORY if is_short_of_memory(error) else fix)
