"""Torch twins of all operations: the definitions that faster implementations are tested against.

Dimensions: M rows, T keys, H key heads, G query heads per key head, D head width, C channels, W answers,
V vocabulary, K candidates, R rows.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from mercury_kernels.cpu.blocks import GROUP
from mercury_kernels.operands import UNSEEN, Matrix, Rows, Slots

LEAST_SURPRISE_LEFT_OUT = 88.0
"""Nats from which on a token has no part in an entropy: its probability is 0 in float32."""


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension; at least float32 inside. arXiv 1910.07467."""
    return F.rms_norm(x, weight.shape, weight, eps)


def rotary_angles(
    positions: Tensor, head_width: int, theta: float, factors: Sequence[float] = ()
) -> tuple[Tensor, Tensor]:
    """Cosines and sines float32 [...,D] for integer positions [...], which may be negative. arXiv 2104.09864.

    The sines of the left half are negative, as `rotate` takes them. `factors` [D/2] divide the frequencies.
    """
    frequency = theta ** (-torch.arange(0, head_width, 2, device=positions.device).float() / head_width)
    if factors:
        frequency = frequency / torch.tensor(factors, device=positions.device)
    angle = positions.float()[..., None] * frequency
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding in halves, computed in float32: x [...,D], cos and sin of the same shape or broadcast."""
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin).to(x.dtype)


def swiglu(gate_up: Tensor) -> Tensor:
    """silu(gate) * up for the two halves of the last dimension. arXiv 2002.05202."""
    gate, up = gate_up.chunk(2, -1)
    return F.silu(gate) * up


def project_qkv(
    x: Tensor,
    norm: Tensor,
    eps: float,
    matrix: Matrix,
    head_norms: Tensor | None,
    rows: Rows,
    keys: Tensor,
    values: Tensor,
) -> tuple[Tensor, Tensor]:
    """Queries [M,H*G,D], rotated, and keys [M,H,D], not rotated: RMSNorm of x [M,C] times the matrix.

    The rows' rotated keys and their values are stored in keys and values [H,T,D]. `head_norms` [2,D]: norms of the
    heads of queries and keys.
    """
    heads, _, width = keys.shape
    wide = linear(x, matrix, norm, eps).view(len(x), -1, width)
    qk, v = wide.split([wide.shape[1] - heads, heads], 1)
    parts = [qk.shape[1] - heads, heads]
    if head_norms is not None:
        both = zip(qk.split(parts, 1), head_norms, strict=True)
        qk = torch.cat([rms_norm(heads_of, scale, eps) for heads_of, scale in both], 1)
    q, k = rotate(qk, *rows.angles).split(parts, 1)
    keys.index_copy_(1, rows.slots, k.transpose(0, 1))
    values.index_copy_(1, rows.slots, v.transpose(0, 1))
    return q, qk[:, parts[0] :]


def linear(
    x: Tensor,
    matrix: Matrix,
    norm: Tensor | None = None,
    eps: float = 0.0,
    residual: Tensor | None = None,
    gated: bool = False,
) -> Tensor:
    """x [M,in] times the matrix, optionally after a norm, and before SwiGLU; or plus a residual [M,out], without bias.

    The kernel is for few rows, up to about 64.
    """
    x = x if norm is None else rms_norm(x, norm, eps)
    weight = dense(matrix.weight, matrix.scales, x.dtype)
    y = F.linear(x, weight, matrix.bias) if residual is None else torch.addmm(residual, x, weight.T)
    if matrix.down is not None and matrix.up is not None:
        y = torch.addmm(y, F.linear(x, matrix.down), matrix.up.T)
    return swiglu(y) if gated else y


def dense(weight: Tensor, scales: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The weights [out,in] of a `Matrix` as floats; of codes this reads a byte and writes a float for each."""
    if scales is None:
        return weight.to(dtype)
    made = torch.empty(weight.shape, dtype=dtype, device=weight.device)
    codes, out = (each.unflatten(1, (-1, GROUP)) for each in (weight, made))
    torch.mul(codes, scales.float().T[..., None], out=out)
    return made


def attention(q: Tensor, keys: Tensor, values: Tensor, rows: Rows, scale: float) -> Tensor:
    """Attention [M,H*G*D] of q [M,H*G,D] over the keys and values [H,T,D] that its rows see."""
    heads, length, width = keys.shape
    folded = q.view(len(q), heads, -1, width).permute(1, 2, 0, 3)  # [H,G,M,D]
    bias = rows.bias(length, folded.shape[1], q.dtype)
    given = folded.flatten(1, 2)[None], keys[None], values[None], bias[None, None]
    out = F.scaled_dot_product_attention(*given, scale=scale).view(folded.shape)
    return out.permute(2, 0, 1, 3).flatten(1)


