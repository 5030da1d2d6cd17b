"""Masked diffusion models answer over LSP, from checkpoints in their published layouts."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mercury_engine.errors import ModelError
from mercury_engine.models import weights

from tests.support import masked, tiny
from tests.support.editor import Editor

SERVER = [sys.executable, "-m", "mercury_lsp", "--in-process"]

URI = "file:///elsewhere/sample.py"


@pytest.mark.parametrize("family", masked.TYPES)
def test_a_checkpoint_loads_and_its_denoising_is_streamed_without_special_tokens(family: str, tmp_path: Path):
    folder, _ = masked.folder(tmp_path / family, family)
    with Editor(None, SERVER) as editor:
        capabilities = {"experimental": {"mercury": {"denoising": True}}}
        editor.initialize(capabilities, {"mercury": {"model": str(folder), "statistics": False}})
        editor.open(URI, "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n")
        place = {"textDocument": {"uri": URI}, "position": {"line": 1, "character": 11}}
        asked = place | {"context": {"triggerKind": 1}, "partialResultToken": "part"}
        found = editor.request("textDocument/inlineCompletion", asked)
        parts = editor.received("$/progress")
        for _ in range(9):  # on a busy machine the newest of several steps is shown, perhaps the last one
            if shows_a_mask(parts):
                break
            editor.request("textDocument/inlineCompletion", asked)
            parts = editor.received("$/progress")
    assert shows_a_mask(parts)
    special = (*masked.MASKS.values(), "<|mask|>", "<|expand|>", tiny.START)
    assert not any(text in json.dumps([found, parts]) for text in special)


def shows_a_mask(parts: list[dict[str, Any]]) -> bool:
    return any(slot["state"] == "mask" for part in parts for slot in part["value"][0]["mercury"]["slots"])


@pytest.mark.parametrize(
    ("model_type", "reason"),
    [
        ("CoDA", "no commercial use"),
        ("wedlm", "use in the EU"),
        ("sdar_moe", "experts"),
        ("llada", "GGUF"),
        ("llada2_moe", "experts"),
        ("diffusion_gemma", "experts"),
        ("nemotron_labs_diffusion", "not built"),
    ],
)
def test_other_diffusion_models_are_refused_with_the_reason(model_type: str, reason: str, tmp_path: Path):
    folder, _ = masked.folder(tmp_path, "Dream")
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model_type": model_type}))
    with pytest.raises(ModelError, match=reason):
        weights.read_config(folder)


def test_a_checkpoint_without_its_mask_token_is_refused_before_it_is_loaded(tmp_path: Path):
    folder, _ = masked.folder(tmp_path, "A2D-qwen2")
    (folder / "tokenizer_config.json").unlink()
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="mask token of A2D"):
        weights.read_config(folder)
