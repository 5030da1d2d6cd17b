"""Triton's interpreter without what it repeats at every call: fills by kernels take a third to half of the time."""

import types
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import triton.language as tl
from mercury_kernels import attention, linear, ops, qkv
from triton.runtime import interpreter

KERNELS = {"project_qkv": qkv, "attention": attention, "linear": linear}
"""The operations of a fused layer, and the modules that have their kernels."""


def use_kernels(patch: pytest.MonkeyPatch) -> None:
    """The kernels of fused layers, in the interpreter, in place of their twins."""
    for name, module in KERNELS.items():
        patch.setattr(ops, name, getattr(module, name))


@contextmanager
def fast_interpreter() -> Iterator[None]:
    """The interpreter with its language in place, which it replaces piece by piece at every call of a function.

    Nor does it look for integers that overflow: the tests of single kernels do.
    """
    both = types.FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core})
    options = interpreter.interpreter_builder.options
    with pytest.MonkeyPatch.context() as patch:
        language = interpreter._patch_lang(both)
        patch.setattr(interpreter, "_patch_lang", lambda function: interpreter._LangPatchScope())
        object.__setattr__(options, "sanitize_overflow", False)  # frozen
        try:
            yield
        finally:
            object.__setattr__(options, "sanitize_overflow", True)
            language.restore()
