"""Measure a writer's drafts: the number of tokens that match the reader's own continuation of held-out text."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from mercury_engine.denoising.ngram_lookup import NgramLookup
from mercury_engine.training.drafting.canvases import correct_tokens, reader_targets, write_drafts
from mercury_engine.training.drafting.networks import DraftingNetworks
from mercury_engine.training.drafting.windows import Window
from mercury_engine.training.optimisation.run import LogRow


@dataclass(frozen=True, slots=True)
class DraftMeasure:
    """Held-out windows with the reader's continuation and the n-gram lookup's draft of each place."""

    windows: list[Window]
    continuations: list[list[list[int]]]
    ngram_drafts: list[list[list[int]]]

    @classmethod
    def of(cls, networks: DraftingNetworks, windows: list[Window], slots: int) -> "DraftMeasure":
        continuations = [
            reader_targets(networks.reader, window, networks.read(window), slots).tokens.tolist() for window in windows
        ]
        ngram_drafts = [[NgramLookup().find(w.tokens[: p + 1]).draft[:slots] for p in w.places] for w in windows]
        return cls(windows, continuations, ngram_drafts)

    @torch.no_grad()
    def figures(self, networks: DraftingNetworks) -> LogRow:
        """See `draft_figures`."""
        drafts: list[list[int]] = []
        for window, continuations in zip(self.windows, self.continuations, strict=True):
            hidden = write_drafts(networks.writer, window, networks.read(window), len(continuations[0]))
            tokens = networks.writer.writer_logits(hidden.flatten(0, 1)).argmax(-1)
            drafts += tokens.view(hidden.shape[:2]).tolist()
        texts = [place for window in self.continuations for place in window]
        return draft_figures(drafts, texts, [place for window in self.ngram_drafts for place in window])


def draft_figures(drafts: Sequence[list[int]], texts: Sequence[list[int]], ngram_drafts: Sequence[list[int]]) -> LogRow:
    """The mean number of correct tokens per draft, and the shares of the writer's slots that are correct.

    `writer`, `repeat` (n-gram lookup) and `both` (the better of the two at each place): tokens up to the first wrong
    one; `error`: the standard error of `writer`; `behind_first`: the writer's tokens from the second slot on, whatever
    the first one is, because the reader knows that token once it has judged the one before; `slots`: each slot alone;
    `ahead`: a slot and all before it.
    """
    written = torch.tensor(correct_tokens(drafts, texts))
    repeated = torch.tensor(correct_tokens(ngram_drafts, texts))
    same = torch.tensor(drafts) == torch.tensor(texts)
    after_first = correct_tokens([draft[1:] for draft in drafts], [text[1:] for text in texts])
    return {
        "places": len(texts),
        "writer": float(written.float().mean()),
        "error": float(written.float().std() / len(texts) ** 0.5),
        "repeat": float(repeated.float().mean()),
        "both": float(torch.maximum(written, repeated).float().mean()),
        "behind_first": sum(after_first) / len(after_first),
        "slots": same.float().mean(0).tolist(),
        "ahead": same.int().cumprod(1).float().mean(0).tolist(),
    }
