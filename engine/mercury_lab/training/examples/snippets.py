"""Choose blocks of other files of the same package; they come first among the far blocks."""

import math
import random
import re
from collections.abc import Sequence

from mercury_engine.prompt.chunking import split
from mercury_engine.prompt.layout import path_block

from mercury_lab.training.data.sources import SourceFile

MAX_SNIPPET_FILES = 3
"""Other files that are searched."""

MAX_FILE_CHARS = 6_000
"""Characters of a long file that are searched."""

_WORD = re.compile(r"[^\W\d]\w{3,}")


def snippet_blocks(around: str, others: Sequence[SourceFile], rng: random.Random) -> list[str]:
    """One or two chunks of other files that share most words with the text around, each after a path comment.

    A word's weight falls with the number of chunks that contain it.
    """
    files = rng.sample(others, min(MAX_SNIPPET_FILES, len(others)))
    chunks = [(file, chunk) for file in files for chunk in split(_part(file, rng))]
    words = [set(_WORD.findall(chunk)) for _, chunk in chunks]
    wanted = set(_WORD.findall(around))
    holders = {word: sum(word in of_chunk for of_chunk in words) for word in wanted}
    # fsum: the same in any order
    value = [math.fsum(1 / holders[word] for word in of_chunk & wanted) for of_chunk in words]
    best = sorted(range(len(chunks)), key=lambda number: -value[number])[: rng.choice((1, 2))]
    return [snippet_block(file.path, file.language, chunk) for file, chunk in (chunks[number] for number in best)]


def snippet_block(path: str, language: str, chunk: str) -> str:
    """A chunk of another file after a comment with its path, as the reader sees it."""
    return path_block(path, language) + chunk


def _part(file: SourceFile, rng: random.Random) -> str:
    """The file's text, or about MAX_FILE_CHARS of it in whole lines."""
    text = file.text.replace("\r\n", "\n")
    if len(text) <= MAX_FILE_CHARS:
        return text
    start = text.rfind("\n", 0, rng.randrange(len(text) - MAX_FILE_CHARS)) + 1
    return text[start : text.rfind("\n", start, start + MAX_FILE_CHARS) + 1]
