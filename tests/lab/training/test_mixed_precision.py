"""Frozen matrices in bfloat16 train nearly like those in float32."""

import pytest
import torch
from mercury_engine.models import decoder_weights
from mercury_lab.training.adapters.mixed_precision import MixedPrecisionNetwork

from tests.support import tiny


def network(folder, precision):
    made = MixedPrecisionNetwork(decoder_weights.load(folder, torch.float32, torch.device("cpu")).config)
    made.load_state_dict(decoder_weights.load(folder, torch.float32, torch.device("cpu")).state_dict())
    if precision == "mixed":
        made.convert_frozen()
    return made


@pytest.mark.parametrize("part", ["qkv", "out", "gate_up", "down"])
def test_bfloat16_matrices_give_nearly_the_same_gradients(tmp_path, part):
    folder, ids = tiny.folder(tmp_path), torch.tensor([[7, 3, 11, 5, 2, 9, 4, 8]])
    grads = []
    for precision in ("float32", "mixed"):
        made = network(folder, precision)
        made.logits(made.read(ids, adapted=True)[0]).logsumexp(-1).sum().backward()
        matrix = getattr(made.layers[0], part)
        assert matrix.weight.grad is None
        grads.append(matrix.up.grad.flatten())
    assert float(torch.cosine_similarity(*grads, dim=0)) > 0.98
