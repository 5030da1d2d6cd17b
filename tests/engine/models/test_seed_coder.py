"""Seed-Coder, on which Zeta 2 is built: its layers and its tokenizer are those of transformers."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from mercury_engine.api import RewriteRequest
from mercury_engine.device.torch_network import TorchNetwork
from mercury_engine.models import decoder_weights
from mercury_engine.models.network import ForwardRequest
from mercury_engine.prompt import tokenizer_file
from mercury_engine.prompt.edit_families import family_of
from mercury_engine.prompt.gap_format import find_markers
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_lab.engine import Engine
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Bpe
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.support import tiny

SPECIAL = (
    "<[begin▁of▁sentence]>",
    "<[PAD▁TOKEN]>",
    "<[end▁of▁sentence]>",
    "<[fim-suffix]>",
    "<[fim-prefix]>",
    "<[fim-middle]>",
)
"""The special tokens that count here; they are the first of the vocabulary."""

SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""The expression of its tokenizer.json."""

TEXTS = (
    tiny.SAMPLE,
    "it's I'LL don't x12 = 3.50;\n\n\n    y += 1  \r\n\treturn {\n};\n",
    'print("é世😀", a[1:22])  # déjà vu\n',
    ") {\n\n}",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny random checkpoint in Seed-Coder's layout, saved by transformers."""
    made = Bpe(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(TEXTS, trainer)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=made.get_vocab_size(),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=2,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
        rms_norm_eps=1e-6,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path / "zeta-2.1", safe_serialization=True)
    made.save(str(tmp_path / "zeta-2.1" / "tokenizer.json"))
    return tmp_path / "zeta-2.1"


def test_a_prompt_has_the_tokens_and_the_logits_that_transformers_gives_it(folder: Path):
    family = family_of("zeta-2.1")
    assert family is not None
    prompt = family.prompt(
        RewriteRequest("x = 1\ny = [x, 22]\n", "import os\n\n", (), ("print(y)\n",), path="a.py", cursor=3)
    )
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    ids = Tokenizer(folder).encode_prompt(prompt, family.markers)
    assert ids == theirs(prompt, add_special_tokens=False)["input_ids"]
    assert [ids[0], ids[-1]] == [SPECIAL.index("<[fim-suffix]>"), SPECIAL.index("<[fim-middle]>")]
    network = TorchNetwork(decoder_weights.load(folder, torch.float32, torch.device("cpu")))
    [(hidden, _)] = network.read_together([ForwardRequest(np.array([0, *ids]))])
    with torch.no_grad():
        expected = LlamaForCausalLM.from_pretrained(folder)(torch.tensor([[0, *ids]])).logits[0]
    torch.testing.assert_close(network.decoder.logits(hidden), expected, atol=1e-4, rtol=1e-4)


def test_the_tokenizer_of_a_gguf_file_splits_text_alike(folder: Path):
    raw = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = raw["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    metadata: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "seed-coder",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token in SPECIAL else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in raw["model"]["merges"]],
    }
    file = SimpleNamespace(path=folder, required=metadata.__getitem__, value=lambda key, *_: metadata.get(key))
    ours, theirs = (
        tokenizer_file.tokenizer_of(file),
        PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json")),
    )  # type: ignore[arg-type]
    for text in TEXTS:
        assert ours.encode(text).ids == theirs(text, add_special_tokens=False)["input_ids"]


def test_a_model_of_its_layout_rewrites_in_the_familys_format(folder: Path):
    engine = Engine.load(folder, device="cpu", backend="torch")
    markers = find_markers(engine.tokenizer.bpe.token_to_id)
    assert engine.edit_format == "zeta-2.1" and markers is not None
    assert (markers.family, markers.start, markers.end) == ("seed-coder", 0, 2)
    request = RewriteRequest("x = 1\ny = 2\n", path="a.py", cursor=2)
    found = engine.rewrite(request)
    assert found.tokens_read > 0 and found.steps > 0
