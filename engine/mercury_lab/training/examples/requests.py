"""Gaps of files and edits of commits, laid out as the engine lays out a request."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice

from mercury_engine.api import REGION_LINES_ABOVE, REGION_LINES_BELOW, FillRequest
from mercury_engine.decoding.context_reader import far_blocks, lines_around
from mercury_engine.errors import RequestError
from mercury_engine.prompt.edit_layout import edit_blocks
from mercury_engine.prompt.gap_format import split_line
from mercury_engine.prompt.layout import near_part, path_block
from mercury_engine.prompt.tokenizer import Tokenizer

from mercury_lab.training.commits.commit_edit import CommitEdit
from mercury_lab.training.commits.examples import EditExample, edit_example
from mercury_lab.training.commits.moments import Moment, begun, moments
from mercury_lab.training.examples.gaps import PATH_SHARE, GapSampler, GapSettings, Span
from mercury_lab.training.examples.mixture import Mixture
from mercury_lab.training.window import window

TokenIds = tuple[int, ...]

MAX_GAP_TOKENS = 64
MAX_EDIT_TOKENS = 224
"""Tokens of a target with its end; examples with longer ones are dropped."""

REGION_LINES = 7
"""Lines of a region, as the server cuts it around a place: the change may be anywhere in it."""

AROUND_CURSOR = REGION_LINES_ABOVE, REGION_LINES_BELOW
"""Lines above and below the last change in the region that the server has rewritten first."""

AROUND_CURSOR_SHARE = 0.5
"""Share of a commit's moments whose region is the one around the last change."""

QUIET_AROUND_SHARE = 0.4
"""Share of regions around the last change in which nothing is left to do that are kept: a third of all examples then
stay as they are."""

COPY_WEIGHT = 0.3
"""Weight of a token that stays as it is in an edit, relative to one that changes or begins a line.

At a line's beginning the edit may end or insert lines, so a smaller weight there would make the model expect an end.
"""

MOMENTS_PER_EDIT = 3

FORESEEN_SHARE = 0.85
"""Least share of a commit's changed tokens that occur in the edits so far or around the region.

The others can't be guessed, so a small model only learns from them to write something.
"""


@dataclass(frozen=True, slots=True)
class Example:
    """One request and its answer. Blocks in `far` are read alone, `head` after them, both by the untouched model."""

    far: tuple[TokenIds, ...]
    head: TokenIds
    markers: TokenIds
    """The gap's markers with the rest of the cursor's line: the first rows that the adapter changes."""
    target: TokenIds
    """The cursor's line up to the gap, the text of the gap, and the tokens that end it."""
    weights: tuple[float, ...]
    """The weight of each target token's loss."""
    scored: int
    """The target tokens at the end that belong to the gap itself."""

    foreseen: float = 1.0
    """Of an edit, the share of its changed tokens that occur in what the model reads; 1 if nothing changes."""

    def shows(self, tokens: Sequence[int]) -> float:
        """The share of tokens that occur in what the model reads; 1 of none."""
        shown = {token for block in self.far for token in block} | {*self.head, *self.markers}
        return sum(token in shown for token in tokens) / len(tokens) if tokens else 1.0


