"""Reads the fields of requests: nulls count as missing, unknown fields are ignored, wrong types are rejected."""

import dataclasses
import gc
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, get_origin

import cattrs
from starlette.requests import Request

from mercury_lsp.http.errors import bad_request

T = TypeVar("T")

MAX_ITEMS = 2_000
"""Items of a list or an object of objects: each invalid one takes a tenth of a millisecond to explain."""

MAX_STOPS, MAX_STOP_CHARS = 64, 256
"""Number and length of stop texts; each is compared with the end of a text at every token."""

MAX_EXPLANATION_CHARS = 500
"""Longest error message that repeats what the client sent."""


MAX_STRINGS, MAX_VALUES = 20_000, 200_000
"""Strings, and lists, objects and items, of a body: the event loop waits while they are read."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
"""Possibly a lone surrogate."""


async def read(request: Request, kind: type[T]) -> T:
    """The request's JSON object as a dataclass. Raises ApiError."""
    return structured(await read_object(request), kind)


async def read_object(request: Request) -> dict[str, Any]:
    """The request's JSON object. Raises ApiError."""
    content = await request.body() or b"{}"
    _require_few_values(content)
    collects = gc.isenabled()
    gc.disable()  # collecting a million new lists takes three times as long as reading them
    try:
        body = json.loads(content, parse_constant=_refused)
        if _HALF_PAIR.search(content):  # no reply could repeat it
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


def _require_few_values(content: bytes) -> None:
    """Raise ApiError for JSON with too many values."""
    if content.count(b'"') - content.count(b'\\"') > 2 * MAX_STRINGS:
        raise bad_request(f"the body has more than {MAX_STRINGS:,} strings")
    if sum(map(content.count, (b"[", b"{", b","))) > MAX_VALUES:
        outside = _STRING.sub(b"", content)
        if sum(map(outside.count, (b"[", b"{", b","))) > MAX_VALUES:
            raise bad_request(f"the body has more than {MAX_VALUES:,} values")


def structured(body: Mapping[str, Any], kind: type[T]) -> T:
    """The object as a dataclass. Raises ApiError, naming the invalid field."""
    try:
        return _converter().structure(body, kind)
    except RecursionError:
        raise bad_request("the JSON is nested too deeply") from None
    except TypeError as error:
        raise bad_request(str(error)[:MAX_EXPLANATION_CHARS]) from None
    except cattrs.BaseValidationError as error:
        problems = cattrs.transform_error(error)
        _, _, field = problems[0].rpartition("$.")
        raise bad_request("; ".join(problems)[:MAX_EXPLANATION_CHARS], field or None) from None


def require_few(stop: tuple[str, ...]) -> None:
    """Raise ApiError for too many or too long stop texts."""
    if len(stop) > MAX_STOPS or any(len(each) > MAX_STOP_CHARS for each in stop):
        raise bad_request(f"stop may have {MAX_STOPS} texts of {MAX_STOP_CHARS} characters", "stop")


def text_of(value: Any) -> str:
    """A string without lone surrogates, which no tokenizer takes. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is not a string")
    return value.encode("utf-8", "replace").decode("utf-8")


@cache
def _converter() -> cattrs.Converter:
    made = cattrs.Converter()
    made.register_structure_hook(str, lambda value, _: text_of(value))
    made.register_structure_hook(int, lambda value, _: _integer(value))
    made.register_structure_hook(float, lambda value, _: _number(value))
    made.register_structure_hook(bool, lambda value, _: _boolean(value))
    made.register_structure_hook_func(lambda kind: kind == tuple[str, ...], lambda value, _: _texts(value))
    made.register_structure_hook_func(lambda kind: kind == tuple[int, ...], lambda value, _: _integers(value))

    @made.register_structure_hook_factory(lambda kind: hasattr(kind, "__dataclass_fields__"))
    def without_nulls(kind: type[Any]) -> Any:
        structure = cattrs.gen.make_dict_structure_fn(kind, made)
        several = [each.name for each in dataclasses.fields(kind) if _holds_several(each.type)]

        def apply(value: Any, into: type[Any]) -> Any:
            if not isinstance(value, Mapping):
                raise TypeError(f"{type(value).__name__} is not an object")
            for name in several:
                _require_bounded(value.get(name), name)
            return structure({key: each for key, each in value.items() if each is not None}, into)

        return apply

    return made


def _require_bounded(value: Any, name: str) -> None:
    """Raise ApiError for a value that is no list or object, or too long."""
    if value is not None and not isinstance(value, list | Mapping):
        raise bad_request(f"{name} is neither a list nor an object", name)
    if value is not None and len(value) > MAX_ITEMS:
        raise bad_request(f"{name} has {len(value):,} items; allowed are {MAX_ITEMS:,}", name)


def _holds_several(kind: Any) -> bool:
    """Whether it is a list or object whose invalid items are explained one by one."""
    return get_origin(kind) in (tuple, dict) and kind not in (tuple[str, ...], tuple[int, ...])


def _integers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} is not a list")
    return tuple(map(_integer, value))


def _texts(value: Any) -> tuple[str, ...]:
    """One string, or several."""
    return tuple(map(text_of, value if isinstance(value, list) else [value]))


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise TypeError(f"{value!r} is not an integer")
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
