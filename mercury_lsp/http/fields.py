"""Reads the JSON bodies of requests, within bounds."""

import gc
import json
import re
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request

from mercury_lsp import plain_data
from mercury_lsp.http.errors import bad_request

T = TypeVar("T")

MAX_STOPS, MAX_STOP_CHARS = 64, 256
"""Number and length of stop texts; each is compared with the end of a text at every token."""

MAX_EXPLANATION_CHARS = 500
"""Longest error message that repeats what the client sent."""

MAX_STRINGS, MAX_VALUES = 20_000, 200_000
"""Most strings, and most lists, objects and items, in a body: reading them blocks the event loop."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)

_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
"""Possibly a lone surrogate, which no tokenizer takes."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a stream sends beside the text."""

    include_usage: bool = False


@dataclass(frozen=True, slots=True)
class TextRequest:
    """Fields of all requests for a text."""

    stream: bool = False
    stream_options: StreamOptions | None = None
    max_completion_tokens: int | None = None
    max_tokens: int | None = None
    n_predict: int | None = None
    num_predict: int | None = None
    n: int = 1

    @property
    def limit(self) -> int | None:
        """Most tokens to write, under any name: 0 only reads, negative: no limit; None if the client sends none."""
        names = (self.max_completion_tokens, self.max_tokens, self.n_predict, self.num_predict)
        return next((each for each in names if each is not None), None)

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


def structured(body: dict[str, Any], kind: type[T]) -> T:
    """The object as a dataclass. Raises ApiError, naming the first invalid field."""
    try:
        return plain_data.structured(body, kind)
    except plain_data.InvalidData as error:
        raise bad_request(str(error)[:MAX_EXPLANATION_CHARS], error.field) from None


def require_few(stop: tuple[str, ...]) -> None:
    """Raise ApiError for too many or too long stop texts."""
    if len(stop) > MAX_STOPS or any(len(each) > MAX_STOP_CHARS for each in stop):
        raise bad_request(f"stop may have at most {MAX_STOPS} strings of {MAX_STOP_CHARS} characters", "stop")


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
