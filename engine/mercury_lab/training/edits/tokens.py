"""Find names, strings, numbers and comments of a source text in any language with regular expressions."""

import keyword
import re
from dataclasses import dataclass
from functools import cache

from mercury_lab.training.edits.plan import TextSpan

_NAME = r"(?P<name>[^\W\d]\w*)"
_NUMBER = r"(?P<number>(?<![\w.])\d[\w.]*(?:(?<=[eE])[-+]\d+)?)"
_QUOTED = r'"(?:\\.|[^"\\\n])*"'
_SINGLE = r"'(?:\\.|[^'\\\n])*'"
_CHARACTER = r"'(?:\\[^'\n]*|[^'\\\n])'"
_TICKS = r"`(?:\\[\s\S]|[^`\\])*`"
_PYTHON = r"(?:[A-Za-z]{1,2})?(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|" + f"{_QUOTED}|{_SINGLE})"

_HASH = r"#[^\n]*"
_SLASHES = r"//[^\n]*|/\*[\s\S]*?\*/"

_COMMENTS_AND_STRINGS = {
    "python": (_HASH, _PYTHON),
    "javascript": (_SLASHES, f"{_QUOTED}|{_SINGLE}|{_TICKS}"),
    "go": (_SLASHES, f"{_QUOTED}|{_CHARACTER}|`[^`]*`"),
    "lua": (r"--\[\[[\s\S]*?\]\]|--[^\n]*", f"{_QUOTED}|{_SINGLE}|" + r"\[\[[\s\S]*?\]\]"),
    "html": (r"<!--[\s\S]*?-->", _QUOTED),
    "css": (r"/\*[\s\S]*?\*/", f"{_QUOTED}|{_SINGLE}"),
    **dict.fromkeys(("shell", "yaml", "toml"), (r"(?<![^\s;])#[^\n]*", f"{_QUOTED}|{_SINGLE}")),
}
_COMMENTS_AND_STRINGS["typescript"] = _COMMENTS_AND_STRINGS["javascript"]
_DEFAULT_RULES = (_SLASHES, f"{_QUOTED}|{_CHARACTER}")

_HOLES = {"python": re.compile(r"\{([^{}:!]*)"), "javascript": re.compile(r"\$\{([^{}]*)\}")}
_HOLES["typescript"] = _HOLES["javascript"]
_WORD = re.compile(r"[^\W\d]\w*")

_KEYWORDS = frozenset(
    """abstract alignas any as assert async auto await bool boolean break byte case catch char class const constexpr
    continue crate crate debugger default defer delete do done double dyn elif else elseif elsif end endif ensure enum
    esac eval except explicit export extends extern false final finally float fn for foreach friend from func function
    get global go goto if impl implements import in inline instanceof int interface is lambda let local long loop macro
    map match mod module move mut mutable namespace native new nil None nonlocal not null nullptr number object of or
    operator override package pass private protected pub public raise readonly ref register repeat require return self
    Self set short signed sizeof static str strictfp string struct super switch synchronized template then this throw
    throws transient true True False try type typedef typename typeof undefined union unknown unless unsafe unsigned
    until use using var virtual void volatile wchar_t when where while with xor yield and del def interface range
    error len append make print println printf isize usize i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 String Vec Option
    Some Ok Err Result Box std cls include define ifdef ifndef undef size_t uint8_t uint16_t uint32_t uint64_t int8_t
    int16_t int32_t int64_t int64 int32 uint64 uint32 uint8 float64 float32 rune uint console log require exports
    prototype constructor Object Array Promise Error Math JSON window document echo fi exit test set read unset
    declare pairs ipairs tostring tonumber setmetatable table length""".split()  # noqa: SIM905
) | frozenset(keyword.kwlist)


@dataclass(frozen=True, slots=True)
class SourceTokens:
    """Offsets of a text's tokens; names inside formatted strings' expressions count as names."""

    names: dict[str, list[int]]
    """Offsets by name, without keywords and the best-known names of the languages."""
    strings: list[TextSpan]
    numbers: list[TextSpan]
    comments: list[TextSpan]


@cache
def _scanner(language: str) -> re.Pattern[str]:
    comment, string = _COMMENTS_AND_STRINGS.get(language, _DEFAULT_RULES)
    name = r"(?P<name>(?:--)?[^\W\d][\w-]*)" if language in ("css", "html") else _NAME
    return re.compile(f"(?P<comment>{comment})|(?P<string>{string})|{name}|{_NUMBER}")


def scan(text: str, language: str) -> SourceTokens:
    """The tokens of a text; where only a grammar could decide, a guess."""
    found = SourceTokens({}, [], [], [])
    holes = _HOLES.get(language)
    for match in _scanner(language).finditer(text):
        kind = match.lastgroup
        if kind == "name":
            found.names.setdefault(match[0], []).append(match.start())
        elif kind == "string":
            found.strings.append(match.span())
            if holes and ("f" in match[0][:2].lower() if language == "python" else match[0][0] == "`"):
                _add_holes(found, holes, match[0], match.start())
        elif kind == "number":
            found.numbers.append(match.span())
        else:
            found.comments.append(match.span())
    for word in _KEYWORDS & found.names.keys():
        del found.names[word]
    return found


def _add_holes(found: SourceTokens, holes: re.Pattern[str], string: str, start: int) -> None:
    for hole in holes.finditer(string):
        for word in _WORD.finditer(hole[1]):
            found.names.setdefault(word[0], []).append(start + hole.start(1) + word.start())
