"""Structures JSON as typed objects; values of the wrong type are rejected, not converted."""

from collections.abc import Callable
from functools import cache
from typing import Any, Optional, Union, get_args

import cattrs
from lsprotocol import converters
from pygls.exceptions import JsonRpcInvalidParams

MAX_EXPLANATION_CHARS = 500
"""Longest error message that repeats what the client sent."""


@cache  # building the hooks takes 10 ms
def converter() -> cattrs.Converter:
    """A converter that never turns one primitive into another, such as null into text or `true` into a number."""
    made = cattrs.Converter()
    for kind, accepted in ((str, (str,)), (int, (int,)), (bool, (bool,)), (float, (int, float))):
        made.register_structure_hook(kind, _only(accepted))
    made = converters.get_converter(made)
    for token in (int | str, Union[int, str], Optional[Union[int, str]]):  # noqa: UP007, UP045 - different keys
        made.register_structure_hook(token, _token)
    return made


def _only(accepted: tuple[type, ...]) -> Callable[[Any, Any], Any]:
    def structure(value: Any, kind: type) -> Any:
        if type(value) not in accepted:
            raise TypeError(f"{value!r} is not {kind.__name__}")
        return value

    return structure


def _token(value: Any, kind: Any) -> Any:
    """An id or a progress token, for which lsprotocol accepts anything."""
    if value is None and type(None) in get_args(kind):
        return None
    if not is_id(value):
        raise TypeError(f"{value!r} is neither an integer nor a string")
    return value


def is_id(value: Any) -> bool:
    return type(value) in (int, str)


def explained(error: Exception) -> JsonRpcInvalidParams:
    """The error as one that names the invalid fields."""
    broken = isinstance(error, cattrs.BaseValidationError)
    reason = "; ".join(cattrs.transform_error(error)) if broken else f"{type(error).__name__}: {error}"
    return JsonRpcInvalidParams(reason[:MAX_EXPLANATION_CHARS])