def answers(
    hidden: Tensor,
    matrix: Matrix,
    bits: Tensor,
    lists: Tensor,
    scale: float = 1.0,
    never: int = -1,
    keeps: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The likeliest allowed token int32 [W] of hidden [W,C] over matrix [V,C], and four figures float32 [W,4].

    They are its logit, the logarithms of the sums of exp(logit) over the allowed tokens and over all, and the entropy
    of the allowed ones in nats; NaN for a row without an allowed token. Logits are products times `scale`; that of the
    token `never` is -inf. bits int32 [N,ceil(V/32)]: bit i % 32 of word i // 32 bans token i; lists int32 [W]: the list
    of each row, or -1. `keeps`: also the logits float32 [W,V], -inf for banned tokens; the kernel stores no others.
    """
    logits = F.linear(hidden, matrix.weight).float() * scale
    if never >= 0:
        logits[:, never] = -torch.inf
    allowed = logits.masked_fill(_banned(logits.shape[1], bits, lists), -torch.inf)
    logit, token = allowed.max(-1)
    log_sum = allowed.logsumexp(-1)
    surprise = (log_sum[:, None] - allowed).clamp(max=LEAST_SURPRISE_LEFT_OUT)
    entropy = (allowed.softmax(-1) * surprise).sum(-1)
    figures = torch.stack((logit, log_sum, logits.logsumexp(-1), entropy), -1)
    return token.int(), figures, allowed if keeps else None


def _banned(vocabulary: int, bits: Tensor, lists: Tensor) -> Tensor:
    """bool [W,V]: the tokens that the list of each row bans."""
    token = torch.arange(vocabulary, device=bits.device)
    if not len(bits):
        return torch.zeros(len(lists), vocabulary, dtype=torch.bool, device=bits.device)
    words = bits[lists.clamp(min=0).long()][:, token // 32]
    return ((words >> (token % 32)) & 1).bool() & (lists >= 0)[:, None]


def draw(tokens: Tensor, logits: Tensor, slots: Slots) -> tuple[Tensor, Tensor]:
    """A token int32 [W] drawn from the candidates [W,K], which fall in their logits [W,K], and how sure it is [W].

    Temperature, then the smallest set of tokens with at least `top_p`, then the `top_k` largest; `by_entropy` counts
    what is left.
    """
    again, by_entropy, *_, temperature, top_p, top_k = slots.rule[4:].unbind()
    place, rank = (torch.arange(each, device=tokens.device) for each in tokens.shape)
    chance = (logits.double() / temperature).softmax(-1)
    kept = (chance.cumsum(-1) - chance <= top_p) & (rank < top_k)
    chance = chance * kept
    chance = chance / chance.sum(-1, keepdim=True)
    by_number = tokens.argsort(-1)
    is_mask = (slots.answer >= 0) & (slots.ids == slots.mask)
    accepted = slots.answer[is_mask.int().argmax(keepdim=True)] * (again == 0)
    number = slots.uniform[(place - accepted).clamp(min=0)][:, None]
    below = (chance.gather(-1, by_number).cumsum(-1) <= number).sum(-1, keepdim=True)
    drawn = by_number.gather(-1, below.clamp(max=tokens.shape[1] - 1))
    entropy = -(chance * chance.clamp(min=1e-10).log()).sum(-1)
    sure = torch.where(by_entropy > 0, -entropy, chance.gather(-1, drawn)[:, 0])
    return tokens.gather(-1, drawn)[:, 0].int(), sure


def reveal(token: Tensor, told: Tensor, slots: Slots) -> Tensor:
    """The rows int32 [R] after a step, -1 for padding; a tie goes to the left.

    token int32 [W]: that of each answer; `told`: how sure it is [W], or the figures [W,4] of `answers`.
    """
    count, share, least, bound, again, by_entropy, end = slots.rule[:7].unbind()
    place, sure = torch.arange(len(slots.ids), device=token.device), told
    if told.dim() == 2:
        logit, log_sum, _, entropy = told.unbind(1)
        sure = torch.where(by_entropy > 0, -entropy, (logit - log_sum).exp())
    is_slot, answer = slots.answer >= 0, slots.answer.clamp(0, len(token) - 1)
    is_mask, sure = is_slot & (slots.ids == slots.mask), sure[answer]
    tie = (sure == sure[:, None]) & (place < place[:, None])
    before = ((sure > sure[:, None]) | tie) & is_mask
    few = before.sum(1) < count + (is_mask.sum() * share).floor()
    chosen = few | (sure >= least) | (torch.where(before, -sure, 0.0).sum(1) <= bound)
    ids = torch.where(is_mask & chosen, token[answer].long(), slots.ids)
    ids = torch.where(is_slot & ((is_slot & (ids == end)).cumsum(0) > 0), end.long(), ids)
    below = ((sure < sure[:, None]) | tie) & is_slot
    ids = torch.where(is_slot & (below.sum(1) < again), slots.mask, ids)
    if told.dim() == 1:  # only rules that draw insert and delete
        ids = _edited(ids, is_slot, is_mask, slots)
    slots.ids.copy_(ids)
    return ids.where(slots.order < UNSEEN, -1).int()


def _edited(ids: Tensor, is_slot: Tensor, is_mask: Tensor, slots: Slots) -> Tensor:
    """The rows with slots inserted and deleted; moves their order and answers, too."""
    place, (delete, expand) = torch.arange(len(ids), device=ids.device), slots.rule[7:9].unbind()
    deleted = is_mask & ((is_slot & (ids == delete)).cumsum(0) > 0)
    expanded = is_slot & ~deleted & (ids == expand)
    ends = (1 - deleted.long() + expanded.long()).cumsum(0)
    source = torch.searchsorted(ends, place, right=True)  # R for what moves in from beyond
    slots.order.copy_(F.pad(slots.order, (0, 1), value=UNSEEN)[source])
    number = place - (slots.answer == 0).int().argmax()
    slots.answer.copy_(torch.where(F.pad(is_slot, (0, 1))[source], number, -1))
    return F.pad(torch.where(expanded, slots.mask, ids), (0, 1))[source]
