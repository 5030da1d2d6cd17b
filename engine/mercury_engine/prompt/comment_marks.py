"""Comment lines, in which the model is told what is no code: a file's path, recent edits."""

_HASH = ("# ", "")
_HASHED = ("python", "shell", "shellscript", "sh", "bash", "yaml", "toml", "plaintext")
_MARKS = {
    **dict.fromkeys(_HASHED, _HASH),
    "lua": ("-- ", ""),
    "html": ("<!-- ", " -->"),
    "css": ("/* ", " */"),
}


def comment_line(text: str, language: str) -> str:
    """Text as one comment line with its line break; `language` is an LSP languageId or a language of the corpus."""
    opening, closing = _MARKS.get(language, ("// ", ""))
    return f"{opening}{text}{closing}\n"
