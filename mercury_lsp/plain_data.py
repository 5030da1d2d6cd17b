"""Dataclasses from JSON's types and back.

Nulls count as missing and unknown fields are ignored; values of the wrong type are rejected, never converted. A type
that is annotated with `Allowed` takes fewer values.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

MAX_ITEMS = 2_000
"""Items of a list, unless they are strings or integers."""

_SCALARS: dict[Any, str] = {str: "a string", bool: "true or false", int: "an integer", float: "a number"}


class Allowed(NamedTuple):
    """What is allowed, in words, and which values of the annotated type are."""

    described: str
    accepts: Callable[[Any], bool] = lambda value: True


def within(low: float, high: float, kind: str = "a number") -> Allowed:
    return Allowed(f"{kind} from {low:g} to {high:g}", lambda value: low <= value <= high)


class InvalidData(ValueError):
    """A value is not of its type; `field` is the innermost field that holds it."""

    def __init__(self, message: str, field: str):
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


def plain(value: Any) -> Any:
    """A dataclass, or a tuple of them, as JSON's types."""
    return [*map(plain, value)] if isinstance(value, tuple) else asdict(value)


def structured(value: Any, kind: Callable[..., T]) -> T:
    """An object as a dataclass. Raises InvalidData for the first invalid field."""
    if not isinstance(value, Mapping):
        raise InvalidData(f"{value!r} is not an object", "")
    found = dict[str, Any]()
    for name, (its, is_required) in fields_of(kind).items():
        if (each := value.get(name)) is not None:
            try:
                found[name] = read(each, its)
            except (TypeError, ArithmeticError) as error:
                raise InvalidData(str(error), name) from None
        elif is_required:
            raise InvalidData("it is missing", name)
    return kind(**found)


@cache
def fields_of(kind: Any) -> dict[str, tuple[Any, bool]]:
    """By the name of each field of a dataclass its annotated type, and whether it has no default."""
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: (hints[each.name], each.default is each.default_factory is MISSING) for each in fields(kind)}


def read(value: Any, kind: Any) -> Any:
    """The value as this type. Raises TypeError, ArithmeticError and InvalidData."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        with suppress(TypeError, ArithmeticError):
            found = read(value, parts[0])
            if found is None or parts[1].accepts(found):
                return found
        raise TypeError(f"{value!r} is not {parts[1].described}")
    if origin is UnionType:  # with None
        return None if value is None else read(value, parts[0])
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
    reader = _scalar if kind in _SCALARS else read
    return tuple(reader(each, kind) for each in value)


def _scalar(value: Any, kind: Any) -> Any:
    if type(value) is kind:
        return value
    if type(value) not in (int, float) or kind not in (int, float) or (kind is int and value != value // 1):
        raise TypeError(f"{value!r} is not {_SCALARS[kind]}")
    return kind(value)
