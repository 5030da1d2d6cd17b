"""The differences between languages, read from `languages.toml`: grammar, comment marks, and node types."""

import tomllib
from dataclasses import dataclass, replace
from importlib import import_module, resources
from pathlib import PurePath
from threading import local
from typing import Any

import tree_sitter
from mercury_engine.prompt.layout import CommentMarks, comment_marks

NodeTypes = frozenset[str]

_thread = local()

_NONE, _COMMENT, _STRING = NodeTypes(), NodeTypes(("comment",)), NodeTypes(("string",))
_PLAIN_MARKS = comment_marks("plaintext")


@dataclass(frozen=True, slots=True)
class Language:
    """One language; the sets contain types of syntax nodes."""

    extensions: tuple[str, ...] = ()
    """File extensions, without the dot."""
    grammar: str = ""
    """The module with the grammar; empty for plain text."""
    loader: str = "language"
    """The module's function that returns the grammar."""
    marks: CommentMarks = _PLAIN_MARKS
    """Marks of a comment line."""
    quotes: str = "\"'"
    """Characters that delimit a string within a line."""
    import_words: tuple[str, ...] = ()
    """Prefixes of import lines."""
    by_indent: bool = False
    """Whether indentation delimits blocks."""
    comments: NodeTypes = _COMMENT
    strings: NodeTypes = _STRING
    imports: NodeTypes = _NONE
    definitions: NodeTypes = _NONE
    arguments: NodeTypes = _NONE
    lists: NodeTypes = _NONE
    """Literals whose items may be rows of a table."""
    bodies: NodeTypes = _NONE
    """Nodes with statements; what is around them says nothing about the cursor."""
    embedded: NodeTypes = _NONE
    """Code inside strings."""
    headed: NodeTypes = _NONE
    """Declarations that are listed up to their body."""
    holding: NodeTypes = _NONE
    """Declarations that are listed up to their body; the body's declarations follow, indented."""
    whole: NodeTypes = _NONE
    """Declarations that are listed on one line, if short."""
    passed: NodeTypes = _NONE
    """Nodes whose declarations are listed in their place."""


PLAIN_TEXT = Language()


def _read() -> dict[str, Language]:
    """The languages of `languages.toml`, by languageId."""
    tables = tomllib.loads(resources.files(__package__).joinpath("languages.toml").read_text("utf-8"))
    found: dict[str, Language] = {}
    for name, table in tables.items():
        like = found[table.pop("like")] if "like" in table else PLAIN_TEXT
        fields: dict[str, Any] = {"marks": comment_marks(name)}
        for field, value in table.items():
            old = getattr(like, field)
            if isinstance(old, frozenset):
                fields[field] = NodeTypes(value.split()) | (old if like is not PLAIN_TEXT else _NONE)
            elif isinstance(old, tuple):
                fields[field] = tuple(value.split() if field == "extensions" else value)
            else:
                fields[field] = value
        found[name] = replace(like, **fields)
    return found


LANGUAGES = _read()

_ID_OF = {extension: name for name, each in LANGUAGES.items() for extension in each.extensions}


def language(language_id: str) -> Language:
    """The language of an LSP languageId; plain text if unknown."""
    return LANGUAGES.get(language_id, PLAIN_TEXT)


def language_of(path: str) -> str:
    """The languageId for a file's extension; `plaintext` if unknown."""
    return _ID_OF.get(PurePath(path).suffix.lower().removeprefix("."), "plaintext")


def parser(language_id: str) -> tree_sitter.Parser:
    """This thread's parser of a language with a grammar, loaded on first use; not to be shared with other threads."""
    parsers: dict[str, tree_sitter.Parser] = _thread.__dict__.setdefault("parsers", {})
    if language_id not in parsers:
        parsers[language_id] = new_parser(language_id)
    return parsers[language_id]


def new_parser(language_id: str) -> tree_sitter.Parser:
    chosen = LANGUAGES[language_id]
    grammar = getattr(import_module(chosen.grammar), chosen.loader)()
    return tree_sitter.Parser(tree_sitter.Language(grammar))
