"""`doctor --gpu` on a pretend GPU: kernels beside their twins, fills beside the CPU's, steps beside their floor."""

import argparse
import json
from dataclasses import replace

import pytest
import torch
from mercury_engine.device import check, step
from mercury_engine.models import gpu
from mercury_lab.engine import Engine

from mercury_lsp import default_model
from mercury_lsp.commands import doctor, gpu_report
from mercury_lsp.engine_host import gpu_proof
from tests.support import tiny
from tests.support.close import coded
from tests.support.pretend_cuda import pretend_cuda


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.folder(tmp_path_factory.mktemp("models") / "causal", 0)


@pytest.fixture
def pretend(folder, monkeypatch, tmp_path):
    """A GPU that computes as the CPU does."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def both(_: object) -> tuple[Engine, Engine]:
        on_gpu, on_cpu = (Engine.load(folder, device=each, dtype=torch.float32) for each in ("cuda", "cpu"))
        return on_gpu, on_cpu

    monkeypatch.setattr(gpu_report, "both", both)
    monkeypatch.setattr(gpu_report, "filled", lambda engine, request: engine.fill(request))
    monkeypatch.setattr(gpu_report, "SURE", 0.0)  # a random model is never sure
    monkeypatch.setattr(gpu_report, "FILLS", 4)
    monkeypatch.setattr(step, "KEYS", (256, 1024))
    monkeypatch.setattr(gpu, "why_without_cuda", lambda: None)
    monkeypatch.setattr(default_model, "named", lambda model: model)
    with pretend_cuda(monkeypatch, kernels=False) as counts:
        yield counts


def found(quick: bool) -> dict[str, doctor.Finding]:
    arguments = argparse.Namespace(model=None, gpu=True, quick=quick)
    return {each.name: each for each in doctor.on_gpu(arguments)}


def test_a_gpu_that_writes_the_same_faster_is_trusted_from_now_on(pretend, monkeypatch):
    faster(monkeypatch)
    assert found(quick=True)["verdict"].fix is None
    assert gpu_proof.verdict(None) == ""


def test_a_gpu_that_writes_another_text_is_not_trusted(pretend, monkeypatch):
    faster(monkeypatch)
    monkeypatch.setattr(gpu_report, "filled", lambda engine, request: engine.fill(request.__class__(engine.device)))
    assert "where the CPU writes" in found(quick=True)["verdict"].value


def test_all_that_is_known_is_in_one_file(pretend, tmp_path):
    findings = found(quick=False)
    assert findings["kernels"].value == "equal their twins"
    assert findings["weights"].value.startswith("32 bits each in the layers, 0.1 MB")
    assert findings["causal fills"].value.startswith("4 of 4 texts equal the CPU's")
    written = json.loads((tmp_path / "mercury-gpu.json").read_text())
    assert written["card"] == "Pretend RTX" and written["fills masked"]["same"] == 4
    assert all(each["milliseconds"] > 0 for each in written["steps causal"]) and written["steps causal"]


def test_every_kernel_is_checked_at_the_shapes_of_a_family(tmp_path):
    for changes in ({}, {"attention_bias": True}, {"qk_norm": True, "intermediate_size": 64}):
        decoder = tiny.network(0, **changes)
        if "qk_norm" in changes:
            for part in (layer := decoder.layers[0]).qkv, layer.out, layer.gate_up:
                made = coded(part.weight)
                part.hold_codes()
                for target, source in zip((part.weight, part.scales), made, strict=True):
                    target.copy_(source)
        assert check.wrong_kernels(decoder) == {}
        names = [name for name, _ in check._runs(decoder)]
        assert names == ["project_qkv", "linear"] * 2 + ["attention", "answers", "reveal"]  # plain, and with an adapter


def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the GPU's times for nothing."""
    compared = gpu_report.compared
    monkeypatch.setattr(gpu_report, "compared", lambda *asked: replace(compared(*asked), gpu_ms=0.0))
