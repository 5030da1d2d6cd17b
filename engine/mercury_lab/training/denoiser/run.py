"""Teach a causal model to denoise gaps: `python -m mercury_lab.training denoiser --base DIR --corpus DIR --run DIR`.

All matrices get a low-rank change; the rows of a text all see each other. The loss is that of masked slots (`canvases`)
and the cosine distance of every layer's states to those of the untouched causal model on the clean text, which keeps
what that knows and saves steps: REPR-ALIGN, arXiv 2605.06885. `export` writes the change beside the base's weights; the
model then runs as those of `models.masked_families` do.

Clock, legs and checkpoints are those of `train`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from mercury_engine.errors import RequestError
from mercury_engine.models import decoder_weights, weights
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import ModelConfig
from torch import Tensor
from torch.nn import functional as F

from mercury_lab.training.adapters.mixed_precision import MixedPrecisionNetwork, measured_precision
from mercury_lab.training.data.corpus import SourceFile
from mercury_lab.training.data.folder import source_files
from mercury_lab.training.denoiser.canvases import Canvas, CanvasSteps, MaskedTokens
from mercury_lab.training.examples.mixture import Mixture
from mercury_lab.training.optimisation.options import parser
from mercury_lab.training.optimisation.run import Batch, LogRow, TrainingRun, run_leg

CHARS_PER_TOKEN = 3
"""Characters of `TrainingPlan.context` for a token of a text."""

ALIGNMENT = 10.0
"""Weight of the mean cosine distance, as published."""

PER_PASS = {"cpu": 4, "cuda": 32}
"""Texts of a pass."""


class DenoiserRun(TrainingRun):
    """A run that teaches a causal model to denoise."""

    part = "denoiser"
    steps: CanvasSteps
    validation: list[Canvas] | None
    config: ModelConfig

    def _network(self, base: Path, device: torch.device) -> TorchDecoder:
        config = weights.read_config(base)
        if config.kind != "causal" or weights.reader_change(base):
            raise RequestError(
                f"{base} was trained on by this project; name the pretrained causal model of a base step"
            )
        self.config = config
        network = MixedPrecisionNetwork(replace(config, adapter_rank=self.plan.rank))
        decoder_weights.fill_reader(network, base)
        network.markers.requires_grad_(False)
        network.to(device)
        if measured_precision(device) == "mixed":
            network.convert_frozen()
        self._layers: list[Tensor] = []
        for layer in network.layers:
            layer.register_forward_hook(lambda module, given, made: self._layers.append(made[0]))
        return network

    def _lay(self, files: Iterable[SourceFile]) -> None:
        plan, tokens = self.plan, MaskedTokens.of(self.tokenizer, self.config.vocab_size)
        self.tokens, length = tokens, max(8, plan.context // CHARS_PER_TOKEN)
        self.steps = CanvasSteps(self.tokenizer, Mixture(files), tokens, length, plan.files, plan.gaps, plan.seed)
        self.validation = None
        if (held_out := self.setup.validation) is not None:
            steps = replace(self.steps, mixture=Mixture(source_files(held_out)), seed="held out")
            drawn = (each for step in range(4 * self.setup.validation_gaps) for each in steps[step])
            self.validation = list(islice(drawn, self.setup.validation_gaps))

    def also_saved(self) -> dict[str, Any]:
        """The tokens that the model needs to know."""
        return {"tokens": [self.tokens.mask, self.tokens.expand, self.tokens.delete]}

    def _losses(self, batch: Batch) -> Iterator[tuple[Tensor, Any]]:
        for canvases in self._passes(batch):
            nats, counts, right, distance = self._read(canvases)
            loss = (nats * counts).sum() / counts.sum() + ALIGNMENT * distance
            learned = nats.detach(), counts, right, float(distance.detach())
            yield loss * len(canvases) / len(batch), learned

    def _passes(self, canvases: Sequence[Canvas]) -> Iterator[Sequence[Canvas]]:
        size = PER_PASS[self.network.device.type]
        return (canvases[first : first + size] for first in range(0, len(canvases), size))

    def _read(self, canvases: Sequence[Canvas]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Nats [N] of the masked slots, their weights [N] and whether the likeliest token is right; the distance.

        A canvas counts alike however many of its slots are masked.
        """
        hidden, states = self._states([each.ids for each in canvases], block=None, adapted=True)
        with torch.no_grad():
            _, frozen = self._states([each.clean for each in canvases], block=1, adapted=False)
        device = hidden.device
        of = [
            (number, place - 1, token, weight / len(each.targets))
            for number, each in enumerate(canvases)
            for place, token, weight in each.targets
        ]
        number_N, row_N, target_N, weight_N = (torch.tensor(each, device=device) for each in zip(*of, strict=True))
        logits_NV = self.network.logits(hidden[number_N, row_N])
        nats_N = F.cross_entropy(logits_NV, target_N, reduction="none")
        return nats_N, weight_N, logits_NV.detach().argmax(-1) == target_N, self._distance(canvases, states, frozen)

    def _states(self, texts: list[tuple[int, ...]], block: int | None, adapted: bool) -> tuple[Tensor, list[Tensor]]:
        """Last hidden states [B,T,C] of texts, and every layer's; shorter texts are filled up with their last token.

        Only texts of one length may see later tokens.
        """
        longest = max(map(len, texts))
        assert block is not None or min(map(len, texts)) == longest
        filled = [[*text, *[text[-1]] * (longest - len(text))] for text in texts]
        self._layers.clear()
        ids = torch.tensor(filled, device=self.network.device)
        hidden, _ = self.network.read(ids, adapted=adapted, block=block)
        return hidden, [*self._layers]

    def _distance(self, canvases: Sequence[Canvas], states: Sequence[Tensor], frozen: Sequence[Tensor]) -> Tensor:
        """Mean cosine distance of the rows that stand for a token of the clean text, over all layers."""
        origin_BT = torch.tensor([each.origins for each in canvases], device=states[0].device)
        stands_BT, row_BT = origin_BT >= 0, origin_BT.clamp(min=0)
        number_BT = torch.arange(len(canvases), device=row_BT.device)[:, None].expand_as(row_BT)
        where = number_BT[stands_BT], row_BT[stands_BT]
        distances = [
            1 - F.cosine_similarity(mine[stands_BT].float(), theirs[where].float(), dim=-1).mean()
            for mine, theirs in zip(states, frozen, strict=True)
        ]
        return torch.stack(distances).mean()

    def _figures(self, parts: list[Any]) -> LogRow:
        nats, _, right, distance = zip(*parts, strict=True)
        return {
            "slots": sum(map(len, nats)),
            "nats": float(torch.cat(nats).mean()),
            "right": float(torch.cat(right).float().mean()),
            "distance": sum(distance) / len(distance),
        }

    def _learned(self, batch: Batch) -> int:
        return sum(len(each.targets) for each in batch)

    def _speed(self, batch: Batch, seconds: float) -> LogRow:
        read = sum(len(each.ids) for each in batch)
        return {"tokens_per_second": read / seconds, "rate": self.plan.rate(self.elapsed, self.step)}

    @torch.no_grad()
    def _measured(self) -> LogRow:
        assert self.validation
        return self._figures([self._detached(canvases) for canvases in self._passes(self.validation)])

    def _detached(self, canvases: Sequence[Canvas]) -> tuple[Tensor, Tensor, Tensor, float]:
        nats, counts, right, distance = self._read(canvases)
        return nats, counts, right, float(distance)


def main(argv: list[str]) -> int:
    made = parser(__doc__, "denoiser")
    made.set_defaults(files=4, gaps=8, rank=32, learning_rate=1e-4, compile=False, context=1536)
    run_leg(DenoiserRun, made.parse_args(argv))
    return 0
