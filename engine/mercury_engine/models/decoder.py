"""The network in torch: its weights, and its layers over a buffer of keys.

Dimensions as in `network.py`; R rows, T keys.
"""

from types import ModuleType

import torch
from mercury_kernels import reference
from mercury_kernels.cpu.blocks import GROUP
from mercury_kernels.operands import Matrix, Rows
from torch import Tensor, nn
from torch.nn import functional as F

from mercury_engine.models.network import KeyValueBlock, KeyValueSegment, ModelConfig

Adapted = bool | str
"""What is added to the matrices: nothing (False), the writer's adapter (True), or the adapter of this name."""


class AdaptedLinear(nn.Module):
    """The weights of a `Matrix`, and the adapters that it may have."""

    def __init__(self, inputs: int, outputs: int, bias: bool, rank: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.scales: nn.Parameter | None = None
        """Those of codes."""
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None
        self.down = nn.Parameter(torch.empty(rank, inputs)) if rank else None
        self.up = nn.Parameter(torch.empty(outputs, rank)) if rank else None
        self.named: dict[str, tuple[Tensor, Tensor]] = {}
        """The factors of the adapters that forwards ask for by name."""

    def hold_codes(self) -> None:
        """Make the weight int8 codes, which are to be filled like their scales."""
        outputs, inputs = self.weight.shape
        codes, scales = torch.empty(outputs, inputs, dtype=torch.int8), torch.empty(inputs // GROUP, outputs).half()
        self.weight, self.scales = (nn.Parameter(each, requires_grad=False) for each in (codes, scales))

    def matrix(self, adapted: Adapted) -> Matrix:
        """The matrix with or without an adapter."""
        factors: tuple[Tensor | None, Tensor | None] = None, None
        if adapted:
            factors = self.named[adapted] if isinstance(adapted, str) else (self.down, self.up)
        return Matrix(self.weight, self.bias, *factors, self.scales)


class Layer(nn.Module):
    """The weights of a layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        c, width, rank = config.hidden_size, config.head_dim, config.adapter_rank
        queries, keys = config.num_attention_heads * width, config.num_key_value_heads * width
        self.attn_norm, self.ffn_norm = nn.Parameter(torch.empty(c)), nn.Parameter(torch.empty(c))
        self.head_norms = nn.Parameter(torch.empty(2, width)) if config.qk_norm else None
        """Norms of the heads of queries and keys."""
        self.qkv_sizes = [queries, keys, keys]
        self.qkv = AdaptedLinear(c, sum(self.qkv_sizes), config.attention_bias, rank)
        self.out = AdaptedLinear(queries, c, False, rank)
        self.gate_up = AdaptedLinear(c, 2 * config.intermediate_size, False, rank)
        self.down = AdaptedLinear(config.intermediate_size, c, False, rank)


class TorchDecoder(nn.Module):
    """Embedding, layers, norm and head."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        shape = config.vocab_size + 2 * (config.adapter_rank > 0), config.hidden_size
        self.embedding = nn.Parameter(torch.empty(shape))
        """Rows of the vocabulary, then those of mask and end if an adapter denoises."""
        self.head = None if config.tie_word_embeddings else nn.Parameter(torch.empty(shape))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.Parameter(torch.empty(config.hidden_size))
        self.eps = config.rms_norm_eps / config.residual_multiplier**2
        """Rows are divided by the multiplier of what layers add, so that they add without a factor."""
        self.requires_grad_(False)

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    @property
    def has_codes(self) -> bool:
        """Whether the layers' weights have eight bits."""
        return self._first.qkv.scales is not None

    @property
    def weight_bytes(self) -> int:
        return sum(each.nbytes for each in self.parameters())

    @property
    def named_adapters(self) -> tuple[str, ...]:
        """Names of the adapters that `forward` takes."""
        return tuple(self._first.qkv.named)

    @property
    def _first(self) -> Layer:
        layer = self.layers[0]
        assert isinstance(layer, Layer)
        return layer

    def head_matrix(self, is_slots: bool) -> Tensor:
        """What makes logits of hidden states: [V,C], for slots [V+2,C]."""
        whole = self.embedding if self.head is None else self.head
        return whole[: self.config.vocab_size + 2 * is_slots]

    def logits(self, hidden: Tensor, is_slots: bool = False) -> Tensor:
        """[...,C] to float32 [...,V]; of slots [...,V+2], with mask (never predicted, -inf) and end."""
        logits = F.linear(hidden, self.head_matrix(is_slots)).float() / self.config.logits_scaling
        if is_slots:
            logits[..., self.config.mask_id] = -torch.inf
        return logits

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines float32 [...,D], see `reference.rotary_angles`."""
        return reference.rotary_angles(
            positions, self.config.head_dim, self.config.rope_theta, self.config.rope_factors
        )

    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        """The block's segment with its first token at position start of a frame."""
        positions = torch.arange(start, start + block.tokens, device=block.keys.device)
        return KeyValueSegment(reference.rotate(block.keys, *self.angles(positions)), block.values)

    def forward(
        self, ids_R: Tensor, rows: Rows, keys: Tensor, values: Tensor, adapted: Adapted, by: ModuleType = reference
    ) -> tuple[Tensor, Tensor]:
        """Hidden states [R,C] after the last norm, and the rows' keys [L,R,H,D] before rotation.

        keys and values [L,H,T,D] have the context's keys, rotated; those of the rows are written behind them. `by`:
        `mercury_kernels.ops` for our kernels, which take at most 64 rows, `reference` for torch's operations.
        """
        config, own = self.config, list[Tensor]()
        x, factor = F.embedding(ids_R, self.embedding), config.embedding_multiplier / config.residual_multiplier
        x = x if factor == 1 else x * factor
        for layer, layer_keys, layer_values in zip(self.layers, keys, values, strict=True):
            assert isinstance(layer, Layer)
            qkv = layer.qkv.matrix(adapted), layer.head_norms
            q, k = by.project_qkv(x, layer.attn_norm, self.eps, *qkv, rows, layer_keys, layer_values)
            own.append(k)
            attended = by.attention(q, layer_keys, layer_values, rows, config.score_factor)
            x = by.linear(attended, layer.out.matrix(adapted), residual=x)
            inner = by.linear(x, layer.gate_up.matrix(adapted), layer.ffn_norm, self.eps, gated=True)
            x = by.linear(inner, layer.down.matrix(adapted), residual=x)
        return reference.rms_norm(x, self.norm, self.eps), torch.stack(own)
