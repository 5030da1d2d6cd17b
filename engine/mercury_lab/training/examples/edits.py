"""Sample synthetic edits of files, laid out like the server's requests for a next edit."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.prompt.edit_layout import edit_blocks
from mercury_engine.prompt.layout import path_block
from mercury_engine.prompt.tokenizer import Tokenizer

from mercury_lab.training.data.corpus import SourceFile
from mercury_lab.training.edits import (
    asynchronous,
    extract,
    imports,
    keys,
    members,
    parameters,
    rename,
    retype,
    wrap,
)
from mercury_lab.training.edits.plan import EditPlan, Site, flipped
from mercury_lab.training.edits.source import Source, cut_source
from mercury_lab.training.edits.stage import (
    QUIET_SHARE,
    EditExample,
    Stage,
    choose_example,
    moved,
    steps,
    steps_in_order,
)
from mercury_lab.training.examples.gaps import PATH_SHARE, GapSettings
from mercury_lab.training.window import window

OTHER_FILE_SHARE = 0.1
"""Share of examples whose history is in another file, if the text can be split."""

PRIOR_SHARE = 0.25
"""Share of examples with another finished edit in the history, if one does not touch the same lines."""

MAX_CACHED_SOURCES = 32
MAX_EDIT_ATTEMPTS = 4

Planner = Callable[[Source, random.Random], EditPlan | None]

PLANNER_WEIGHTS: dict[Planner, float] = {
    rename.sample_plan: 1.5,
    parameters.sample_plan: 3.0,
    members.sample_plan: 2.0,
    retype.sample_plan: 1.5,
    extract.sample_plan: 1.5,
    imports.sample_plan: 1.0,
    asynchronous.sample_plan: 1.0,
    wrap.sample_plan: 1.0,
    keys.sample_plan: 1.0,
}
"""Weight of each kind of edit for being tried first."""


class EditSampler:
    """Samples edits of files; equal generators give equal edits.

    `window`: lines of a region, see `choose_example`; `most_tokens` of a region's new text.
    """

    def __init__(
        self, tokenizer: Tokenizer, rng: random.Random, spans: GapSettings, window: int, most_tokens: int
    ) -> None:
        self.tokenizer, self.rng, self.spans = tokenizer, rng, spans
        self.window, self.most_tokens = window, most_tokens
        self._sources = LeastRecentlyUsed[tuple[str, int], Source](MAX_CACHED_SOURCES)

    def examples(self, file: SourceFile, count: int) -> Iterator[EditExample]:
        """Up to `count` synthetic edits of a file."""
        source = self._source(file)
        for _ in range(count):
            if example := self._example(source):
                yield example

    def surroundings(self, example: EditExample) -> tuple[list[str], str, list[str]]:
        """Far blocks with history and region last, near prefix and suffix blocks, as the server sends them."""
        start, end = example.region
        text = example.current
        sizes = self.spans.prefix_chars, self.spans.suffix_chars
        far, near, _ = window(text, start, start, *sizes)  # the document's own chunks: the region stands in it
        _, _, suffix = window(text, end, end, *sizes)
        far += edit_blocks(example.history, text[start:end], example.language)
        if self.rng.random() < PATH_SHARE:
            far.insert(0, path_block(example.path, example.language))
        return far, near, suffix

    def _source(self, file: SourceFile) -> Source:
        return self._sources.get_or_make((file.path, hash(file.text)), lambda: cut_source(file, self.rng))

    def _fits(self, example: EditExample) -> bool:
        return len(self.tokenizer.encode("\n" + example.rewritten)) <= self.most_tokens

    def _example(self, source: Source) -> EditExample | None:
        """One edit; whether it is quiet is drawn first, so that what fits does not change the share."""
        is_quiet = self.rng.random() < QUIET_SHARE
        for _ in range(MAX_EDIT_ATTEMPTS):
            order = sorted(PLANNER_WEIGHTS, key=lambda planner: -(self.rng.random() ** (1 / PLANNER_WEIGHTS[planner])))
            plans = (planner(source, self.rng) for planner in order)
            made = next((made for made in plans if made and len(steps(made)) > 1), None)
            if made is None:
                return None
            stage = self._stage(source, made, is_quiet)
            if example := choose_example(stage, is_quiet, self._fits, self.rng, self.window):
                return stage.lookup_text(example, self.rng) if self.rng.random() < OTHER_FILE_SHARE else example
        return None

    def _stage(self, source: Source, made: EditPlan, is_quiet: bool) -> Stage:
        own = steps_in_order(made, self.rng)
        done = len(own) - 1 if made.ordered else self.rng.randint(1, len(own) - 1)
        if is_quiet and self.rng.random() < 0.5:
            done = len(own)
        prior = self._prior(source, made, own) if self.rng.random() < PRIOR_SHARE else []
        return Stage(source.path, source.language, made.kind, made.text, (*prior, *own), len(prior) + done)

    def _prior(self, source: Source, made: EditPlan, own: list[Site]) -> list[Site]:
        """The steps of another edit of the same file that shares no line with the plan; none if it shares one."""
        other = self.rng.choice((rename.sample_plan, retype.sample_plan, keys.sample_plan))(source, self.rng)
        if other is None or other.text != source.text:
            return []
        back = flipped(made).sites if made.text != source.text else ()
        if any(a.start <= b.end and b.start <= a.end for a in other.sites for b in back):
            return []
        sites = tuple(Site(moved(s.start, back), moved(s.end, back), s.text) for s in other.sites)
        found = steps(replace(other, text=made.text, sites=sites))
        clash = any(a.start <= b.end and b.start <= a.end for a in found for b in own)
        return [] if clash or len(found) > 4 else found
