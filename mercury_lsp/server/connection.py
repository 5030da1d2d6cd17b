"""JSON-RPC with one client. Malformed messages and calls out of order are refused, and the connection goes on."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from typing import Any, Literal, get_type_hints
from uuid import uuid4

from lsprotocol import types
from lsprotocol.types import ErrorCodes
from mercury_engine.errors import Cancelled, MercuryError

from mercury_lsp.errors import RpcError, SettingsError, UnknownDocument
from mercury_lsp.server.structuring import is_id, structured
from mercury_lsp.transport.framing import Unreadable, framed

logger = logging.getLogger(__name__)

Handler = Callable[..., Any]
"""Takes the connection and `params` of the annotated type; returns the result, or a coroutine that does."""

Message = Mapping[str, Any]


class RpcConnection:
    """Calls the handler of each message, in their order; used on the event loop's thread only."""

    def __init__(self, handlers: Mapping[str, Handler], write: Callable[[bytes], object]):
        self.handlers = dict(handlers)
        """By method."""
        self.stage: Literal["new", "initialized", "shut down"] = "new"
        self._write = write
        self._answering: dict[Any, asyncio.Task[None]] = {}
        """The client's calls under way: requests by id, notifications by their coroutine."""
        self._asked: dict[Any, asyncio.Future[Any]] = {}
        """Our unanswered requests, by id."""

    def receive(self, message: Any) -> None:
        """Handle a decoded message, well-formed or not."""
        if isinstance(message, Unreadable):
            self._fail({"id": None}, RpcError(ErrorCodes.ParseError, message.reason))
        elif not isinstance(message, dict):
            self._fail({"id": None}, RpcError(ErrorCodes.InvalidRequest, "a message is one object; LSP has no batches"))
        elif "method" in message:
            self._call(message)
        elif "id" in message and ("result" in message or "error" in message):
            self._take_answer(message)
        else:
            reason = "a message has a method, a result or an error"
            self._fail({"id": None}, RpcError(ErrorCodes.InvalidRequest, reason))

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> asyncio.Future[Any]:
        """Send a request; the future gets the client's answer as it is, or an RpcError."""
        msg_id, answer = str(uuid4()), asyncio.get_running_loop().create_future()
        self._asked[msg_id] = answer
        answer.add_done_callback(lambda _: self._asked.pop(msg_id, None))  # also one that was given up
        self._send({"id": msg_id, "method": method, "params": params})
        return answer

    def cancel(self, msg_id: Any) -> None:
        """Cancel a request of the client's, if it is still being answered."""
        if is_id(msg_id) and (answering := self._answering.get(msg_id)) is not None:
            answering.cancel()

    def cancel_all(self) -> None:
        """Cancel all requests and notifications under way."""
        for each in self._answering.values():
            each.cancel()

    def _call(self, message: Message) -> None:
        try:
            handler = self._handler(message)
            if handler is None:
                return
            params = message.get("params")
            outcome = handler(self, structured({} if params is None else params, _params_type(handler)))
        except Exception as error:
            self._fail(message, error)
            return
        if asyncio.iscoroutine(outcome):
            key = message.get("id", outcome)
            self._answering[key] = asyncio.ensure_future(self._answer(message, key, outcome))
        else:
            self._succeed(message, outcome)

    async def _answer(self, message: Message, key: Any, answering: Coroutine[Any, Any, Any]) -> None:
        try:
            try:
                result = await answering
            finally:
                del self._answering[key]
            self._succeed(message, result)
        except (Exception, asyncio.CancelledError) as error:
            self._fail(message, error)

    def _handler(self, message: Message) -> Handler | None:
        """The handler of a call that may come now; None for an unknown notification. Raises RpcError."""
        method, is_request, msg_id = message["method"], "id" in message, message.get("id")
        if message.get("jsonrpc") != "2.0":
            raise RpcError(ErrorCodes.InvalidRequest, f"jsonrpc is {message.get('jsonrpc')!r}; it must be '2.0'")
        if not isinstance(method, str):
            raise RpcError(ErrorCodes.InvalidRequest, f"method is {method!r}; it must be a string")
        if is_request and not is_id(msg_id):
            raise RpcError(ErrorCodes.InvalidRequest, f"id is {msg_id!r}; it must be an integer or a string")
        if is_request and msg_id in self._answering:
            raise RpcError(ErrorCodes.InvalidRequest, f"a request with the id {msg_id!r} is still being answered")
        if self.stage == "shut down" and method != types.EXIT:
            raise RpcError(ErrorCodes.InvalidRequest, "the server was shut down; only exit may follow")
        if self.stage == "new" and method not in (types.INITIALIZE, types.EXIT):
            raise RpcError(ErrorCodes.ServerNotInitialized, "send initialize first")
        if self.stage != "new" and method == types.INITIALIZE:
            raise RpcError(ErrorCodes.InvalidRequest, "the server is already initialized")
        if is_request and method not in self.handlers:
            raise RpcError(ErrorCodes.MethodNotFound, f"there is no method {method}")
        return self.handlers.get(method)

    def _take_answer(self, message: Message) -> None:
        """Handle the client's answer to one of our requests."""
        answer = self._asked.pop(message["id"], None) if is_id(message["id"]) else None
        if answer is None or answer.done():
            logger.warning("an answer to no open request: %.200r", message)
        elif (error := message.get("error")) is not None:  # some clients send a null beside the result
            answer.set_exception(RpcError(ErrorCodes.InternalError, str(error)))
        else:
            answer.set_result(message.get("result"))

    def _succeed(self, message: Message, result: Any) -> None:
        if "id" in message:
            self._send({"id": message["id"], "result": result})

    def _fail(self, message: Message, error: BaseException) -> None:
        """Answer a request with the error; log it if there is nobody to answer or it is unexpected."""
        is_cancelled = isinstance(error, asyncio.CancelledError)
        if not isinstance(error, MercuryError | asyncio.CancelledError):
            logger.error("%s failed", message.get("method"), exc_info=error)
        elif message.get("id") is None and not is_cancelled:
            logger.warning("a message was refused: %s", error)
        if "id" in message:
            msg_id = message["id"] if is_id(message["id"]) else None
            code, reason = _refusal(error)
            self._send({"id": msg_id, "error": {"code": code, "message": reason}})

    def _send(self, message: Message) -> None:
        try:
            self._write(framed({"jsonrpc": "2.0", **message}))
        except OSError as error:  # the client is gone
            logger.debug("a message could not be sent: %s", error)


@cache
def _params_type(handler: Handler) -> Any:
    return get_type_hints(handler).get("params", Any)


def _refusal(error: BaseException) -> tuple[int, str]:
    """The code and the message that answer a request."""
    match error:
        case RpcError():
            return error.code, str(error)
        case asyncio.CancelledError():
            return types.LSPErrorCodes.RequestCancelled, "the request was cancelled"
        case Cancelled():
            return types.LSPErrorCodes.RequestCancelled, str(error)
        case UnknownDocument() | SettingsError():
            return ErrorCodes.InvalidParams, str(error)
        case MercuryError():
            return ErrorCodes.InternalError, str(error)
        case _:
            return ErrorCodes.InternalError, f"{type(error).__name__}: {error}"
