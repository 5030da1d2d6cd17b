"""Errors of the HTTP API and their replies: `{"error": {message, type, param, code}}`."""

import logging

from mercury_engine.errors import Cancelled, MercuryError, PromptTooLong, RequestError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1
"""`Retry-After` when the queue is full; a fill takes less."""


class ApiError(MercuryError):
    """An error reply; `param` names the invalid field."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None):
        super().__init__(message)
        self.status, self.param, self.code = status, param, code


def bad_request(message: str, param: str | None = None) -> ApiError:
    """The request is invalid."""
    return ApiError(400, message, param)


def reply_to(error: ApiError, path: str) -> Response:
    """The reply at a path; Ollama's clients get the error as a string."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    message = str(error).encode("utf-8", "replace").decode("utf-8")
    about = {"message": message, "type": kind, "param": error.param, "code": error.code}
    body = {"error": message if path.startswith("/api/") else about}
    headers = {"Retry-After": str(RETRY_SECONDS)} if error.status in (429, 503) else None
    return JSONResponse(body, error.status, headers)


async def on_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 404:
        paths = sorted({route.path for route in request.app.routes if route.path.count("/") > 1})
        error = ApiError(404, f"no such route; the routes are {', '.join(paths)}")
    return reply_to(as_api_error(error), request.url.path)


def as_api_error(error: Exception) -> ApiError:
    """The error as clients see it; our own bugs are logged."""
    match error:
        case ApiError():
            return error
        case HTTPException():
            return ApiError(error.status_code, error.detail)
        case PromptTooLong():
            return ApiError(400, str(error), "messages", "context_length_exceeded")
        case RequestError():
            return bad_request(str(error))
        case Cancelled():
            return ApiError(503, "the request was dropped because the model is no longer in use; try again")
        case MercuryError():
            return ApiError(503, str(error), code="server_error")
    logger.error("a request failed", exc_info=error)
    return ApiError(500, f"{type(error).__name__}; the server's log says more", code="server_error")
