"""The start of a block drafter: frequent tokens as its vocabulary, and the linear maps of its rows by ridge regression.

From random maps such a drafter learns little more than frequencies in its first 100,000 slots. Regression on a hundred
windows gets past that.

Dimensions: P places, F features, C width.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mercury_engine.models.decoder import Decoder
from mercury_engine.training.block.drafter import BlockDrafter
from mercury_engine.training.drafting.canvases import WindowReading
from mercury_engine.training.drafting.networks import DraftingNetworks
from mercury_engine.training.drafting.windows import Window

RIDGE = 0.1
"""Penalty of squared weights, in mean squares of a feature."""

SCALED, LEAST_FEATURE = 8, 1e-3
"""Windows from which the features' scales are fitted, and the least root mean square that counts."""

SIZE = 2.0
"""Root mean square of the residual with which rows begin, about."""


@dataclass(frozen=True, slots=True)
class BlockStart:
    """What a drafter begins with, taken from the windows of its first steps."""

    vocabulary: int = 6144
    """Tokens that it can draft: 96 % of the tokens in code, of the 23,174 of the bundled model."""
    counted: int = 1000
    """Windows whose tokens are counted."""
    fitted: int = 96
    """Windows from which the maps are fitted."""


def frequent_tokens(windows: Iterable[Window], size: int) -> Tensor:
    """The `size` most frequent tokens of the windows, in ascending order."""
    counts = Counter(token for window in windows for token in window.tokens)
    return torch.tensor(sorted(token for token, _ in counts.most_common(size)))


@torch.no_grad()
def fit_maps(block: BlockDrafter, reader: Decoder, networks: DraftingNetworks, windows: Iterable[Window]) -> None:
    """Fit the maps: known tokens to the reader's last residual there, masked slots to that of slot 1, by direction."""
    windows = list(windows)
    _fit_scale(block, reader, networks, windows[:SCALED])
    size, width = block.features_width + 1, reader.config.hidden_size
    square, product = (torch.zeros(size, n, dtype=torch.float64) for n in (size, 2 * width))
    places = 0
    for window in windows:
        features, wanted = _pairs(block, reader, window, networks.read(window))
        square += (features.T @ features).double().cpu()
        product += (features.T @ wanted).double().cpu()
        places += len(features)
    square += torch.eye(size, dtype=torch.float64) * RIDGE * max(1, places)
    solution = (SIZE * torch.linalg.solve(square, product)).to(block.fuse)
    block.fuse.copy_(solution[:-1].view(-1, 2, width).permute(1, 2, 0))
    known, masked = solution[-1].view(2, width)
    block.places.copy_(masked)
    block.places[0] = known


def _fit_scale(block: BlockDrafter, reader: Decoder, networks: DraftingNetworks, windows: Sequence[Window]) -> None:
    """Give every feature a root mean square of 1."""
    features = torch.cat([_pairs(block, reader, window, networks.read(window))[0][:, :-1] for window in windows])
    block.scale.copy_(block.scale / features.square().mean(0).sqrt().clamp(min=LEAST_FEATURE))


def _pairs(block: BlockDrafter, reader: Decoder, window: Window, reading: WindowReading) -> tuple[Tensor, Tensor]:
    """Features with a constant [P,F+1], and the normed residuals one and two tokens on [P,2C]."""
    places = torch.arange(len(window.tokens) - 2, device=reading.hidden.device)
    known = torch.tensor(window.tokens, device=places.device)[places + 1]
    features = block.features(reader, reading, places, known)
    residual = reading.hidden.float() / reader.norm.float()
    return torch.cat((features, torch.ones_like(features[:, :1])), 1), torch.cat((residual[1:-1], residual[2:]), 1)
