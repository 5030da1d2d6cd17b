"""A random block drafter for a tiny model folder, and drafters that know what comes next."""

from pathlib import Path

import torch
from mercury_engine.models import drafter_file, weights
from mercury_engine.models.decoder import Decoder
from mercury_engine.training.block.drafter import BlockDrafter, BlockShape
from mercury_engine.training.conversion.export import drafter_tensors

SHAPE = BlockShape(slots=3, seen=256, rank=32)


def random_drafter(reader: Decoder, vocabulary: torch.Tensor, seed: int = 0) -> BlockDrafter:
    """Random weights large enough for every part to matter."""
    torch.manual_seed(seed)
    made = BlockDrafter(reader, vocabulary, SHAPE)
    with torch.no_grad():
        for parameter in (made.fuse, made.places, made.before, made.after, made.scale, made.gain):
            parameter.normal_(std=0.3)
        for part in (made.layer.out, made.layer.down):
            part.weight.div_(0.02)
    return made


def write(folder: Path, drafter: BlockDrafter) -> Path:
    """Put the drafter's file into the folder of its reader."""
    trained = {f"block.{name}": p.detach() for name, p in drafter.named_parameters()}
    path = folder / drafter_file.FILE
    tensors = drafter_tensors(trained, drafter.vocabulary)
    drafter_file.write(path, weights.read_config(folder), tensors, drafter.vocabulary.numpy())
    return path


class ScriptedDrafter:
    """Drafts what a function of the reader's state and the known token says, sure of it."""

    def __init__(self, behind, slots=4, logp=-0.05):
        self.behind, self.slots, self.logp = behind, slots, logp
        self.asked = []

    def denoise(self, state, known):
        self.asked.append((state, known))
        return _ScriptedBlock(self, self.behind(state, known))


class _ScriptedBlock:
    def __init__(self, drafter, tokens):
        self.drafter, self.tokens = drafter, tokens

    def best(self, slot, before, other):
        token = self.tokens[slot] if slot < len(self.tokens) else 1
        return token, self.drafter.logp, self.drafter.logp if other == token else -9.0
