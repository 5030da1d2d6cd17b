"""Reads the fields of requests: nulls count as missing, unknown fields are ignored, wrong types are rejected."""

import gc
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from starlette.requests import Request

from mercury_lsp.http.errors import bad_request

T = TypeVar("T")

MAX_ITEMS = 2_000
"""Items of a list, unless they are texts or integers."""

MAX_STOPS, MAX_STOP_CHARS = 64, 256
"""Number and length of stop texts; each is compared with the end of a text at every token."""

MAX_EXPLANATION_CHARS = 500
"""Longest error message that repeats what the client sent."""

MAX_STRINGS, MAX_VALUES = 20_000, 200_000
"""Most strings, and most lists, objects and items, in a body: reading them blocks the event loop."""

_SCALARS: dict[Any, tuple[type | UnionType, str]] = {
    str: (str, "a string"),
    bool: (bool, "true or false"),
    int: (int | float, "an integer"),
    float: (int | float, "a number"),
}

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)

_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
"""Possibly a lone surrogate, which no tokenizer takes."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a stream sends beside the text."""

    include_usage: bool = False


@dataclass(frozen=True, slots=True)
class StreamableRequest:
    """Fields of requests that may be answered by a stream."""

    stream: bool = False
    stream_options: StreamOptions | None = None

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return self.stream_options is not None and self.stream_options.include_usage


async def read(request: Request, kind: type[T], inner: str = "") -> T:
    """The request's JSON object as a dataclass; fields of its object `inner` count as its own. Raises ApiError."""
    body = await read_object(request)
    more = body.get(inner) or {}
    if not isinstance(more, dict):
        raise bad_request(f"{inner} is not an object", inner)
    return structured(body | more, kind)


async def read_object(request: Request) -> dict[str, Any]:
    """The request's JSON object. Raises ApiError."""
    content = await request.body() or b"{}"
    _require_few_values(content)
    collects = gc.isenabled()
    gc.disable()  # collecting a million new lists takes three times as long as reading them
    try:
        body = json.loads(content.decode("utf-8-sig"), parse_constant=_refused)
        if _HALF_PAIR.search(content):
            body = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise bad_request("the JSON is nested too deeply") from None
    except ValueError as error:
        raise bad_request(f"the body is not JSON in UTF-8: {error}"[:MAX_EXPLANATION_CHARS]) from None
    finally:
        if collects:
            gc.enable()
    if not isinstance(body, dict):
        raise bad_request("the body is not a JSON object")
    return body


def structured(body: Mapping[str, Any], kind: Callable[..., T]) -> T:
    """The object as a dataclass. Raises ApiError, naming the first invalid field."""
    types, found = _types(kind), dict[str, Any]()
    for name, its in types.items():
        if (value := body.get(name)) is not None:
            try:
                found[name] = _value(value, its)
            except (TypeError, ArithmeticError) as error:
                raise bad_request(f"{name}: {error}"[:MAX_EXPLANATION_CHARS], name) from None
        elif name in _required(kind):
            raise bad_request(f"{name} is missing", name)
    return kind(**found)


def require_few(stop: tuple[str, ...]) -> None:
    """Raise ApiError for too many or too long stop texts."""
    if len(stop) > MAX_STOPS or any(len(each) > MAX_STOP_CHARS for each in stop):
        raise bad_request(f"stop may have at most {MAX_STOPS} strings of {MAX_STOP_CHARS} characters", "stop")


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _required(kind: Any) -> frozenset[str]:
    """The fields without a default."""
    return frozenset(each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING)


def _value(value: Any, kind: Any) -> Any:
    """The value as this type. Raises TypeError, ArithmeticError and ApiError."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:  # with None
        return _value(value, parts[0])
    if origin is tuple:
        return _items(value, parts[0])
    if origin is Literal and value not in parts:
        raise TypeError(f"{value!r} is not one of {', '.join(parts)}")
    is_object = is_dataclass(kind)
    if (is_object or origin is dict) and not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is not an object")
    if is_object:
        return structured(value, kind)
    return _scalar(value, kind) if kind in _SCALARS else value


def _items(value: Any, kind: Any) -> tuple[Any, ...]:
    """The items of a list; one string counts as a list of one."""
    if isinstance(value, str) and kind is str:
        return (value,)
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    if len(value) > MAX_ITEMS and kind not in (str, int):
        raise TypeError(f"{len(value):,} items, of which {MAX_ITEMS:,} are allowed")
    return tuple(_value(each, kind) for each in value)


def _scalar(value: Any, kind: Any) -> Any:
    types, name = _SCALARS[kind]
    is_one = isinstance(value, types) and (kind is bool or not isinstance(value, bool))
    if not is_one or (kind is int and value != value // 1):
        raise TypeError(f"{value!r} is not {name}")
    return kind(value)


def _require_few_values(content: bytes) -> None:
    """Raise ApiError for JSON with too many values."""
    if content.count(b'"') - content.count(b'\\"') > 2 * MAX_STRINGS:
        raise bad_request(f"the body has more than {MAX_STRINGS:,} strings")
    if _structure(content) > MAX_VALUES and _structure(_STRING.sub(b"", content)) > MAX_VALUES:
        raise bad_request(f"the body has more than {MAX_VALUES:,} values")


def _structure(content: bytes) -> int:
    """Number of lists, objects and separators."""
    return sum(map(content.count, (b"[", b"{", b",")))


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
