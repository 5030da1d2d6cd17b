"""Reads a document's imports from its text: candidate paths of each imported file, and the imported names."""

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mercury_lsp.documents.languages import language

IMPORTS_REACH_CHARS = 12_000
"""Characters at the start of a document that are searched for imports."""

MAX_IMPORTS = 40
"""Most imported files considered for one document."""

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One imported file: the first of `candidates` that exists."""

    candidates: tuple[str, ...]
    """Paths with forward slashes; one without a leading `/` is only the end of a path."""
    names: frozenset[str] = frozenset()
    """The names imported from it; empty if none are listed."""


def imports(language_id: str, text: str, path: str) -> list[ImportedFile]:
    """The files that a document at `path` imports, in order, each once; none in languages without rules."""
    if (read := _READERS.get(language_id)) is None:
        return []
    found: dict[tuple[str, ...], ImportedFile] = {}
    for each in read(text[:IMPORTS_REACH_CHARS], path):
        known = found.get(each.candidates)
        found[each.candidates] = ImportedFile(each.candidates, each.names | known.names) if known else each
    return list(found.values())[:MAX_IMPORTS]


_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<origin>\.*[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#]+)"
    r"|import[ \t]+(?P<modules>[^\n#]+))",
    re.MULTILINE,
)


def _python(text: str, path: str) -> Iterator[ImportedFile]:
    for found in _PYTHON.finditer(text):
        if found["modules"]:
            for module in found["modules"].split(","):
                yield ImportedFile(_modules(module.split(" as ")[0].strip().split("."), ""))
            continue
        names = [name.split(" as ")[0].strip() for name in found["names"].strip("()").split(",")]
        names = [name for name in names if name.isidentifier()]
        origin = found["origin"].lstrip(".")
        dots = len(found["origin"]) - len(origin)
        folder = _up(path, dots) + "/" if dots else ""
        parts = origin.split(".") if origin else []
        for name in names:  # a name may be a module of a package
            yield ImportedFile(_modules([*parts, name], folder))
        if parts or dots:
            yield ImportedFile(_modules(parts, folder), frozenset(names))


def _modules(parts: list[str], folder: str) -> tuple[str, ...]:
    base = folder + "/".join(parts)
    package = f"{base}/__init__.py" if parts else f"{base}__init__.py"
    return (f"{base}.py", f"{base}.pyi", package) if parts else (package,)


_SCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", "/index.ts", "/index.tsx", "/index.js")
_SCRIPT = re.compile(
    r"(?:(?:import|export)\s+(?P<names>[^'\"`;()]*?)\s*from\s*|import\s*\(?\s*"
    r"|(?:const|let|var)\s+(?P<bound>[^=;]*?)=\s*require\(\s*|require\(\s*)['\"](?P<module>[^'\"\n]+)['\"]"
)


def _script(text: str, path: str) -> Iterator[ImportedFile]:
    for found in _SCRIPT.finditer(text):
        names = frozenset(_IDENTIFIER.findall(found["names"] or found["bound"] or "")) - {"as", "type", "default"}
        module = found["module"]
        if module.startswith("."):
            base = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
        elif module.startswith(("@/", "~/")):  # the usual aliases of the source folder
            base = module[2:]
        else:
            base = module
        stem = re.sub(r"\.[cm]?jsx?$", "", base)  # TypeScript imports name the compiled file
        yield ImportedFile((base, *(stem + ending for ending in _SCRIPT_ENDINGS)), names)


_GO_BLOCK = re.compile(r"^import\s*(\([^)]*\)|[^\n]+)", re.MULTILINE)
_GO_PATH = re.compile(r'"([^"\n]+)"')


def _go(text: str, path: str) -> Iterator[ImportedFile]:
    for block in _GO_BLOCK.finditer(text):
        for package in _GO_PATH.findall(block[1]):
            parts = package.split("/")
            if len(parts) > 1 and "." in parts[0]:  # a module's path may be longer than its folder's
                yield ImportedFile(tuple("/".join(parts[start:]) + "/*.go" for start in range(1, len(parts))))


_RUST_USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
_RUST_MOD = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", re.MULTILINE)


def _rust(text: str, path: str) -> Iterator[ImportedFile]:
    folder = posixpath.dirname(path)
    stem = posixpath.basename(path).removesuffix(".rs")
    own = folder if stem in ("mod", "lib", "main") else f"{folder}/{stem}"
    for name in _RUST_MOD.findall(text):
        yield ImportedFile((f"{own}/{name}.rs", f"{own}/{name}/mod.rs"))
    for used in _RUST_USE.findall(text):
        head, _, group = used.partition("{")
        parts = [part for part in re.split(r"::", head.strip()) if part and part != "*"]
        names = frozenset(_IDENTIFIER.findall(group or (parts[-1] if parts else ""))) - {"self", "as"}
        if not parts:
            continue
        first, rest = parts[0], parts[1:]
        if first == "crate":
            above = f"{path[: path.rfind('/src/')]}/src/" if "/src/" in path else ""
        elif first in ("super", "self"):
            climbed = rest.count("super") + (first == "super")
            above, rest = _up(own, climbed) + "/", [part for part in rest if part != "super"]
        else:  # a crate of the workspace
            above = f"{first.replace('_', '-')}/src/"
        yield ImportedFile(_rust_candidates(above, rest), names)


def _rust_candidates(above: str, parts: list[str]) -> tuple[str, ...]:
    """Candidates for a path whose last parts may be items of the file."""
    candidates = []
    for length in range(len(parts), 0, -1):
        base = above + "/".join(parts[:length])
        candidates += [f"{base}.rs", f"{base}/mod.rs"]
    return (*candidates, f"{above}lib.rs", f"{above}mod.rs")


_JAVA = re.compile(r"^import\s+(static\s+)?([\w.]+?)(\.\*)?\s*;", re.MULTILINE)


def _java(text: str, path: str) -> Iterator[ImportedFile]:
    for is_static, name, star in _JAVA.findall(text):
        parts = name.split(".")
        if is_static and not star:
            parts.pop()
        if len(parts) > 1 and (is_static or not star):
            yield ImportedFile(("/".join(parts) + ".java",), frozenset(parts[-1:]))


_INCLUDE = re.compile(r"^\s*#\s*include\s*([<\"])([^>\"\n]+)[>\"]", re.MULTILINE)


def _c(text: str, path: str) -> Iterator[ImportedFile]:
    for opening, name in _INCLUDE.findall(text):
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        tail = name.lstrip("./")
        yield ImportedFile((beside, tail) if opening == '"' else (tail,))


_REQUIRE = re.compile(r"require\s*\(?\s*['\"]([\w./-]+)['\"]")


def _lua(text: str, path: str) -> Iterator[ImportedFile]:
    for module in _REQUIRE.findall(text):
        base = module.replace(".", "/")
        yield ImportedFile((f"{base}.lua", f"{base}/init.lua"))


def _up(path: str, levels: int) -> str:
    """The folder that many levels above a file; level 1 is its own folder."""
    for _ in range(levels):
        path = posixpath.dirname(path)
    return path


_READERS: dict[str, Callable[[str, str], Iterator[ImportedFile]]] = {
    "python": _python,
    "javascript": _script,
    "javascriptreact": _script,
    "typescript": _script,
    "typescriptreact": _script,
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
