"""Leaves only the packages of a borrowed GPU machine and what they require; GPU_MACHINE_TESTS adds those of tests."""

import os
import re
import sys
from importlib import metadata
from importlib.machinery import PathFinder

PRESENT = ["torch", "triton", "transformers", "tokenizers", "numpy", "safetensors", "ml-dtypes"]

TESTS = ["pytest", "pytest-xdist", "hypothesis"]

OURS = ("mercury_", "_editable_impl_", "__editable__")
"""Beginnings of the modules that the tree itself has, and of those that an editable installation leaves."""


def required(names):
    """The distributions of these names and all that they require."""
    found, waiting = set(), [*names]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        found.add(name)
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # of another system
            continue
        waiting += [re.match(r"[\w.-]+", need)[0] for need in needs if "extra ==" not in need]
    return found


def hidden():
    """The top-level modules of all other packages."""
    kept = required(PRESENT + (TESTS if os.environ.get("GPU_MACHINE_TESTS") else []))
    owners = metadata.packages_distributions().items()
    return {
        module
        for module, names in owners
        if not module.startswith(OURS) and not any(re.sub(r"[-_.]+", "-", name).lower() in kept for name in names)
    }


class Finder(PathFinder):
    """Finds none of them."""

    names = hidden()

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        return None if fullname.partition(".")[0] in cls.names else super().find_spec(fullname, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
