"""A pretend CUDA device: its tensors say cuda:0 and lie in the host's memory, and what a GPU would be asked is counted.

It needs a C++ compiler, for torch without CUDA has no guard for such devices.
"""

import contextlib
import ctypes
import dataclasses
import subprocess
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from mercury_engine import loading
from mercury_engine.device import step
from mercury_engine.models import gpu
from mercury_kernels import capture, ops, reference
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.cpp_extension import include_paths

DEVICE = torch.device("cuda", 0)

GUARD = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
static c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> guard;
static c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::CUDA, &guard);
"""

WAITS = {"_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "_unique2"}
"""Operations whose result or whose shape the host reads."""

INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}

FREE = {
    "_reshape_alias", "_unsafe_view", "alias", "as_strided", "chunk", "detach", "diagonal", "empty", "empty_like",
    "empty_strided", "expand", "lift_fresh", "narrow", "new_empty", "new_empty_strided", "permute", "reshape",
    "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze",
    "view", "view_as",
}  # fmt: skip
"""Operations that launch nothing."""

PACKAGES = ("mercury_engine", "mercury_kernels")


@dataclass
class Counts:
    """What a GPU was asked to do, by operation or by the place in our code."""

    launches: Counter[str] = field(default_factory=Counter)
    """Outside of graphs; a kernel of ours is one."""
    waits: Counter[str] = field(default_factory=Counter)
    """The host waits for the device."""
    blocking_copies: Counter[str] = field(default_factory=Counter)
    """Copies to the device that the host waits for."""
    graphs: list[int] = field(default_factory=list)
    """Launches in each captured graph."""
    replays: int = 0
    wrong: list[str] = field(default_factory=list)
    """What a real device refuses."""

    def clear(self) -> None:
        for counter in (self.launches, self.waits, self.blocking_copies):
            counter.clear()
        self.replays = 0


counts = Counts()

_capturing: list[int] = []
"""Launches of the graph that is captured, if one is."""


class DeviceTensor(Tensor):
    """A tensor that says it is on the device; `inner` has its values."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "DeviceTensor":
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            layout=inner.layout,
            device=DEVICE,
        )
        made.inner = inner
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"DeviceTensor({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):  # type: ignore[override]
        return _run(func, args, kwargs or {})


def on_device(tensor: object) -> bool:
    return isinstance(tensor, DeviceTensor)


def _inner(value: object) -> Any:
    return value.inner if isinstance(value, DeviceTensor) else value


def _outer(value: object) -> Any:
    return DeviceTensor(value) if isinstance(value, Tensor) and not on_device(value) else value


def _place() -> str:
    for frame in reversed(traceback.extract_stack(limit=60)):
        for package in PACKAGES:
            if f"/{package}/" in frame.filename:
                return f"{package}/{frame.filename.split(f'/{package}/')[-1]}:{frame.name}"
    return "elsewhere"


def _launch(name: str) -> None:
    if _capturing:
        _capturing[-1] += 1
    else:
        counts.launches[name] += 1


def _wait(what: str) -> None:
    if _capturing:
        counts.wrong.append(f"{what} while a graph is captured, in {_place()}")
    counts.waits[_place()] += 1


def _copy_in(blocking: bool) -> None:
    if blocking and _capturing:
        counts.wrong.append(f"a blocking copy while a graph is captured, in {_place()}")
    if blocking:
        counts.blocking_copies[_place()] += 1


def _run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do the operation in the host's memory, and count what the device would do."""
    name = func._schema.name.split("::")[1]
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    target = kwargs.get("device")
    to_device = target is not None and torch.device(target).type == "cuda"
    kwargs = kwargs | ({"device": torch.device("cpu")} if to_device else {})
    if kwargs.get("pin_memory"):
        kwargs = kwargs | {"pin_memory": False}
    if name in ("is_pinned", "_pin_memory"):
        return True if name == "is_pinned" else args[0]
    if not to_device and not any(map(on_device, tensors)):
        return func(*args, **kwargs)
    if name == "_to_copy" and (to_device or target is not None) and on_device(args[0]) != to_device:
        return _moved(func, args, kwargs, to_device)
    _check(name, args, kwargs, tensors)
    if name not in FREE:
        _launch(name)
    result = func(*tree_map(_inner, args), **tree_map(_inner, kwargs))
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    if name in ("_local_scalar_dense", "is_nonzero", "equal"):
        return result
    return tree_map(_outer, result)


