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
    sees_after = isinstance(parts.options, DiffusionOptions) and parts.reader.config.adapter_rank > 0
    return ContextReader(cache, parts.tokenizer, parts.markers, sees_after)


def decoder_of(parts: ModelParts, contexts: ContextReader) -> Decoder:
    """The decoder of a model."""
    rules = GapRules(parts.tokenizer, parts.reader.config, parts.calibration, parts.markers is not None)
    if isinstance(parts.options, AutoregressiveOptions):
        return AutoregressiveDecoder(parts.reader, contexts, rules, parts.options, parts.edit_family)
    from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder  # 13 ms, for few models
    from mercury_engine.decoding.diffusion.layouts import layout_of

    layout = layout_of(parts.reader, contexts, parts.options)
    return DiffusionDecoder(layout, contexts, rules, parts.options)
