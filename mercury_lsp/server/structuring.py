"""Structures JSON as typed objects; values of the wrong type are rejected, not converted."""

from collections.abc import Callable
from functools import cache
from typing import Any, Optional, TypeVar, Union, get_args

import cattrs
from lsprotocol import converters, types

from mercury_lsp.errors import RpcError

T = TypeVar("T")


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


def structured(raw: Any, kind: type[T]) -> T:
    """JSON as an object of this type. Raises RpcError, naming the wrong fields."""
    try:
        return converter().structure(raw, kind)
    except cattrs.BaseValidationError as error:
        raise invalid("; ".join(cattrs.transform_error(error))) from error
    except Exception as error:
        raise invalid(f"{type(error).__name__}: {error}") from error


def argument(params: types.ExecuteCommandParams, kind: type[T]) -> T:
    """A command's first argument, because some editors add their own; an empty object if there is none.

    Raises RpcError.
    """
    return structured((params.arguments or [{}])[0], kind)


def invalid(reason: str) -> RpcError:
    """The error for parameters that cannot be used."""
    return RpcError(types.ErrorCodes.InvalidParams, reason)
