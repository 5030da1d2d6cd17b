"""What the packages export: sorted, importable and complete."""

import ast
import importlib
import importlib.util
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FOLDERS = {
    "mercury_lsp": ROOT / "mercury_lsp",
    "mercury_engine": ROOT / "engine" / "mercury_engine",
    "mercury_lab": ROOT / "engine" / "mercury_lab",
    "mercury_kernels": ROOT / "kernels" / "mercury_kernels",
}


def modules() -> dict[str, Path]:
    """Our modules' files by their dotted names."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((package, *(part for part in parts if part != "__init__")))] = path
    return found


MODULES = modules()

PACKAGES = sorted(name for name, path in MODULES.items() if path.name == "__init__.py")


def public_names(path: Path) -> set[str]:
    """The names without an underscore that a file binds at its top: imported, defined or assigned."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def used_names() -> dict[str, set[str]]:
    """What our modules import from each package itself, its submodules left out."""
    used = defaultdict(set)
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in PACKAGES:
                names = {alias.name for alias in node.names}
                used[node.module] |= {name for name in names if f"{node.module}.{name}" not in MODULES}
    return used


EXPORTING = [name for name in PACKAGES if public_names(MODULES[name])]


def test_every_package_is_found():
    assert set(FOLDERS) <= set(PACKAGES) and EXPORTING


@pytest.mark.parametrize("package", EXPORTING)
def test_exports_are_sorted_importable_and_complete(package: str):
    module = importlib.import_module(package)
    assert module.__all__ == sorted(set(module.__all__))
    assert all(hasattr(module, name) for name in module.__all__)
    assert public_names(MODULES[package]) == set(module.__all__)


def test_nothing_is_imported_from_a_package_that_it_does_not_export():
    for package, names in used_names().items():
        assert names <= set(getattr(importlib.import_module(package), "__all__", ())), package


def test_no_two_classes_of_the_product_have_one_name():
    modules_by_name = defaultdict(list)
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not module.startswith("mercury_lab."):
                modules_by_name[node.name].append(module)
    assert {name: found for name, found in modules_by_name.items() if len(found) > 1} == {}


@pytest.mark.parametrize("package", FOLDERS)
def test_every_package_says_that_it_is_typed(package: str):
    assert (FOLDERS[package] / "py.typed").is_file()
