"""Builds the decoder of a model, by its kind."""

from mercury_engine.decoding.autoregressive.decoder import AutoregressiveDecoder
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.decoding.decoder import Decoder
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.options import AutoregressiveOptions, DiffusionOptions
from mercury_engine.kv_cache.cache import BlockCache
from mercury_engine.loading import ModelParts
from mercury_engine.models.network import Network


def contexts_of(parts: ModelParts) -> ContextReader:
    """What reads a model's contexts, with a cache of its own."""
    start = parts.tokenizer.start_id if parts.markers is None else parts.markers.start
    cache = BlockCache(parts.reader, start)
    return ContextReader(cache, parts.tokenizer, parts.markers, sees_after=parts.denoiser is not None)


def decoder_of(parts: ModelParts, contexts: ContextReader, rules: GapRules | None = None) -> Decoder:
    """The decoder of a model; `rules`: others than the model's own."""
    has_markers = parts.markers is not None
    rules = rules or GapRules(parts.tokenizer, parts.reader.config, parts.calibration, has_markers)
    if (attention := parts.reader.config.masked_attention) is not None:
        from mercury_engine.decoding.diffusion.block_causal import BlockCausalDecoder  # 13 ms, for few models
        from mercury_engine.decoding.diffusion.full_attention import FullAttentionDecoder

        assert isinstance(parts.options, DiffusionOptions)
        kind = FullAttentionDecoder if attention.block is None else BlockCausalDecoder
        return kind(parts.reader, contexts, rules, parts.options)
    if parts.denoiser is None:
        assert isinstance(parts.options, AutoregressiveOptions)
        return AutoregressiveDecoder(parts.reader, contexts, rules, parts.options, parts.edit_family)
    return _diffusion(parts, parts.denoiser, contexts, rules)


def _diffusion(parts: ModelParts, denoiser: Network, contexts: ContextReader, rules: GapRules) -> Decoder:
    from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder

    assert isinstance(parts.options, DiffusionOptions)
    return DiffusionDecoder(denoiser, contexts, rules, parts.options)
