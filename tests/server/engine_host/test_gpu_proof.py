"""A GPU answers once a check has passed; until then, and where it failed, the CPU does, and says why."""

import subprocess
from dataclasses import replace

import pytest
from mercury_engine.models import gpu

from mercury_lsp.engine_host import gpu_proof
from mercury_lsp.settings import Settings


@pytest.fixture(autouse=True)
def begun(monkeypatch, tmp_path):
    """The commands of the checks that were begun on a machine with a GPU and an own folder of states."""
    commands = []
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(gpu, "nvidia_gpus", lambda: ("Pretend RTX",))
    monkeypatch.setattr(gpu, "has_torch", lambda: True)
    monkeypatch.setattr(gpu, "driver", lambda: "CUDA 13.0")
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: commands.append([*command]))
    gpu_proof.begin.cache_clear()
    return commands


def test_the_cpu_answers_until_the_check_that_is_begun_once_has_passed(begun):
    settings = Settings(model="some-model")
    assert gpu_proof.why_not(settings) == "it has not been checked yet"
    assert [gpu_proof.device_for(settings) for _ in range(2)] == ["cpu", "cpu"]
    [command] = begun
    assert command[1:] == ["-m", "mercury_lsp", "doctor", "--gpu", "--quick", "--model", "some-model"]
    assert gpu_proof.why_not(settings) == gpu_proof.UNFINISHED  # what is known if the check crashes
    gpu_proof.note("some-model", "")
    assert gpu_proof.device_for(settings) == "auto" and gpu_proof.why_not(settings) == ""
    assert gpu_proof.verdict("another-model") is None


def test_a_gpu_that_failed_is_not_used_and_the_reason_is_told(begun, caplog):
    gpu_proof.note(None, "the CPU is faster")
    assert gpu_proof.device_for(Settings()) == "cpu" and not begun
    assert "Pretend RTX is not used: the CPU is faster" in caplog.text
    assert gpu_proof.why_not(Settings()) == "the CPU is faster"


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_device_that_the_user_chose_is_taken_unchecked(begun, device):
    gpu_proof.note(None, "the CPU is faster")
    chosen = replace(Settings(), device=device)
    assert gpu_proof.device_for(chosen) == device and gpu_proof.why_not(chosen) == "" and not begun


def test_another_driver_is_checked_again(begun, monkeypatch):
    gpu_proof.note(None, "")
    monkeypatch.setattr(gpu, "driver", lambda: "CUDA 13.1")
    assert gpu_proof.device_for(Settings()) == "cpu" and len(begun) == 1
