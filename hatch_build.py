"""Compiles the C kernels while the package is being installed or made into a wheel."""

import sys
import sysconfig
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "mercury_kernels/cpu"


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
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
            build_data["force_include"].update({str(file): f"{KERNELS}/{file.name}" for file in built})
