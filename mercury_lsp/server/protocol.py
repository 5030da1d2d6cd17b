"""What pygls lacks: malformed messages, the order of the life cycle, UTF-16 for all, error codes."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar
from uuid import uuid4

from cattrs import Converter
from lsprotocol import types
from mercury_engine.errors import Cancelled, MercuryError
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcRequestCancelled,
    JsonRpcServerNotInitialized,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from mercury_lsp.documents.uris import path_of
from mercury_lsp.errors import SettingsError, UnknownDocument
from mercury_lsp.server.capabilities import readable_params
from mercury_lsp.server.structuring import MAX_EXPLANATION_CHARS, explained, is_id
from mercury_lsp.transport.framing import Unreadable

logger = logging.getLogger(__name__)

T = TypeVar("T")
Id = int | str
MessageHandler = Callable[[Any], Any]
MessageCallback = Callable[[Future[Any]], None]

REPLACED_FEATURES = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
    types.WORKSPACE_EXECUTE_COMMAND,
)
"""Built-in handlers of pygls that we replace: they rebuild the whole text on every keystroke, fail on folders with
malformed uris, and run commands that cannot be cancelled."""


OWN_CAPABILITIES = {"mercury": {"diagnostics": True, "highlights": True}}
"""The server accepts `mercury/didChangeDiagnostics` and `mercury/didChangeHighlights`."""


class MercuryProtocol(LanguageServerProtocol):
    """The language server's side of the connection.

    Four private methods of pygls are overridden (docs/decisions/size.md says why), so its version is capped.
    """

    def __init__(self, server: LanguageServer, converter: Converter):
        super().__init__(server, converter)
        for method in REPLACED_FEATURES:
            del self.fm.builtin_features[method]
        self.params_types: Mapping[str, Any] = {}
        """By method, the type of parameters that LSP does not define, or defines differently."""
        self._asked: dict[Id, tuple[str, Future[Any]]] = {}
        """Our unanswered requests to the client."""

    @property
    def exit_code(self) -> int:
        """0 after shutdown, otherwise 1, as the protocol requires."""
        return 0 if self._shutdown else 1

    def receive(self, message: Any) -> None:
        """Handle a decoded message, well-formed or not; never raises."""
        try:
            if isinstance(message, Unreadable):
                self._refuse(None, JsonRpcParseError(message.reason))
            elif not isinstance(message, dict):
                self._refuse(None, JsonRpcInvalidRequest("a message is one object; LSP has no batches"))
            elif "method" in message:
                contextvars.copy_context().run(self._take_call, message)
            elif "id" in message and ("result" in message or "error" in message):
                self._take_answer(message)
            else:
                self._refuse(None, JsonRpcInvalidRequest("a message has a method, a result or an error"))
        except Exception:
            logger.exception("a message could not be handled: %.200r", message)

    def _take_call(self, message: dict[str, Any]) -> None:
        msg_id = message.get("id")
        try:
            method = _method(message)
            self._check_life_cycle(method)
            if "id" in message and msg_id in self._request_futures:
                raise JsonRpcInvalidRequest(f"a request with the id {msg_id!r} is still being answered")
            params = self._params(method, message.get("params"))
        except JsonRpcException as error:
            if "id" in message:
                self._refuse(msg_id if is_id(msg_id) else None, error)
            else:
                logger.warning("ignored a notification: %s", error)
            return
        if msg_id is not None:
            self._take_request(msg_id, method, params)
        elif method == types.CANCEL_REQUEST:
            if is_id(params.id) and (future := self._request_futures.get(params.id)) is not None:
                future.cancel()
        else:
            self._take_notification(method, params)

    def _take_answer(self, message: dict[str, Any]) -> None:
        """Handle the client's answer to one of our requests."""
        msg_id = message["id"]
        method, future = self._asked.pop(msg_id, ("", None)) if is_id(msg_id) else ("", None)
        if future is None or future.done():
            logger.warning("an answer to no open request: %.200r", message)
        elif "error" in message:
            future.set_exception(_client_error(message["error"]))
        else:
            try:
                answer_type = self.get_result_type(method)
                structured = self._converter.structure(message, answer_type) if answer_type else message
                future.set_result(getattr(structured, "result", None))
            except Exception as error:
                future.set_exception(explained(error))

    def _check_life_cycle(self, method: str) -> None:
        """Raise JsonRpcException if the method is not allowed at this point of the life cycle."""
        if method == types.EXIT:
            return
        if self._shutdown:
            raise JsonRpcInvalidRequest("the server was shut down; only exit may follow")
        initialized = self._workspace is not None
        if method == types.INITIALIZE and initialized:
            raise JsonRpcInvalidRequest("the server is already initialized")
        if method != types.INITIALIZE and not initialized:
            raise JsonRpcServerNotInitialized("send initialize first")

    def _params(self, method: str, raw: Any) -> Any:
        """Typed parameters; unchanged for a method without a handler. Raises JsonRpcInvalidParams."""
        if not (method in self.fm.features or method in self.fm.builtin_features or method == types.CANCEL_REQUEST):
            return raw
        if method == types.INITIALIZE:
            raw = readable_params(raw, self._can_read_capabilities)
        entry = types.METHOD_TO_TYPES.get(method)
        params_type: Any = self.params_types.get(method) or (entry[2] if entry else None)
        return raw if params_type is None else self.structure({} if raw is None else raw, params_type)

    def _can_read_capabilities(self, raw: Any) -> bool:
        try:
            self.structure(raw, types.ClientCapabilities)
        except JsonRpcInvalidParams:
            return False
        return True

    def structure(self, raw: Any, kind: type[T]) -> T:
        """JSON as an object of the given type. Raises JsonRpcInvalidParams, naming the wrong fields."""
        try:
            return self._converter.structure(raw, kind)
        except Exception as error:
            raise explained(error) from error

    def _refuse(self, msg_id: Id | None, error: JsonRpcException) -> None:
        logger.warning("refused a message: %s", error)
        self._send_response(msg_id, error=error.to_response_error())

    def send_request(
        self,
        method: str,
        params: Any = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: Id | None = None,
    ) -> "Future[Any]":
        """Send a request and keep it apart from the client's, whose ids the client chooses."""
        msg_id = msg_id if msg_id is not None else str(uuid4())
        future = super().send_request(method, params, callback, msg_id)
        self._request_futures.pop(msg_id, None)
        self._result_types.pop(msg_id, None)
        self._asked[msg_id] = method, future
        return future

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Choose UTF-16 whatever the client prefers: several clients assume it."""
        if params.capabilities.general is not None:
            params.capabilities.general.position_encodings = [types.PositionEncodingKind.Utf16]
        if params.root_uri is not None and path_of(params.root_uri) is None:
            params.root_uri = None  # pygls would fail on a malformed uri
        result = yield from super().lsp_initialize(params)
        result.capabilities.experimental = OWN_CAPABILITIES
        return result

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *_: Any) -> Generator[Any, Any, None]:
        """Cancel what is under way; pygls would iterate over the futures while cancelling removes them."""
        self._request_futures.popitem()  # the newest belongs to shutdown, to which Kate gives no id
        self.cancel_all()
        self._shutdown = True
        yield from ()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> Generator[Any, Any, None]:
        """Leave the main loop; pygls would call `sys.exit` here and lose the exit code later."""
        self._server.stop()  # type: ignore[attr-defined]
        yield from ()

    def cancel_all(self) -> None:
        """Cancel all requests and notifications under way."""
        for future in [*self._request_futures.values()]:
            future.cancel()

    def _take_notification(self, method: str, params: Any) -> None:
        """Call plain functions directly: pygls would create an id and a future for each."""
        handler = None if method in self.fm.builtin_features else self.fm.features.get(method)
        if handler is None or asyncio.iscoroutinefunction(handler):
            self._handle_notification(method, params)
            return
        try:
            handler(params)
        except Exception as error:
            _log_failure(error)

    def _take_request(self, msg_id: Id, method: str, params: Any) -> None:
        """Let coroutines answer themselves: pygls would answer from a callback, one turn of the loop later."""
        handler = None if method in self.fm.builtin_features else self.fm.features.get(method)
        if handler is None or not asyncio.iscoroutinefunction(handler):
            self._handle_request(msg_id, method, params)
            return

        async def answered() -> None:
            result = await handler(params)
            self._request_futures.pop(msg_id, None)
            self._send_response(msg_id, result)

        def ended(task: Any) -> None:
            if self._request_futures.get(msg_id) is task:  # otherwise the client has reused the id
                del self._request_futures[msg_id]
            if task.cancelled() or task.exception() is not None:
                self._send_handler_result(task, msg_id=msg_id)

        task: Any = asyncio.ensure_future(answered())
        self._request_futures[msg_id] = task
        task.add_done_callback(ended)

    def _execute_handler(
        self,
        msg_id: Id,
        handler: MessageHandler,
        callback: MessageCallback,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        # pygls would keep the futures of notifications for ever.
        def done(future: "Future[Any]") -> None:
            self._request_futures.pop(msg_id, None)
            callback(future)

        super()._execute_handler(msg_id, handler, done, args, kwargs)

    def _send_handler_result(self, future: "Future[Any]", *, msg_id: Id) -> None:
        """Answer with our own errors as they are; log others, and answer without their traceback."""
        error = None if future.cancelled() else future.exception()
        if error is None:
            super()._send_handler_result(future, msg_id=msg_id)
            return
        if not isinstance(error, JsonRpcException | MercuryError):
            logger.error("request %s failed", msg_id, exc_info=error)
        self._send_response(msg_id, error=_answer(error).to_response_error())

    def _check_handler_result(self, future: "Future[Any]") -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            _log_failure(error)

    def _send_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        # Plain JSON: pygls's objects leave out a null id, and make the converter walk the whole result.
        answer = {"result": result} if error is None else {"error": error}
        self._send_data({"jsonrpc": self.VERSION, "id": msg_id} | answer)


def _method(message: Mapping[str, Any]) -> str:
    """The method of a well-formed request or notification. Raises JsonRpcInvalidRequest."""
    method = message["method"]
    if message.get("jsonrpc") != LanguageServerProtocol.VERSION:
        raise JsonRpcInvalidRequest(f"jsonrpc is {message.get('jsonrpc')!r}; it must be '2.0'"[:MAX_EXPLANATION_CHARS])
    if not isinstance(method, str):
        raise JsonRpcInvalidRequest(f"method is {method!r}; it must be a string"[:MAX_EXPLANATION_CHARS])
    if "id" in message and not is_id(message["id"]):
        raise JsonRpcInvalidRequest(
            f"id is {message['id']!r}; it must be an integer or a string"[:MAX_EXPLANATION_CHARS]
        )
    return method


def _log_failure(error: BaseException) -> None:
    """Log why a notification failed; there is nobody to answer."""
    if isinstance(error, JsonRpcException | MercuryError):
        logger.warning("%s", error)
    else:
        logger.error("a notification failed", exc_info=error)


def _answer(error: BaseException) -> JsonRpcException:
    match error:
        case JsonRpcException():
            return error
        case Cancelled():
            return JsonRpcRequestCancelled(str(error))
        case UnknownDocument() | SettingsError():
            return JsonRpcInvalidParams(str(error))
        case _:
            return JsonRpcInternalError(f"{type(error).__name__}: {error}")


def _client_error(error: Any) -> JsonRpcException:
    """The error of a client's answer, in any shape."""
    code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
    return JsonRpcException(str(message), code if isinstance(code, int) else JsonRpcInternalError.CODE)
