"""The differences between languages: grammar, comment marks, and the grammar's node types."""

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import PurePath
from threading import local

import tree_sitter
from mercury_engine.prompt.comment_marks import CommentMarks, comment_marks

NodeTypes = frozenset[str]

_thread = local()


def _node_types(names: str) -> NodeTypes:
    return frozenset(names.split())


_COMMENT = _node_types("comment")
_STRING = _node_types("string")
_PLAIN_MARKS = comment_marks("plaintext")


@dataclass(frozen=True, slots=True)
class Language:
    """One language; the sets contain types of syntax nodes."""

    grammar: str = ""
    """The module with the grammar; empty for plain text."""
    loader: str = "language"
    """The module's function that returns the grammar."""
    marks: CommentMarks = _PLAIN_MARKS
    """Marks of a comment line."""
    quotes: str = "\"'"
    """Characters that delimit a string on one line."""
    import_words: tuple[str, ...] = ()
    """Prefixes of import lines."""
    by_indent: bool = False
    """Whether indentation delimits blocks."""
    comments: NodeTypes = _COMMENT
    strings: NodeTypes = _STRING
    imports: NodeTypes = frozenset()
    definitions: NodeTypes = frozenset()
    arguments: NodeTypes = frozenset()
    lists: NodeTypes = frozenset()
    """Literals whose items may be rows of a table."""
    bodies: NodeTypes = frozenset()
    """They contain statements; the nodes around them say nothing about the cursor."""
    embedded: NodeTypes = frozenset()
    """Code inside strings."""


PLAIN_TEXT = Language()

_PYTHON = Language(
    grammar="tree_sitter_python",
    import_words=("import ", "from "),
    by_indent=True,
    imports=_node_types("import_statement import_from_statement future_import_statement"),
    definitions=_node_types("function_definition class_definition"),
    arguments=_node_types("argument_list parameters"),
    lists=_node_types("list"),
    bodies=_node_types("block module"),
    embedded=_node_types("interpolation"),
)

_JAVASCRIPT = Language(
    grammar="tree_sitter_javascript",
    marks=comment_marks("javascript"),
    quotes="\"'`",
    import_words=("import ", "import{"),
    strings=_node_types("string template_string"),
    imports=_node_types("import_statement"),
    definitions=_node_types(
        "function_declaration function_expression generator_function generator_function_declaration"
        " arrow_function class_declaration class method_definition"
    ),
    arguments=_node_types("arguments formal_parameters"),
    lists=_node_types("array"),
    bodies=_node_types("statement_block class_body switch_body program"),
    embedded=_node_types("template_substitution"),
)


def _typescript(loader: str) -> Language:
    return replace(
        _JAVASCRIPT,
        grammar="tree_sitter_typescript",
        loader=loader,
        imports=_JAVASCRIPT.imports | _node_types("import_alias"),
        definitions=_JAVASCRIPT.definitions
        | _node_types("abstract_class_declaration interface_declaration enum_declaration internal_module"),
        arguments=_JAVASCRIPT.arguments | _node_types("type_arguments"),
        bodies=_JAVASCRIPT.bodies | _node_types("interface_body enum_body"),
    )


_GO = Language(
    grammar="tree_sitter_go",
    marks=comment_marks("go"),
    quotes='"`',
    import_words=("import ", "package "),
    strings=_node_types("interpreted_string_literal raw_string_literal rune_literal"),
    imports=_node_types("import_declaration package_clause"),
    definitions=_node_types("function_declaration method_declaration type_declaration func_literal"),
    arguments=_node_types("argument_list parameter_list"),
    lists=_node_types("literal_value"),
    bodies=_node_types("block field_declaration_list source_file"),
)

_RUST = Language(
    grammar="tree_sitter_rust",
    marks=comment_marks("rust"),
    quotes='"',
    import_words=("use ", "pub use ", "extern crate "),
    comments=_node_types("line_comment block_comment"),
    strings=_node_types("string_literal raw_string_literal char_literal"),
    imports=_node_types("use_declaration extern_crate_declaration"),
    definitions=_node_types(
        "function_item impl_item trait_item mod_item struct_item enum_item closure_expression foreign_mod_item"
    ),
    arguments=_node_types("arguments parameters type_arguments"),
    lists=_node_types("array_expression"),
    bodies=_node_types("block declaration_list match_block field_declaration_list enum_variant_list source_file"),
)

_JAVA = Language(
    grammar="tree_sitter_java",
    marks=comment_marks("java"),
    quotes='"',
    import_words=("import ", "package "),
    comments=_node_types("line_comment block_comment"),
    strings=_node_types("string_literal character_literal"),
    imports=_node_types("import_declaration package_declaration"),
    definitions=_node_types(
        "class_declaration interface_declaration enum_declaration record_declaration method_declaration"
        " constructor_declaration"
    ),
    arguments=_node_types("argument_list formal_parameters annotation_argument_list type_arguments"),
    lists=_node_types("array_initializer"),
    bodies=_node_types("block class_body interface_body enum_body constructor_body switch_block program"),
    embedded=_node_types("string_interpolation"),
)

