"""The sandbox for chat templates: a model's file can neither block a thread nor fill the memory.

Every body of a loop, branch or macro checks the time; results of operations, calls and filters have a limit.
"""

from collections.abc import Callable
from threading import local
from time import thread_time
from typing import Any

from jinja2 import Template, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import loopcontrols
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mercury_engine.errors import RequestError

RENDER_SECONDS = 1.0
"""Processor time that a conversation may take; real templates take milliseconds."""

MAX_CHARS = 8_000_000
"""Longest text, and most items of a list, that a template may make; longer than what any model reads."""

MAX_INDENTATION = 100

GROWING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs"})
"""Methods of texts that write as many characters as they are told to; no known template uses them."""

REFUSED_FILTERS = ("center", "format", "wordwrap", "filesizeformat", "pprint", "batch", "slice", "urlize")


class _Watched(CodeGenerator):
    def blockvisit(self, body: Any, frame: Frame) -> None:
        self.writeline("environment.tick()")
        super().blockvisit(body, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # jinja2's name
        self.write("environment.joined((")
        for each in node.nodes:
            self.visit(each, frame)
            self.write(", ")
        self.write("))")


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Compiles templates, and renders them on any thread."""

    code_generator_class = _Watched
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols], optimized=False)
        self._time = local()
        for name in REFUSED_FILTERS:
            del self.filters[name]
        for name in ("replace", "join", "indent", "string"):
            self.add_filter(name, self.filters[name])

    def add_filter(self, name: str, made: Callable[..., Any]) -> None:
        """A filter whose texts are short enough, what goes in and what comes out."""
        self.filters[name] = _bounded(made)

    def render(self, template: Template, **variables: Any) -> str:
        """What a template writes. Raises RequestError if it is too much or takes too long, and as the template."""
        self._time.end = thread_time() + RENDER_SECONDS
        parts, size = list[str](), 0
        for part in template.generate(**variables):
            parts.append(part)
            size += len(part)
            _require(size)
        return "".join(parts)

    def tick(self) -> None:
        """Raises RequestError once the time of this thread is up."""
        if thread_time() > self._time.end:
            raise RequestError("the model's chat template takes too long; choose another model")

    def joined(self, parts: tuple[Any, ...]) -> str:
        """What `~` writes."""
        return _checked("".join(map(str, parts)))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in GROWING and super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self.tick()
        if operator == "*" and (isinstance(left, int) is not isinstance(right, int)):
            _require(_size(left) * right if isinstance(right, int) else _size(right) * left)
        elif operator == "**" and isinstance(right, int):
            _require(_size(left) * abs(right))
        elif operator == "%" and isinstance(left, str):
            raise RequestError("the model's chat template formats texts by %; choose another model")
        return _checked(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # as jinja2 has it
        __self.tick()
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str) and __obj.__name__ == "replace" and len(args) > 1:
            _require(_size(owner) * max(1, _size(args[1])))
        elif isinstance(owner, str) and __obj.__name__ == "join" and args:
            args = ([*args[0]], *args[1:])
            _require(_size(owner) * len(args[0]) + sum(map(_size, args[0])))
        return _checked(super().call(__context, __obj, *args, **kwargs))


def _checked(value: Any) -> Any:
    """The value. Raises RequestError if it is too long."""
    _require(_size(value))
    return value


def _bounded(made: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(*args: Any, **options: Any) -> Any:
        if any(isinstance(each, int) and each > MAX_INDENTATION for each in (*args[1:], *options.values())):
            raise RequestError("the model's chat template indents too much; choose another model")
        texts = [_size(each) for each in args if isinstance(each, str)]
        _require(texts[0] * max(texts[1:], default=1) if texts else 0)
        return _checked(made(*args, **options))

    for name, value in vars(made).items():  # what jinja2 passes to it
        setattr(bounded, name, value)
    return bounded


def _size(value: Any) -> int:
    """Characters, items or bits; 0 for what does not grow."""
    if isinstance(value, int):
        return value.bit_length()
    return len(value) if isinstance(value, str | bytes | list | tuple) else 0


def _require(size: int) -> None:
    if size > MAX_CHARS:
        raise RequestError("the model's chat template writes too much; choose another model")
