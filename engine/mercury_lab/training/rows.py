"""Examples as rows of one pass: the untouched model reads what is in front of them, the change learns the rest.

Dimensions: R rows, T tokens in front of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from peft import PeftModel
from torch import Tensor
from torch.nn import functional as F
from transformers import DynamicCache

from mercury_lab.training.examples.masked import Canvas
from mercury_lab.training.examples.requests import Example, TokenIds


@dataclass(frozen=True, slots=True)
class Rows:
    """What one pass learns."""

    ids: TokenIds
    predicted: tuple[tuple[int, int, float], ...]
    """Rows, the tokens that they should predict, and how much each counts."""
    far: tuple[TokenIds, ...] = ()
    """Blocks that are each read alone."""
    head: TokenIds = ()
    """Tokens between the far blocks and the rows."""
    sees_all: bool = False
    """Whether every row sees every other; there is nothing in front of them then."""


def rows_of(example: Example | Canvas) -> Rows:
    """The rows of an example; row by row they predict the next token, as the engine's models do."""
    if isinstance(example, Canvas):
        masked = tuple((place - 1, token, weight) for place, token, weight in example.targets)
        return Rows(example.ids, masked, sees_all=True)
    first, ids = len(example.markers) - 1, (*example.markers, *example.target[:-1])
    wanted = zip(range(first, len(ids)), example.target, example.weights, strict=True)
    return Rows(ids, tuple(wanted), example.far, example.head)


def nats(model: PeftModel, rows: Rows, start_id: int) -> tuple[Tensor, Tensor]:
    """Nats of the predicted tokens, and their weights."""
    logits = predictions(model, rows, start_id)
    tokens = torch.tensor([token for _, token, _ in rows.predicted], device=model.device)
    weights = torch.tensor([weight for _, _, weight in rows.predicted], device=model.device)
    return F.cross_entropy(logits.float(), tokens, reduction="none"), weights


def predictions(model: PeftModel, rows: Rows, start_id: int) -> Tensor:
    """Logits [P,V] of the rows that predict."""
    count = len(rows.ids)
    own = torch.ones(count, count, dtype=torch.bool)
    if not rows.sees_all:
        own = own.tril()
    cache, seen, at = DynamicCache(), torch.ones(0, dtype=torch.bool), 0
    if not rows.sees_all:
        cache, seen, at = _context(model, rows, start_id)
    keep = torch.tensor([row for row, _, _ in rows.predicted], device=model.device)
    sees = torch.cat([seen.expand(count, -1), own], 1)
    return _read(model, rows.ids, range(at, at + count), sees, cache, keep)[0]


@torch.no_grad()
def _context(model: PeftModel, rows: Rows, start_id: int) -> tuple[DynamicCache, Tensor, int]:
    """Keys and values of what is in front of the rows, which of them the rows see [T], and the rows' first position.

    Every far block is read after a start token of its own, which nothing else sees.
    """
    ids, places, of, hidden, at = [start_id], [0], [-1], [False], 1
    for number, block in enumerate(rows.far):
        ids += (start_id, *block)
        places += range(at - 1, at + len(block))
        of += [number] * (1 + len(block))
        hidden += [True, *[False] * len(block)]
        at += len(block)
    ids += rows.head
    places += range(at, at + len(rows.head))
    of += [len(rows.far)] * len(rows.head)
    hidden += [False] * len(rows.head)
    of_T, seen_T = torch.tensor(of), ~torch.tensor(hidden)
    is_head = of_T == len(rows.far)
    sees = ((of_T[:, None] == of_T) | (is_head[:, None] & seen_T)).tril()
    cache = DynamicCache()
    with model.disable_adapter():
        _read(model, ids, places, sees, cache, torch.tensor([0], device=model.device))
    return cache, seen_T, at + len(rows.head)


def _read(
    model: PeftModel, ids: Sequence[int], places: Sequence[int], sees: Tensor, cache: DynamicCache, keep: Tensor
) -> Tensor:
    """Logits [1,P,V] of the rows to keep; the rest of the rows only go into the cache. `sees`: bool [R,T+R]."""
    hidden = torch.zeros(sees.shape, dtype=model.dtype).masked_fill(~sees, torch.finfo(model.dtype).min)
    return model(
        input_ids=torch.tensor([[*ids]], device=model.device),
        position_ids=torch.tensor([[*places]], device=model.device),
        attention_mask=hidden[None, None].to(model.device),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=keep,
    ).logits
