"""A GGUF file of the Llama, Qwen2 or Qwen3 family as a configuration and a checkpoint's tensors.

`dream` and `llada` are masked diffusion models with the layers of Qwen2 and Llama, written by llama.cpp's converters.
"""

from typing import Any

from mercury_kernels.cpu.blocks import BlockMatrix

from mercury_engine.errors import ModelCorrupt, ModelError
from mercury_engine.models.gguf.file import GgufFile
from mercury_engine.models.masked_families import EXPAND
from mercury_engine.models.network import CONTEXT_LENGTH, MaskedAttention, ModelConfig
from mercury_engine.models.tensors import Tensors

MASKED = {"dream": "Dream", "llada": "LLaDA"}
"""Architectures of masked models whose rows all see each other, and their families."""

ARCHITECTURES = ("llama", "qwen2", "qwen3", *MASKED)
"""Supported values of `general.architecture`."""

INTERLEAVED = ("llama", "llada")
"""Those whose queries and keys have the rotary halves of a head interleaved."""

EMBEDDING, HEAD, ROPE_FACTORS = "token_embd.weight", "output.weight", "rope_freqs.weight"

_WHOLE_MODEL = {
    EMBEDDING: "model.embed_tokens.weight",
    HEAD: "lm_head.weight",
    "output_norm.weight": "model.norm.weight",
    ROPE_FACTORS: "rope_factors",
}

_BY_LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}

_BIASED = ("attn_q", "attn_k", "attn_v")

_DEFAULT_ROPE_BASE = 10_000.0


class GgufTensors(Tensors):
    """The file's tensors under their checkpoint names, as blocks in the mapped file."""

    def __init__(self, file: GgufFile) -> None:
        self.file, self.path = file, file.path
        self.names = {_checkpoint_name(file, name): name for name in file.tensors}

    def _read(self, name: str) -> BlockMatrix:
        stored = self.names[name]
        matrix, field = self.file.matrix(stored), stored.split(".")[-2]
        if _architecture(self.file) not in INTERLEAVED or field not in ("attn_q", "attn_k"):
            return matrix
        heads = int(_field(self.file, "attention.head_count" if field == "attn_q" else "attention.head_count_kv"))
        numbers = matrix.rows.reshape(heads, -1, 2, matrix.rows.size // self.file.tensors[stored].shape[0])
        return BlockMatrix(matrix.type, numbers.swapaxes(1, 2).reshape(matrix.rows.shape))


def config_of(file: GgufFile) -> ModelConfig:
    """The model's shape. Raises ModelError for what cannot be run, ModelCorrupt for a damaged file."""
    _refuse_unknown(file)
    width, heads = (int(_field(file, name)) for name in ("embedding_length", "attention.head_count"))
    key_heads = int(_field(file, "attention.head_count_kv", heads))
    epsilon = _field(file, "attention.layer_norm_rms_epsilon")
    names, vocabulary = file.tensors.keys(), file.matrix(EMBEDDING).outputs
    attention = _masked_attention(file, vocabulary)
    return ModelConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=int(_field(file, "feed_forward_length")),
        num_hidden_layers=int(_field(file, "block_count")),
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        head_dim=int(_field(file, "attention.key_length", width // heads)),
        rope_theta=float(_field(file, "rope.freq_base", _DEFAULT_ROPE_BASE)),
        rms_norm_eps=float(f"{epsilon:.4g}"),  # stored as float32
        attention_bias="blk.0.attn_q.bias" in names,
        qk_norm="blk.0.attn_q_norm.weight" in names,
        tie_word_embeddings=HEAD not in names,
        rope_factors=tuple(file.matrix(ROPE_FACTORS).floats()[0].tolist()) if ROPE_FACTORS in names else (),
        max_position_embeddings=int(_field(file, "context_length", CONTEXT_LENGTH)),
        name=str(file.value("general.name", file.path.stem)),
        kind="causal" if attention is None else "masked",
        masked_attention=attention,
    )


def _masked_attention(file: GgufFile, vocabulary: int) -> MaskedAttention | None:
    """What sets a masked model apart; None for a causal one. Raises ModelCorrupt without a mask token."""
    architecture = _architecture(file)
    if architecture not in MASKED:
        return None
    mask = file.required("tokenizer.ggml.mask_token_id")
    if type(mask) is not int or not 0 <= mask < vocabulary:
        raise ModelCorrupt(f"{file.path}: tokenizer.ggml.mask_token_id is {mask!r}; fetch or convert it again")
    shifted = bool(file.value("diffusion.shift_logits", architecture == "dream"))
    tokens = file.value("tokenizer.ggml.tokens", [])
    expand = tokens.index(EXPAND) if EXPAND in tokens else None
    delete = None if expand is None else file.value("tokenizer.ggml.eos_token_id")
    return MaskedAttention(MASKED[architecture], mask, shifted, expand, delete)


def _refuse_unknown(file: GgufFile) -> None:
    """Raise ModelError unless this is a plain decoder of a supported architecture, with matrices of known types."""
    architecture = _architecture(file)
    if architecture not in ARCHITECTURES:
        raise ModelError(
            f"{file.path}: the architecture {architecture} is not supported; choose a model of one of "
            f"{', '.join(ARCHITECTURES)}"
        )
    if _field(file, "expert_count", 0):
        raise ModelError(f"{file.path} has experts, which are not supported; choose a dense model")
    for field in ("attention.head_count", "attention.head_count_kv", "feed_forward_length"):
        if isinstance(_field(file, field, 1), list):
            raise ModelError(f"{file.path}: its layers differ in {field}, which is not supported; choose another model")
    scaling = _field(file, "rope.scaling.type", "none")
    if scaling != "none" and _field(file, "rope.scaling.factor", 1.0) != 1.0:
        raise ModelError(f"{file.path} scales rotary angles ({scaling}), which is not supported; choose another model")
    if EMBEDDING not in file.tensors:
        raise ModelCorrupt(f"{file.path} lacks {EMBEDDING}; fetch it again")
    for name in file.tensors:
        _checkpoint_name(file, name)
        file.matrix(name)


def _checkpoint_name(file: GgufFile, name: str) -> str:
    if name in _WHOLE_MODEL:
        return _WHOLE_MODEL[name]
    parts = name.split(".")
    known = len(parts) == 4 and parts[0] == "blk" and parts[2] in _BY_LAYER
    if not known or parts[3] not in (("weight", "bias") if parts[2] in _BIASED else ("weight",)):
        raise ModelError(f"{file.path} has a tensor {name}, which this version does not know; choose another model")
    return f"model.layers.{parts[1]}.{_BY_LAYER[parts[2]]}.{parts[3]}"


def _architecture(file: GgufFile) -> str:
    return str(file.required("general.architecture"))


def _field(file: GgufFile, name: str, default: Any = None) -> Any:
    """A value of the architecture. Raises ModelCorrupt if it is missing and has no default."""
    key = f"{_architecture(file)}.{name}"
    return file.required(key) if default is None else file.value(key, default)
