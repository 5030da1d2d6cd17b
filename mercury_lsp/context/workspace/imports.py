"""Reads a document's imports from its text, as candidate paths of the imported files."""

import posixpath
import re
from collections.abc import Callable, Iterator

from mercury_lsp.documents.languages import language

IMPORTS_REACH_CHARS = 12_000
"""Characters at the start of a document that are searched for imports."""

MAX_IMPORTS = 40
"""Most imported files considered for one document."""

Candidates = tuple[str, ...]
"""Possible paths of one imported file, best first, with forward slashes; one without a leading `/` is a path's end."""


def imports(language_id: str, text: str, path: str) -> list[Candidates]:
    """The files that a document at `path` imports, in order, each once; none in languages without rules."""
    if (read := _READERS.get(language_id)) is None:
        return []
    return list(dict.fromkeys(read(text[:IMPORTS_REACH_CHARS], path)))[:MAX_IMPORTS]


_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<dots>\.*)(?P<origin>[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#]+)"
    r"|import[ \t]+(?P<modules>[^\n#]+))",
    re.MULTILINE,
)


def _python(text: str, path: str) -> Iterator[Candidates]:
    for found in _PYTHON.finditer(text):
        listed = found["modules"] or found["names"].strip("()")
        names = [name.split(" as ")[0].strip() for name in listed.split(",")]
        if found["modules"]:
            yield from (_modules(name.split("."), "") for name in names)
            continue
        folder = _up(path, len(found["dots"])) + "/" if found["dots"] else ""
        parts = found["origin"].split(".") if found["origin"] else []
        for name in filter(str.isidentifier, names):  # a name may be a module of a package
            yield _modules([*parts, name], folder)
        if parts or folder:
            yield _modules(parts, folder)


def _modules(parts: list[str], folder: str) -> Candidates:
    base = folder + "/".join(parts)
    return (f"{base}.py", f"{base}.pyi", f"{base}/__init__.py") if parts else (f"{base}__init__.py",)


_SCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", "/index.ts", "/index.tsx", "/index.js")
_SCRIPT = re.compile(
    r"(?:(?:import|export)\s+[^'\"`;()]*?\s*from\s*|import\s*\(?\s*|require\(\s*)['\"]([^'\"\n]+)['\"]"
)


def _script(text: str, path: str) -> Iterator[Candidates]:
    for module in _SCRIPT.findall(text):
        if module.startswith("."):
            base = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
        else:
            base = re.sub(r"^[@~]/", "", module)  # the usual aliases of the source folder
        stem = re.sub(r"\.[cm]?jsx?$", "", base)  # TypeScript imports name the compiled file
        yield (base, *(stem + ending for ending in _SCRIPT_ENDINGS))


_GO_BLOCK = re.compile(r"^import\s*(\([^)]*\)|[^\n]+)", re.MULTILINE)
_GO_PATH = re.compile(r'"([^"\n]+)"')


def _go(text: str, path: str) -> Iterator[Candidates]:
    for block in _GO_BLOCK.findall(text):
        for package in _GO_PATH.findall(block):
            parts = package.split("/")
            if len(parts) > 1 and "." in parts[0]:  # a module's path may be longer than its folder's
                yield tuple("/".join(parts[start:]) + "/*.go" for start in range(1, len(parts)))


_RUST_USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;{]+)[^;]*;", re.MULTILINE)
_RUST_MOD = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", re.MULTILINE)


def _rust(text: str, path: str) -> Iterator[Candidates]:
    folder, stem = posixpath.split(path.removesuffix(".rs"))
    own = folder if stem in ("mod", "lib", "main") else f"{folder}/{stem}"
    for name in _RUST_MOD.findall(text):
        yield f"{own}/{name}.rs", f"{own}/{name}/mod.rs"
    for used in _RUST_USE.findall(text):
        first, *rest = [part for part in used.strip().split("::") if part not in ("", "*")] or [""]
        if not first:
            continue
        if first == "crate":
            above = f"{path[: path.rfind('/src/')]}/src/" if "/src/" in path else ""
        elif first in ("super", "self"):
            climbed = [first, *rest].count("super")
            above, rest = _up(own, climbed) + "/", [part for part in rest if part != "super"]
        else:  # a crate of the workspace
            above = f"{first.replace('_', '-')}/src/"
        # The last parts may be items of the file.
        bases = [above + "/".join(rest[:length]) for length in range(len(rest), 0, -1)]
        files = (f"{base}{ending}" for base in bases for ending in (".rs", "/mod.rs"))
        yield (*files, f"{above}lib.rs", f"{above}mod.rs")


_JAVA = re.compile(r"^import\s+(static\s+)?([\w.]+?)(\.\*)?\s*;", re.MULTILINE)


def _java(text: str, path: str) -> Iterator[Candidates]:
    for is_static, name, star in _JAVA.findall(text):
        parts = name.split(".")
        if is_static and not star:
            parts.pop()
        if len(parts) > 1 and (is_static or not star):
            yield ("/".join(parts) + ".java",)


_INCLUDE = re.compile(r"^\s*#\s*include\s*([<\"])([^>\"\n]+)[>\"]", re.MULTILINE)


def _c(text: str, path: str) -> Iterator[Candidates]:
    for opening, name in _INCLUDE.findall(text):
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        tail = name.lstrip("./")
        yield (beside, tail) if opening == '"' else (tail,)


_REQUIRE = re.compile(r"require\s*\(?\s*['\"]([\w./-]+)['\"]")


def _lua(text: str, path: str) -> Iterator[Candidates]:
    for module in _REQUIRE.findall(text):
        base = module.replace(".", "/")
        yield f"{base}.lua", f"{base}/init.lua"


def _up(path: str, levels: int) -> str:
    """The folder that many levels above a file; level 1 is its own folder."""
    for _ in range(levels):
        path = posixpath.dirname(path)
    return path


_SCRIPTS = ("javascript", "javascriptreact", "typescript", "typescriptreact")
_READERS: dict[str, Callable[[str, str], Iterator[Candidates]]] = {
    "python": _python,
    **dict.fromkeys(_SCRIPTS, _script),
    "go": _go,
    "rust": _rust,
    "java": _java,
    "c": _c,
    "cpp": _c,
    "lua": _lua,
}

READ_LANGUAGES = frozenset(_READERS)
"""Languages whose imports are understood; only their files are opened."""

SOURCE_EXTENSIONS = frozenset(ending for name in READ_LANGUAGES for ending in language(name).extensions)
