"""Whether this machine's GPU may answer: only once it is known to write the CPU's texts, and faster.

The check, `mercury-lsp doctor --gpu --quick`, runs once for each combination of card, driver, torch, this program and
model, in a process of its own because drivers crash. Until it passes the CPU answers.
"""

import contextlib
import json
import logging
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from mercury_engine.models import gpu
from mercury_kernels.installation import version_of

from mercury_lsp import __version__, private_files
from mercury_lsp.settings import BUNDLED, Device, Settings

UNFINISHED = "its check did not end; mercury-lsp doctor --gpu says more"
"""The verdict while a check runs, and after one that crashed."""

_log = logging.getLogger("mercury_lsp")


def device_for(settings: Settings) -> Device:
    """The device for a model; starts the check of an unchecked GPU."""
    if not _needs_verdict(settings):
        return settings.device
    found = verdict(settings.model)
    if found == "":
        return "auto"
    if found is None:
        begin(settings.model)
        _log.info("%s is being checked; until it is known to work the CPU answers", gpu.nvidia_gpus()[0])
    else:
        _log.warning("%s is not used: %s", gpu.nvidia_gpus()[0], found)
    return "cpu"


def why_not(settings: Settings) -> str:
    """Why the GPU does not answer; empty if it does, there is none, or the CPU was chosen."""
    found = verdict(settings.model) if _needs_verdict(settings) else ""
    return "it has not been checked yet" if found is None else found


def verdict(model: str | None) -> str | None:
    """Why the GPU must not answer for a model; empty if it may, None if unchecked."""
    found = _read().get(_key(model))
    return found if isinstance(found, str) else None


def note(model: str | None, why: str) -> None:
    """Remember a verdict. Raises OSError."""
    private_files.make_folder(_path().parent)
    text = json.dumps(_read() | {_key(model): why}, indent=1).encode()
    with os.fdopen(private_files.opened(_path(), os.O_WRONLY), "wb") as file:
        file.truncate(0)  # once it is known to be a file of ours
        file.write(text)


@cache
def begin(model: str | None) -> None:
    """Start the check of the GPU for a model, once in this process."""
    named = BUNDLED if model is None else model  # otherwise the user's choice would be checked
    command = (sys.executable, "-m", "mercury_lsp", "doctor", "--gpu", "--quick", "--model", named)
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        note(model, UNFINISHED)
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)


def _needs_verdict(settings: Settings) -> bool:
    """Whether there is a GPU that the user neither asked for nor ruled out."""
    return settings.device == "auto" and bool(gpu.nvidia_gpus()) and gpu.has_torch()


def _path() -> Path:
    return private_files.state_folder() / "gpu.json"


def _read() -> dict[str, object]:
    try:
        found = json.loads(_path().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _key(model: str | None) -> str:
    """What a verdict is of."""
    torch = f"torch {version_of('torch')}"
    return " / ".join((*gpu.nvidia_gpus(), gpu.driver(), torch, __version__, model or BUNDLED))
