"""Measure a block drafter on held-out text: tokens that match the reader's own continuation behind its next token."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from mercury_engine.denoising.ngram_lookup import NgramLookup
from mercury_engine.models.decoder import Decoder
from mercury_engine.training.block.drafter import BlockDrafter
from mercury_engine.training.drafting.canvases import reader_targets
from mercury_engine.training.drafting.measure import draft_figures
from mercury_engine.training.drafting.networks import DraftingNetworks
from mercury_engine.training.drafting.windows import Window
from mercury_engine.training.optimisation.run import LogRow

Tokens = list[list[int]]
"""Tokens of every place of a window."""


@dataclass(frozen=True, slots=True)
class BlockMeasure:
    """Held-out windows with the reader's continuation of each place, and n-gram drafts behind its first token."""

    windows: list[Window]
    continuations: list[Tokens]
    ngram_drafts: list[Tokens]

    @classmethod
    def of(cls, networks: DraftingNetworks, windows: list[Window], slots: int) -> "BlockMeasure":
        continuations = [
            reader_targets(networks.reader, window, networks.read(window), 1 + slots).tokens.tolist()
            for window in windows
        ]
        ngram_drafts = [
            [_repeated(window, place, text[0], slots) for place, text in zip(window.places, texts, strict=True)]
            for window, texts in zip(windows, continuations, strict=True)
        ]
        return cls(windows, continuations, ngram_drafts)

    def figures(self, block: BlockDrafter, reader: Decoder, networks: DraftingNetworks) -> LogRow:
        """See `draft_figures`; every draft begins behind the reader's next token, and `block` is the drafter's."""
        drafts: Tokens = []
        for window, texts in zip(self.windows, self.continuations, strict=True):
            reading = networks.read(window)
            places, known = (
                torch.tensor(each, device=reading.hidden.device) for each in (window.places, _first(texts))
            )
            drafts += block.draft(reader, reading, places, known).tolist()
        texts = [text[1:] for window in self.continuations for text in window]
        found = draft_figures(drafts, texts, [draft for window in self.ngram_drafts for draft in window])
        found["block"] = found.pop("writer")
        del found["behind_first"]
        return found


def _repeated(window: Window, place: int, known: int, slots: int) -> list[int]:
    return NgramLookup().find([*window.tokens[: place + 1], known]).draft[:slots]


def _first(texts: Sequence[Sequence[int]]) -> list[int]:
    return [text[0] for text in texts]
