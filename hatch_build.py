"""Compiles the C kernels while the package is being installed or made into a wheel."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

KERNELS = "mercury_kernels/cpu"


def platform_tag() -> str:
    """The system's, as pip will ask for it: the first that does not promise an older C library."""
    tags = (tag.platform for tag in sys_tags())
    return next(tag for tag in tags if not tag.startswith(("manylinux", "musllinux")))


class CompileKernels(BuildHookInterface):  # type: ignore[type-arg]
    """A wheel with kernels is one for this system; without a compiler it is one for all."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        script = Path(self.root) / "kernels" / KERNELS / "build.py"
        spec = spec_from_file_location("build_kernels", script)
        assert spec is not None
        assert spec.loader is not None
        build_kernels = sys.modules[spec.name] = module_from_spec(spec)
        spec.loader.exec_module(build_kernels)
        built = build_kernels.build()
        if built and version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag()}"
            build_data["force_include"].update({str(file): f"{KERNELS}/{file.name}" for file in built})
