"""The loss of a window's blocks.

A row learns only while the text goes on as the reader would have written it: then what the reader predicts behind the
text is also what it predicts behind its own words. Other rows would learn drafts that it never judges.

Dimensions: P places, S slots, R rows, K draft vocabulary, V vocabulary.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.models.decoder import Decoder
from mercury_engine.training.block.drafter import BlockDrafter, BlockRows
from mercury_engine.training.drafting.canvases import WindowReading
from mercury_engine.training.drafting.windows import Window
from mercury_engine.training.optimisation.run import LogRow

HIDDEN_WEIGHT = 0.5
"""Weight of the squared distance from the reader's hidden state, as a share of that state's square.

EAGLE, arXiv 2401.15077.
"""

CHOICE_WEIGHT = 0.5
"""Weight of the reader's choice against its whole distribution."""


def agreeing_rows(places_P: Tensor, tokens_T: Tensor, choices_T: Tensor, slots: int) -> BlockRows:
    """The first row of every block, and later ones as long as the drafted text is what the reader chooses.

    `choices_T`: the reader's choice behind each token. Blocks begin with the text's own token.
    """
    at_PS = places_P[:, None] + torch.arange(slots, device=places_P.device)
    same_PS = tokens_T[at_PS[:, 1:] + 1] == choices_T[at_PS[:, 1:]]
    kept_PS = F.pad(same_PS, (1, 0), value=True).cumprod(1)
    block, slot = kept_PS.nonzero(as_tuple=True)
    return BlockRows(places_P, tokens_T[places_P + 1], block, slot)


def block_loss(
    block: BlockDrafter, reader: Decoder, window: Window, reading: WindowReading, logits_TV: Tensor
) -> tuple[Tensor, LogRow]:
    """The mean loss per row, and its figures; `logits_TV` are the reader's.

    Figures: `truth`, the cross entropy of the reader's choices and distributions; `distance` from its hidden states;
    `agreed`, the share of each slot's drafts that the reader chooses; `rows`.
    """
    device = reading.hidden.device
    tokens_T, places_P = torch.tensor(window.tokens, device=device), torch.tensor(window.places, device=device)
    rows = agreeing_rows(places_P, tokens_T, logits_TV.argmax(-1), block.shape.slots)
    at_R = places_P[rows.block] + 1 + rows.slot
    hidden_RC = block(reader, reading, rows)
    written_RK = block.logits(reader, hidden_RC, tokens_T[at_R], rows.slot).log_softmax(-1)
    expected_RK = logits_TV[at_R].softmax(-1)[:, block.vocabulary]
    choice_R = expected_RK.argmax(-1)
    known_R = block.vocabulary[choice_R] == logits_TV[at_R].argmax(-1)
    nats_R = -written_RK.gather(1, choice_R[:, None])[:, 0] * known_R
    truth = (CHOICE_WEIGHT * nats_R - (1 - CHOICE_WEIGHT) * (expected_RK * written_RK).sum(-1)).mean()
    wanted_RC = reading.hidden[at_R].float()
    distance = ((hidden_RC - wanted_RC).square().sum(-1) / wanted_RC.square().sum(-1)).mean()
    right_R = (written_RK.argmax(-1) == choice_R) & known_R
    agreed = [float(right_R[rows.slot == slot].float().mean()) for slot in range(block.shape.slots)]
    row = {"truth": float(truth.detach()), "distance": float(distance.detach()), "agreed": agreed, "rows": len(at_R)}
    return truth + HIDDEN_WEIGHT * distance, row