def _moved(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], to_device: bool) -> Tensor:
    _launch("copy between host and device")
    if to_device:
        _copy_in(not kwargs.get("non_blocking"))
        return DeviceTensor(func(*args, **kwargs).clone())
    if not kwargs.get("non_blocking"):
        _wait("a copy to the host")
    return func(_inner(args[0]), *args[1:], **kwargs)


def _check(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]) -> None:
    """Count what the host waits for, and note tensors of the host that a device cannot reach."""
    if name in WAITS:
        _wait(name)
    if name == "copy_" and on_device(args[0]) != on_device(args[1]):
        later = kwargs.get("non_blocking") or (len(args) > 2 and args[2])
        if on_device(args[0]):
            _copy_in(not later)
        elif not later:
            _wait("a copy to the host")
    elif name in INDEXING:
        for index in args[1]:
            if index is not None and index.dtype in (torch.bool, torch.uint8):
                _wait("a choice by a mask")
            if index is not None and not on_device(index):
                _copy_in(True)
    elif any(each.dim() and each.device.type == "cpu" for each in tensors):
        counts.wrong.append(f"{name} of tensors of the host and the device, in {_place()}")


class _Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


FUSED = {"rms_norm", "scaled_dot_product_attention"}
"""Operations that are one kernel of CUDA's, and several elsewhere."""


class _Named(TorchFunctionMode):
    """Gives the device that is called "cuda" its number, as CUDA does, and runs what is one kernel there as one."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def numbered(value: object) -> object:
            is_cuda = isinstance(value, str | torch.device) and str(value) in ("cuda", "cuda:0")
            return DEVICE if is_cuda else value

        kwargs = kwargs or {}
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        if func.__name__ in FUSED and all(map(on_device, given)):
            _launch(func.__name__)
            return _outer(func(*tree_map(_inner, args), **tree_map(_inner, kwargs)))
        return func(*map(numbered, args), **{name: numbered(value) for name, value in kwargs.items()})


class _Stream:
    device = DEVICE

    def __init__(self, *_: object) -> None:
        pass

    def wait_stream(self, other: object) -> None:
        pass

    def synchronize(self) -> None:
        _wait("synchronising")

    def query(self) -> bool:
        return True


class _Event:
    def __init__(self, *_: object, **__: object) -> None:
        pass

    def record(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        _wait("synchronising")


class _Graph:
    captured: Any
    latest: Any
    """The work that ran last, and its results."""

    def replay(self) -> None:
        """Do the captured work again; it counts as one replay, and what is in it was counted when it was captured."""
        counts.replays += 1
        before = dataclasses.replace(counts, launches=counts.launches.copy())
        work, results = self.captured
        for old, new in zip(tree_leaves(results), tree_leaves(work()), strict=True):
            old.inner.copy_(new.inner)  # results stay at their addresses
        counts.launches.clear()
        counts.launches.update(before.launches)


@contextlib.contextmanager
def _captured(graph: _Graph, **_: object) -> Iterator[None]:
    _capturing.append(0)
    try:
        yield
    finally:
        counts.graphs.append(_capturing.pop())
        graph.captured = _Graph.latest


def _kernel(name: str, launches: int) -> Callable[..., Any]:
    """A kernel of ours: the twin's values, and as many launches as the kernel has."""
    twin = getattr(reference, name)

    def run(*args: object, **kwargs: object) -> Any:
        for _ in range(launches):
            _launch(name)
        for each in tree_leaves((args, kwargs)):
            if isinstance(each, Tensor) and each.dim() and not on_device(each):
                counts.wrong.append(f"{name} is given a tensor of the host, in {_place()}")
        return tree_map(_outer, twin(*map(_opened, args), **{key: _opened(value) for key, value in kwargs.items()}))

    return run


