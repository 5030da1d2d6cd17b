"""Comment lines, which show the model what is not code: a file's path, recent edits."""

from typing import NamedTuple


class CommentMarks(NamedTuple):
    """What a comment line starts and ends with; `closing` is empty where the line break ends it."""

    opening: str
    closing: str = ""

    def line(self, text: str) -> str:
        """Text as one comment line with its line break."""
        return f"{self.opening}{text}{self.closing}\n"


_HASH = CommentMarks("# ")
_HASHED = ("python", "shell", "shellscript", "sh", "bash", "yaml", "toml", "plaintext")
_SLASHES = CommentMarks("// ")
_MARKS = {
    **dict.fromkeys(_HASHED, _HASH),
    "lua": CommentMarks("-- "),
    "html": CommentMarks("<!-- ", " -->"),
    "css": CommentMarks("/* ", " */"),
}


def comment_marks(language: str) -> CommentMarks:
    """The marks of an LSP languageId or a language of the corpus; slashes when it is not listed."""
    return _MARKS.get(language, _SLASHES)


def comment_line(text: str, language: str) -> str:
    """Text as one comment line with its line break; `language` as in `comment_marks`."""
    return comment_marks(language).line(text)