class Layouter:
    """Turns requests into examples. Raises RequestError for a model without a gap format."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        if tokenizer.markers is None:
            raise RequestError("adapters are trained for models with a gap format only; name another --base")
        self.tokenizer, self.markers = tokenizer, tokenizer.markers

    def gap(self, request: FillRequest, text: str, breaks: str = "") -> Example:
        """A gap filled with `text`. Every token of the cursor's line counts: it is the gap of an earlier cursor.

        `breaks`: the line breaks after a gap at a line's end, which then end it. A vocabulary joins them to the marks
        in front of them (`);` and a break), so an end marker in their place would share the last token's probability.
        """
        line = split_line(request.near)[1]
        written = near_part(self.tokenizer.encode(line + text + breaks))
        target = written if breaks else (*written, self.markers.end)
        own = len(target) - len(self.tokenizer.encode(line))
        return self._laid(request, target, [1.0] * len(target), max(1, own))

    def edit(self, request: FillRequest, present: str, text: str) -> Example:
        """A region rewritten from the present text; tokens that stay count little."""
        before, after = self.tokenizer.encode(present), self.tokenizer.encode(text)
        stays = kept_tokens(before, after)
        weights = edit_weights(stays, [self._breaks(token) for token in after])
        target = near_part(after)
        ended = (*target, self.markers.end), [*weights[-len(target) :], 1.0]
        example = self._laid(request, *ended, len(after) + 1)
        changed = [token for token, is_kept in zip(after, stays, strict=True) if not is_kept]
        return replace(example, foreseen=example.shows(changed))

    def _breaks(self, token: int) -> bool:
        return "\n" in self.tokenizer.decode([token])

    def _laid(self, request: FillRequest, target: TokenIds, weights: Sequence[float], scored: int) -> Example:
        head, rest = lines_around(self.tokenizer, request)
        lines, markers = self.markers.parted(head, rest)
        far = tuple(filter(None, far_blocks(self.tokenizer, request)))
        return Example(far, lines, markers, target, tuple(weights), min(scored, len(target)))


def line_breaks(text: str) -> str:
    """The line breaks with which a text begins."""
    return text[: len(text) - len(text.lstrip("\n"))]


def kept_tokens(before: Sequence[int], after: Sequence[int]) -> list[bool]:
    """Which tokens of a rewritten region stay as they are; the first one after a change counts as changed."""
    kept = [False] * len(after)
    for _, start, length in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        first = start + bool(start)
        kept[first : start + length] = [True] * max(0, start + length - first)
    return kept


def edit_weights(kept: Sequence[bool], breaks: Sequence[bool]) -> list[float]:
    """The weight of each token of a rewritten region: full where it changes and where a line begins.

    `breaks`: which tokens have a line break.
    """
    begins = (True, *breaks)
    return [COPY_WEIGHT if stays and not begins[at] else 1.0 for at, stays in enumerate(kept)]


class GapExamples:
    """Gaps of a corpus: several of each window, so that they share what is read."""

    def __init__(self, tokenizer: Tokenizer, mixture: Mixture, spans: GapSettings, gaps: int) -> None:
        self.layouter, self.mixture, self.spans, self.gaps = Layouter(tokenizer), mixture, spans, gaps

    def sample(self, rng: random.Random) -> list[Example]:
        """The gaps of one window; may be empty."""
        file = self.mixture.sample(rng)
        sampler = GapSampler(rng, self.spans)
        drawn = sampler.places(file, 3 * self.gaps, self.mixture.others(file, rng))
        if drawn is None:
            return []
        text, first, spans = drawn
        return list(islice(self._fitting(text, first, spans), self.gaps))

    def _fitting(self, text: str, first: Sequence[str], spans: Iterator[Span]) -> Iterator[Example]:
        for start, end in spans:
            far, near, suffix = window(text, start, end, self.spans.prefix_chars, self.spans.suffix_chars)
            if near and text[start:end].strip():
                request = FillRequest(near=near, far=(*first, *far), suffix=tuple(suffix))
                example = self.layouter.gap(request, text[start:end], line_breaks(text[end:]))
                if len(example.target) <= MAX_GAP_TOKENS:
                    yield example


class EditExamples:
    """Edits of commits: the next step of a moment, or a region that stays when all steps are made."""

    def __init__(
        self, tokenizer: Tokenizer, edits: Sequence[CommitEdit], spans: GapSettings, foreseen: float = FORESEEN_SHARE
    ) -> None:
        self.layouter, self.edits, self.spans = Layouter(tokenizer), edits, spans
        self.foreseen = foreseen

    def sample(self, rng: random.Random) -> list[Example]:
        """The examples of one commit; may be empty."""
        edit = rng.choice(self.edits)
        found = (self._of_moment(moment, rng) for moment in self._moments(edit, rng))
        laid = [self._example(each, rng) for each in found if each is not None]
        return [example for example in laid if example.foreseen >= self.foreseen]

    def _of_moment(self, moment: Moment, rng: random.Random) -> EditExample | None:
        """The region around the next step, or around the last change."""
        is_around = not moment.typed and rng.random() < AROUND_CURSOR_SHARE
        found = edit_example(moment, rng, self._fits, REGION_LINES, AROUND_CURSOR if is_around else None)
        if found is not None and is_around and found.is_quiet and rng.random() >= QUIET_AROUND_SHARE:
            return None
        return found

    def _moments(self, edit: CommitEdit, rng: random.Random) -> list[Moment]:
        other = rng.choice(self.edits)
        same = other.repository == edit.repository and other is not edit
        typed = begun(edit, rng)
        return [*moments(edit, rng, MOMENTS_PER_EDIT, other if same else None), *([typed] if typed else [])]

    def _fits(self, example: EditExample) -> bool:
        return len(self.layouter.tokenizer.encode(example.rewritten)) < MAX_EDIT_TOKENS

    def _example(self, example: EditExample, rng: random.Random) -> Example:
        """Far blocks with history and region last, near prefix and suffix blocks, as the server sends them."""
        (start, end), text = example.region, example.text
        sizes = self.spans.prefix_chars, self.spans.suffix_chars
        far, near, _ = window(text, start, start, *sizes)  # the document's own chunks: the region stands in it
        _, _, suffix = window(text, end, end, *sizes)
        far += edit_blocks(example.history, text[start:end], example.language)
        if rng.random() < PATH_SHARE:
            far.insert(0, path_block(example.path, example.language))
        request = FillRequest(near=near, far=tuple(far), suffix=tuple(suffix))
        return self.layouter.edit(request, example.region_text, example.rewritten)
