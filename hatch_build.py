"""Compiles the C kernels while the package is being installed or made into a wheel, and writes its description."""

import re
import shutil
import subprocess
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.macos import process_macos_plat_tag
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.tags import sys_tags

KERNELS = "mercury_kernels/cpu"

PAGE = "mercury_lsp/http/page"

NPM_SECONDS = 300

ZIG = "ziglang==0.17.1"
"""Brought for the build only, 400 MB, where there is no C compiler."""

REPOSITORY = "https://github.com/mercury-lsp/mercury-lsp"


def with_whole_links(markdown: str) -> str:
    """The text with links and pictures of the repository that work outside of it, too."""
    pictures = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\1{REPOSITORY}/raw/main/", markdown)
    return re.sub(r"(?<!!)(\[[^\]]*\]\()(?!https?:|#)", rf"\1{REPOSITORY}/blob/main/", pictures)


class Readme(MetadataHookInterface):
    """The README, as an index of packages can show it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description."""
        text = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_whole_links(text)}


def platform_tag() -> str:
    """The system's, as pip will ask for it: the first that does not promise an older C library."""
    tags = (tag.platform for tag in sys_tags())
    tag = next(tag for tag in tags if not tag.startswith(("manylinux", "musllinux")))
    return process_macos_plat_tag(tag, compat=False) if sys.platform == "darwin" else tag


class CompileKernels(BuildHookInterface):  # type: ignore[type-arg]
    """A wheel is for one system, even without kernels: it must not take the place of one that has them."""

    def dependencies(self) -> list[str]:
        """Zig, if no C compiler is found. pip asks for this before it builds."""
        return [ZIG] if self._kernels.needs_zig() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Stops the installation if no kernels can be built: without them the program would be slow."""
        try:
            built = self._kernels.build()
        except self._kernels.BuildError as error:
            self.app.abort(f"mercury-lsp: {error}")
        if version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag()}"
            build_data["force_include"].update({str(file): f"{KERNELS}/{file.name}" for file in built})
            build_data["force_include"].update({str(file): f"{PAGE}/{file.name}" for file in self._playground()})

    def _playground(self) -> list[Path]:
        """The files of the page at `/`, built if npm is there; without them every other route works."""
        page, source = Path(self.root, PAGE), Path(self.root, "editors", "playground")
        npm = shutil.which("npm")
        if not page.is_dir() and npm is not None and source.is_dir():
            try:
                for command in (["ci", "--no-fund", "--no-audit"], ["run", "build"]):
                    subprocess.run([npm, *command], cwd=source, check=True, capture_output=True, timeout=NPM_SECONDS)
            except (OSError, subprocess.SubprocessError) as error:
                self.app.display_warning(f"mercury-lsp: the playground is left out, npm failed: {error}")
        return sorted(page.glob("*"))

    @cached_property
    def _kernels(self) -> ModuleType:
        folder = str(Path(self.root) / "kernels")
        if folder not in sys.path:
            sys.path.insert(0, folder)
        return import_module("compile_kernels")
