"""Counts lines of Python: `python benchmarks/size.py [--root CHECKOUT] [--json]` (docs/decisions/size.md).

A server reaches what the program's main module and `serve` import, in functions too. Imports for type checkers alone
don't count, nor Triton kernels, which a GPU imports by name. The wheel's files are those that hatchling packs.
"""

import argparse
import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

FOLDERS = {"mercury_lsp": ".", "mercury_engine": "engine", "mercury_lab": "engine", "mercury_kernels": "kernels"}
"""Where the packages are."""

ENTRY_POINTS = ("mercury_lsp.__main__", "mercury_lsp.commands.serve")


def modules(root: Path) -> dict[str, Path]:
    """The files of all modules, by name; a package's is its `__init__.py`."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in (root / folder / package).rglob("*.py"):
            parts = path.relative_to(root / folder).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imported(node: ast.AST) -> Iterator[str]:
    """The names of modules that code imports, those of packages included, and of what it takes from them."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


def reached(all_modules: dict[str, Path]) -> set[Path]:
    """The files of the modules that a server can import."""
    waiting = [*ENTRY_POINTS]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in all_modules:
            continue
        seen.add(name)
        waiting += imported(ast.parse(all_modules[name].read_text("utf-8")))
        waiting.append(name.rpartition(".")[0])
    return {all_modules[name] for name in seen}


def lines(paths: set[Path]) -> int:
    """Lines of files, with comments and blank ones."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def sizes(root: Path) -> dict[str, int]:
    """Lines by what they are for."""
    packed = {Path(each.path) for each in WheelBuilder(str(root)).recurse_included_files()}
    found = modules(root)
    return {
        "reached by a server": lines(reached(found)),
        "in the wheel": lines({path for path in packed if path.suffix == ".py"}),
        "in the laboratory": lines({path for name, path in found.items() if name.startswith("mercury_lab")}),
        "tests": lines(set((root / "tests").rglob("*.py"))),
    }


def main() -> int:
    """Print the sizes."""
    parser = argparse.ArgumentParser(description="Counts lines of Python.")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout to measure")
    parser.add_argument("--json", action="store_true", help="print a record instead of a table")
    options = parser.parse_args()
    counted = sizes(options.root.resolve())
    print(json.dumps(counted) if options.json else "\n".join(f"{count:7,}  {what}" for what, count in counted.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
