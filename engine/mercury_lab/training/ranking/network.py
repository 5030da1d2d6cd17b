"""The head as torch networks, for training; `weights` gives what PlaceHead reads.

Shapes: `B` moments, `C` candidates (padded), `F` features.
"""

from collections.abc import Sequence

import numpy as np
import torch
from mercury_engine.places.context import CONTEXT_FEATURES
from mercury_engine.places.features import FEATURES, Array
from torch import Tensor, nn

from mercury_lab.training.ranking.cases import Case

HIDDEN_UNITS = 128
NOWHERE_UNITS = 64
DROPOUT = 0.15


class Batch:
    """Moments padded to the same number of candidates; nowhere is the last column of `wanted`."""

    def __init__(self, chosen: Sequence[Case]) -> None:
        most = max(1, *(len(case.candidates) for case in chosen))
        rows = np.zeros((len(chosen), most, len(FEATURES)), np.float32)
        real, wanted = np.zeros((2, len(chosen), most + 1), np.bool_)
        for n, case in enumerate(chosen):
            rows[n, : len(case.rows)] = case.rows
            real[n, : len(case.rows)] = real[n, -1] = True
            wanted[n, : len(case.rows)] = case.is_right
            wanted[n, -1] = not case.is_right.any()
        self.rows_BCF, self.real_BC, self.wanted_BC = map(torch.from_numpy, (rows, real, wanted))


class HeadNetwork(nn.Module):
    """Scores of candidates and of nowhere."""

    def __init__(self, rows_NF: Array) -> None:
        super().__init__()
        count, context = len(FEATURES), len(CONTEXT_FEATURES)
        self.mean = nn.Buffer(torch.from_numpy(rows_NF.mean(0)))
        self.scale = nn.Buffer(torch.from_numpy(1 / np.maximum(rows_NF.std(0), 1e-2)))
        self.context = context
        self.place_in, self.place_out = nn.Linear(count, HIDDEN_UNITS), nn.Linear(HIDDEN_UNITS, 1, bias=False)
        self.nowhere_in, self.nowhere_out = nn.Linear(count, NOWHERE_UNITS), nn.Linear(NOWHERE_UNITS, 1)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, batch: Batch) -> Tensor:
        """Log-probabilities [B, C + 1], nowhere last; -inf at padding."""
        x = (batch.rows_BCF - self.mean) * self.scale
        scores = self.place_out(self.dropout(self.place_in(x).relu())).squeeze(-1)
        most = x[..., self.context :].masked_fill(~batch.real_BC[:, :-1, None], -torch.inf).amax(1)
        pooled = torch.cat([x[:, 0, : self.context], most], -1)
        nowhere = self.nowhere_out(self.dropout(self.nowhere_in(pooled).relu()))
        return torch.cat([scores, nowhere], -1).masked_fill(~batch.real_BC, -torch.inf).log_softmax(-1)

    def loss(self, batch: Batch) -> Tensor:
        """Mean nats of "one of the right places", or of nowhere if none is right."""
        return -self(batch).masked_fill(~batch.wanted_BC, -torch.inf).logsumexp(-1).mean()

    def weights(self) -> dict[str, Array]:
        """The tensors of a PlaceHead."""
        named = {
            "mean": self.mean,
            "scale": self.scale,
            "place_in": self.place_in.weight.T,
            "place_in_bias": self.place_in.bias,
            "place_out": self.place_out.weight[0],
            "nowhere_in": self.nowhere_in.weight.T,
            "nowhere_in_bias": self.nowhere_in.bias,
            "nowhere_out": self.nowhere_out.weight[0],
            "nowhere_bias": self.nowhere_out.bias,
        }
        return {name: np.ascontiguousarray(tensor.detach().numpy()) for name, tensor in named.items()}
