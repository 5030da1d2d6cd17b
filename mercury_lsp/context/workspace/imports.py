"""Reads a document's imports from its text, and finds the imported files among those of the workspace."""

import posixpath
import re
from collections.abc import Callable, Iterator

from mercury_lsp.documents.languages import language

IMPORTS_REACH_CHARS = 12_000
"""Characters at the start of a document that are searched for imports."""

MAX_IMPORTS = 40
"""Most imported files considered for one document."""

MAX_INDEXED_FILES = 200_000
"""Most files indexed, at about 300 bytes each."""

SOURCE_FOLDERS = ("", "src/", "lib/", "include/")
"""Subfolders of the importing file's ancestors where a one-part path is searched."""

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


class FileIndex:
    """The paths of files, with forward slashes; for one thread."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        """The names of the files in each folder."""
        self._folders: dict[str, list[str]] = {}
        """Folders by the last part of their paths."""
        self._count = 0

    def __contains__(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return name in self._names.get(folder, ())

    def add(self, path: str) -> None:
        """Add a file, unless it is known or the index is full."""
        if path in self or self._count >= MAX_INDEXED_FILES:
            return
        folder, _, name = path.rpartition("/")
        if folder not in self._names:
            self._names[folder] = set()
            self._folders.setdefault(posixpath.basename(folder), []).append(folder)
        self._names[folder].add(name)
        self._count += 1

    def discard(self, path: str) -> None:
        if path in self:
            folder, _, name = path.rpartition("/")
            self._names[folder].remove(name)
            self._count -= 1

    def discard_below(self, folder: str) -> None:
        for each, names in self._names.items():
            if f"{each}/".startswith(f"{folder}/"):
                self._count -= len(names)
                names.clear()

    def resolve(self, candidates: Candidates, importer: str, most: int) -> list[str]:
        """The files that an import in `importer` refers to: one, or at most `most` files of a Go package."""
        for candidate in candidates:
            if found := [path for path in self._find(candidate, importer) if path != importer]:
                return found[:most]
        return []

    def _find(self, candidate: str, importer: str) -> list[str]:
        """The files at a candidate path; of several folders, the one that shares most folders with the importer."""
        end, slash, name = candidate.rpartition("/")
        if not slash:
            return [path for path in _beside(candidate, importer) if path in self][:1]
        if candidate.startswith("/"):
            return [candidate] if candidate in self else []
        folders = [each for each in self._folders.get(posixpath.basename(end), ()) if each.endswith("/" + end)]
        found = {each: paths for each in folders if (paths := self._matching(each, name))}
        return found[max(found, key=lambda each: _shared(each, importer))] if found else []

    def _matching(self, folder: str, name: str) -> list[str]:
        """The paths in a folder with this name; `*.go` stands for all files of a Go package except tests."""
        names = self._names[folder]
        if name != "*.go":
            return [f"{folder}/{name}"] if name in names else []
        return sorted(f"{folder}/{each}" for each in names if each.endswith(".go") and not each.endswith("_test.go"))


def _beside(name: str, importer: str) -> Iterator[str]:
    """Paths where a file of this name may be: beside the importer, or in folders above it."""
    folder = importer
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        for between in SOURCE_FOLDERS:
            yield f"{folder}/{between}{name}"


def _shared(path: str, other: str) -> tuple[int, int]:
    """The number of folders that two paths share; among equals the shorter path is nearer."""
    return len(posixpath.commonpath((path, other)).split("/")), -len(path)
