"""Sample passages to train the reader on: the text before a cursor, after the blocks that the server would send."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from mercury_engine.kv_cache.cache import TokenIds
from mercury_engine.prompt.chunking import split
from mercury_engine.prompt.layout import PREFIX_CHARS, SUFFIX_CHARS, rest_and_below
from mercury_engine.prompt.tokenizer import Tokenizer
from torch.utils.data import Dataset

from mercury_lab.training.data.corpus import SourceFile
from mercury_lab.training.examples.gaps import FILE_START_SHARE, first_blocks
from mercury_lab.training.examples.mixture import Mixture
from mercury_lab.training.window import around

CONTEXT_BUDGETS = ((PREFIX_CHARS, SUFFIX_CHARS), (900, 700), (900, 700))
"""Characters of context before and after the cursor; short ones are cheaper to prefill and teach as much."""

WHOLE_CHUNK_SHARE = 0.5
"""Share of passages that are whole chunks; the others end at a cursor inside one."""

NOTHING_BELOW_SHARE = 0.1
"""Share of passages with no text below the cursor."""

MIN_PASSAGE_TOKENS, MAX_PASSAGE_TOKENS = 8, 320


@dataclass(frozen=True, slots=True)
class Passage:
    """A near prefix to predict token by token, and the blocks before it; blocks from below the cursor come first."""

    far: list[TokenIds]
    near: TokenIds


@dataclass(frozen=True)
class PassageSteps(Dataset[list[list[Passage]]]):
    """Step number -> passages by file; equal seeds and numbers give equal passages."""

    tokenizer: Tokenizer
    mixture: Mixture
    files: int
    count: int
    """Passages per file, from consecutive chunks, so that they share most blocks."""
    seed: int
    budgets: tuple[tuple[int, int], ...] = CONTEXT_BUDGETS

    def __getitem__(self, step: int) -> list[list[Passage]]:
        """The step's passages by file; files that are too short give none."""
        rng = random.Random(f"{self.seed}/reader/{step}")
        drawn = [self.mixture.sample(rng) for _ in range(self.files)]
        found = [self.passages(f, self.mixture.others(f, rng), rng, rng.choice(self.budgets)) for f in drawn]
        return [passages for passages in found if passages]

    def passages(
        self, file: SourceFile, others: Sequence[SourceFile], rng: random.Random, budget: tuple[int, int]
    ) -> list[Passage]:
        """Passages at one place in a file; `budget`: characters of context before and after the cursor."""
        text = file.text.replace("\r\n", "\n")
        reach = sum(budget) * 2
        at = 0 if rng.random() < FILE_START_SHARE else rng.randrange(max(1, len(text) - reach // 4))
        low = text.rfind("\n", 0, max(0, at - 2 * budget[0])) + 1
        chunks = split(text[low : at + reach + 400 * self.count])
        first = first_blocks(file, text[at : at + 1000], others, rng)
        found: list[Passage] = []
        start = low
        for chunk in chunks:
            if start >= at and len(found) < self.count:
                length = len(chunk) if rng.random() < WHOLE_CHUNK_SHARE else rng.randint(len(chunk) // 3, len(chunk))
                found += self._passage(chunks, start - low + length, budget, first, rng.random() >= NOTHING_BELOW_SHARE)
            start += len(chunk)
        return found

    def _passage(
        self, chunks: list[str], cursor: int, budget: tuple[int, int], first: Sequence[str], shown: bool
    ) -> list[Passage]:
        """The passage that ends at the cursor; none if it is too short or too long."""
        far, near, suffix = around(chunks, cursor, *budget)
        ids = self.tokenizer.block(near)
        if not MIN_PASSAGE_TOKENS <= len(ids) <= MAX_PASSAGE_TOKENS:
            return []
        below = rest_and_below(suffix)[1] if shown else []
        return [Passage([self.tokenizer.block(b) for b in (*reversed(below), *first, *far) if b], ids)]