_C_DEFINITIONS = "function_definition struct_specifier enum_specifier union_specifier"
_C_BODIES = "compound_statement declaration_list field_declaration_list enumerator_list translation_unit"

_C = Language(
    grammar="tree_sitter_c",
    marks=comment_marks("c"),
    quotes='"',
    import_words=("#include", "# include"),
    strings=_node_types("string_literal char_literal"),
    imports=_node_types("preproc_include"),
    definitions=_node_types(_C_DEFINITIONS),
    arguments=_node_types("argument_list parameter_list"),
    lists=_node_types("initializer_list"),
    bodies=_node_types(_C_BODIES),
)

_CPP = Language(
    grammar="tree_sitter_cpp",
    marks=comment_marks("cpp"),
    quotes='"',
    import_words=("#include", "# include", "using ", "import "),
    strings=_node_types("string_literal char_literal raw_string_literal"),
    imports=_node_types("preproc_include using_declaration"),
    definitions=_node_types(f"{_C_DEFINITIONS} class_specifier namespace_definition lambda_expression"),
    arguments=_node_types("argument_list parameter_list template_argument_list subscript_argument_list"),
    lists=_node_types("initializer_list"),
    bodies=_node_types(_C_BODIES),
)

_LUA = Language(
    grammar="tree_sitter_lua",
    marks=comment_marks("lua"),
    definitions=_node_types("function_declaration function_definition"),
    arguments=_node_types("arguments parameters"),
    lists=_node_types("table_constructor"),
    bodies=_node_types("block chunk"),
)

_SHELL = Language(
    grammar="tree_sitter_bash",
    import_words=("source ", ". "),
    strings=_node_types("string raw_string ansi_c_string heredoc_body"),
    definitions=_node_types("function_definition"),
    bodies=_node_types("compound_statement do_group program"),
    embedded=_node_types("command_substitution expansion simple_expansion arithmetic_expansion"),
)

_JSON = Language(grammar="tree_sitter_json", marks=comment_marks("json"), quotes='"')
_YAML = Language(
    grammar="tree_sitter_yaml",
    by_indent=True,
    strings=_node_types("double_quote_scalar single_quote_scalar block_scalar"),
)
_TOML = Language(grammar="tree_sitter_toml")
_HTML = Language(
    grammar="tree_sitter_html",
    marks=comment_marks("html"),
    quotes='"',
    strings=_node_types("quoted_attribute_value"),
)
_CSS = Language(
    grammar="tree_sitter_css",
    marks=comment_marks("css"),
    import_words=("@import",),
    comments=_node_types("comment js_comment"),
    strings=_node_types("string_value"),
    imports=_node_types("import_statement charset_statement"),
    definitions=_node_types("rule_set media_statement keyframes_statement"),
    arguments=_node_types("arguments"),
    bodies=_node_types("block stylesheet"),
)

_LANGUAGES = {
    "python": (_PYTHON, "py pyi pyw"),
    "javascript": (_JAVASCRIPT, "js mjs cjs"),
    "javascriptreact": (_JAVASCRIPT, "jsx"),
    "typescript": (_typescript("language_typescript"), "ts mts cts"),
    "typescriptreact": (_typescript("language_tsx"), "tsx"),
    "go": (_GO, "go"),
    "rust": (_RUST, "rs"),
    "java": (_JAVA, "java"),
    "c": (_C, "c h"),
    "cpp": (_CPP, "cc cpp cxx hh hpp hxx"),
    "lua": (_LUA, "lua"),
    "shellscript": (_SHELL, "sh bash zsh"),
    "sh": (_SHELL, ""),
    "bash": (_SHELL, ""),
    "json": (_JSON, "json"),
    "jsonc": (_JSON, "jsonc"),
    "yaml": (_YAML, "yaml yml"),
    "toml": (_TOML, "toml"),
    "html": (_HTML, "html htm"),
    "css": (_CSS, "css"),
}
"""By languageId, with the extensions of the language's files."""

LANGUAGES = {name: found for name, (found, _) in _LANGUAGES.items()}

_ID_OF = {extension: name for name, (_, extensions) in _LANGUAGES.items() for extension in extensions.split()}


def language(language_id: str) -> Language:
    """The language of an LSP languageId; plain text if unknown."""
    return LANGUAGES.get(language_id, PLAIN_TEXT)


def language_of(path: str) -> str:
    """The languageId for a file's extension; `plaintext` if unknown."""
    return _ID_OF.get(PurePath(path).suffix.lower().removeprefix("."), "plaintext")


def extensions(language_id: str) -> list[str]:
    """The extensions of a language's files, without the dot."""
    return _LANGUAGES[language_id][1].split()


def parser(language_id: str) -> tree_sitter.Parser:
    """This thread's parser of a language with a grammar, loaded on first use; it must not be shared with others."""
    parsers: dict[str, tree_sitter.Parser] = _thread.__dict__.setdefault("parsers", {})
    if language_id not in parsers:
        parsers[language_id] = new_parser(language_id)
    return parsers[language_id]


def new_parser(language_id: str) -> tree_sitter.Parser:
    chosen = LANGUAGES[language_id]
    grammar = getattr(import_module(chosen.grammar), chosen.loader)()
    return tree_sitter.Parser(tree_sitter.Language(grammar))
