"""Choose blocks of other files of the same package; they come first among the far blocks."""

import random
from collections.abc import Sequence

from mercury_lab.training.data.sources import SourceFile
from mercury_lsp.context.workspace.snippets import SnippetKind, most_similar, snippets_of, words_of
from mercury_lsp.documents.languages import language_of

MAX_SNIPPET_FILES = 3
"""Other files that are searched."""

MAX_FILE_CHARS = 6_000
"""Characters of a long file that are searched."""


def snippet_blocks(around: str, others: Sequence[SourceFile], rng: random.Random) -> list[str]:
    """At most two chunks of other files that share most words with the text around, as the server chooses them."""
    files = rng.sample(others, min(MAX_SNIPPET_FILES, len(others)))
    parts = ((file.path, language_of(file.path), _part(file, rng)) for file in files)
    found = [snippet for part in parts for snippet in snippets_of(SnippetKind.CODE, *part)]
    return [snippet.text for snippet in most_similar(found, words_of(around), rng.choice((1, 2)))]


def _part(file: SourceFile, rng: random.Random) -> str:
    """The file's text, or about MAX_FILE_CHARS of it in whole lines."""
    text = file.text.replace("\r\n", "\n")
    if len(text) <= MAX_FILE_CHARS:
        return text
    start = text.rfind("\n", 0, rng.randrange(len(text) - MAX_FILE_CHARS)) + 1
    return text[start : text.rfind("\n", start, start + MAX_FILE_CHARS) + 1]
