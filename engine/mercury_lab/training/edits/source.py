"""A source file, or a part of a long one, whose tokens and facts are computed on demand."""

import logging
import random
import re
from dataclasses import dataclass
from functools import cached_property

from mercury_lab.training.data.corpus import SourceFile
from mercury_lab.training.edits import python_facts, tree_facts
from mercury_lab.training.edits.facts import Facts
from mercury_lab.training.edits.tokens import SourceTokens, scan

MAX_SOURCE_CHARS = 8_000
"""Characters; longer files are cut, because parsing time grows with the text."""

_logger = logging.getLogger(__name__)
_reported_languages: set[str] = set()
_ITEM = re.compile(r"\n\n(?=[^\s)\]}#/*])")
_DEFINITION = re.compile(r"\n\n(?=(?:@|def |class |async def )\S)")
_INNER_DEFINITION = re.compile(r"\n\n(?=[ \t]*(?:@|def |class |async def )\S)")


@dataclass(frozen=True)
class Source:
    """One text; its tokens and facts are cached."""

    path: str
    language: str
    text: str

    @cached_property
    def tokens(self) -> SourceTokens:
        return scan(self.text, self.language)

    @cached_property
    def facts(self) -> Facts:
        """The facts, by Python's parser for Python and tree-sitter for others; empty if neither parses the text."""
        if self.language == "python":
            return python_facts.read(self.text)
        found = tree_facts.read(self.text, self.language)
        if found is None and self.language in tree_facts.TREE_LANGUAGES and self.language not in _reported_languages:
            _reported_languages.add(self.language)
            _logger.warning("no tree-sitter grammar for %s: only edits of single words are sampled", self.language)
        return found or Facts()

    @property
    def is_parsed(self) -> bool:
        """Whether the text was parsed and has facts."""
        return bool(self.facts.functions or self.facts.types or self.facts.imports or self.facts.statements)


def cut_source(file: SourceFile, rng: random.Random) -> Source:
    """The file, or up to MAX_SOURCE_CHARS of it, from the start of one top-level item to the end of another."""
    text = file.text.replace("\r\n", "\n")
    if len(text) > MAX_SOURCE_CHARS:
        opens, closes = (_DEFINITION, _INNER_DEFINITION) if file.language == "python" else (_ITEM, _ITEM)
        starts = [match.end() for match in opens.finditer(text) if len(text) - match.end() > MAX_SOURCE_CHARS // 2]
        start = rng.choice([0, *starts])
        ends = [
            match.end() - 1 for match in closes.finditer(text, start + MAX_SOURCE_CHARS // 2, start + MAX_SOURCE_CHARS)
        ]
        text = text[start : ends[-1] if ends else text.rfind("\n", start, start + MAX_SOURCE_CHARS) + 1]
    return Source(file.path, file.language, text)