def _opened(value: object) -> Any:
    if dataclasses.is_dataclass(value):
        return type(value)(*(_opened(getattr(value, each.name)) for each in dataclasses.fields(value)))  # type: ignore[operator]
    return _inner(value)


KERNELS = {"project_qkv": 1, "attention": 1, "linear": 1, "answers": 2, "draw": 1, "reveal": 1}
"""Launches of each kernel of ours."""


def _load_guard() -> None:
    """Compile and load a guard for CUDA devices that does nothing."""
    compiler = which("g++") or which("c++")
    if compiler is None:
        pytest.skip("the pretend device needs a C++ compiler")
    folder = Path(tempfile.gettempdir()) / f"mercury-pretend-cuda-{torch.__version__}"
    if not (made := folder / "guard.so").is_file():
        folder.mkdir(exist_ok=True)
        (folder / "guard.cpp").write_text(GUARD)
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            includes = [option for path in include_paths() for option in ("-isystem", path)]
            abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
            library = f"-L{Path(torch.__file__).parent / 'lib'}"
            command = [compiler, "-std=c++20", "-shared", "-fPIC", abi, *includes, str(folder / "guard.cpp")]
            subprocess.run([*command, library, "-lc10", "-o", f"{fresh}/guard.so"], check=True)
            Path(f"{fresh}/guard.so").replace(made)
    ctypes.CDLL(str(made))


@contextlib.contextmanager
def pretend_cuda(monkeypatch: pytest.MonkeyPatch, free: int = 22 << 30, kernels: bool = True) -> Iterator[Counts]:
    """Let torch and the engine find a GPU with so many free bytes; yields what it is asked to do.

    Fails at the end if it was asked what a real one refuses.
    `kernels`: whether Triton compiles ours; otherwise their twins run.
    """
    _load_guard()
    fakes = {
        "is_available": lambda: True, "_lazy_init": lambda: None, "current_device": lambda: 0,
        "get_device_capability": lambda *_: (8, 9), "get_device_name": lambda *_: "Pretend RTX",
        "mem_get_info": lambda *_: (free, 24 << 30), "empty_cache": lambda: None,
        "Stream": _Stream, "current_stream": lambda *_: _Stream(), "stream": lambda *_: contextlib.nullcontext(),
        "Event": _Event, "CUDAGraph": _Graph, "graph": _captured, "graph_pool_handle": lambda: (0, 0),
        "synchronize": lambda *_: _wait("synchronising"),
    }  # fmt: skip
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    for module in (loading, gpu):
        monkeypatch.setattr(module, "nvidia_gpus", lambda: ("Pretend RTX",))
    ours = SimpleNamespace(**{name: _kernel(name, launches) for name, launches in KERNELS.items()})
    monkeypatch.setattr(ops, "_kernels", lambda *_: ours if kernels else reference)
    monkeypatch.setattr(ops, "why_not", lambda _: None if kernels else "Triton is missing")
    monkeypatch.setattr(capture, "WARMUPS", 1)
    monkeypatch.setattr(step, "ROWS", (16, 64))  # fewer, to save time
    monkeypatch.setattr(step, "LONG_ROWS", ())
    monkeypatch.setattr(step, "KEYS", (512,))
    captured = capture.Captures._capture

    def keep_work(self: capture.Captures, work: Callable[[], Any]) -> object:
        def kept() -> Any:
            _Graph.latest = work, work()
            return _Graph.latest[1]

        return captured(self, kept)

    monkeypatch.setattr(capture.Captures, "_capture", keep_work)
    torch._C._set_only_lift_cpu_tensors(True)
    overwritten = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    counts.clear()
    counts.graphs, counts.wrong = [], []
    try:
        with _Named(), _Dispatch():
            yield counts
        assert not counts.wrong, counts.wrong[:3]
    finally:
        torch._C._set_only_lift_cpu_tensors(False)
        torch.__future__.set_overwrite_module_params_on_conversion(overwritten)
