"""Builds the decoder of a model, by its kind."""

from mercury_engine.decoding.autoregressive.decoder import AutoregressiveDecoder
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.decoding.decoder import Decoder
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.options import AutoregressiveOptions, DiffusionOptions
from mercury_engine.kv_cache.cache import BlockCache
from mercury_engine.loading import ModelParts


def contexts_of(parts: ModelParts) -> ContextReader:
    """What reads a model's contexts, with a cache of its own."""
    start = parts.tokenizer.start_id if parts.markers is None else parts.markers.start
    cache = BlockCache(parts.reader, start)
    return ContextReader(cache, parts.tokenizer, parts.markers, sees_after=parts.denoiser is not None)


def decoder_of(parts: ModelParts, contexts: ContextReader, rules: GapRules | None = None) -> Decoder:
    """The decoder of a model; `rules`: others than the model's own."""
    has_markers = parts.markers is not None
    rules = rules or GapRules(parts.tokenizer, parts.reader.config, parts.calibration, has_markers)
    if parts.denoiser is not None or parts.reader.config.masked_attention is not None:
        return _diffusion(parts, contexts, rules)
    assert isinstance(parts.options, AutoregressiveOptions)
    return AutoregressiveDecoder(parts.reader, contexts, rules, parts.options, parts.edit_family)


def _diffusion(parts: ModelParts, contexts: ContextReader, rules: GapRules) -> Decoder:
    from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder  # 13 ms, for few models
    from mercury_engine.decoding.diffusion.layouts import layout_of

    assert isinstance(parts.options, DiffusionOptions)
    layout = layout_of(parts.reader, parts.denoiser, contexts, parts.options)
    return DiffusionDecoder(layout, contexts, rules, parts.options)
