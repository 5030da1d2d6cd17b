"""The loss of a window's drafts.

Dimensions: P places, S slots, C width.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.models.decoder import Decoder
from mercury_engine.training.drafting.canvases import DraftTargets
from mercury_engine.training.drafting.windows import DraftingSettings
from mercury_engine.training.optimisation.run import LogRow


def drafting_loss(
    writer: Decoder, hidden: Tensor, targets: DraftTargets, settings: DraftingSettings
) -> tuple[Tensor, LogRow]:
    """The mean loss per place from hidden states [P,S,C], and its figures.

    Figures: `truth`, the cross entropy of the target tokens; `divergence` from the reader's predictions; `agreed`, the
    share of each slot's tokens that are also the reader's most probable ones.
    """
    places, slots, _ = hidden.shape
    written = writer.writer_logits(hidden.flatten(0, 1)).view(places, slots, -1).log_softmax(-1)
    expected = targets.log_probabilities
    nats = -written.gather(-1, targets.tokens[..., None])[..., 0]
    divergence = F.kl_div(written[..., : expected.shape[-1]], expected, reduction="none", log_target=True)
    slot_weights = torch.tensor(settings.slot_weights(), device=hidden.device)
    parts = [(part.mean(0) * slot_weights).sum() for part in (nats, divergence.sum(-1))]
    agreed = (written.argmax(-1) == expected.argmax(-1)).float().mean(0)
    row = {"truth": float(parts[0].detach()), "divergence": float(parts[1].detach()), "agreed": agreed.tolist()}
    return settings.text_weight * parts[0] + settings.divergence_weight * parts[1], row
