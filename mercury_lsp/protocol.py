"""What pygls leaves open: order of the life cycle, broken requests, UTF-16 for all, our errors' codes."""

import logging
from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import cattrs
from lsprotocol import types
from mercury_engine.errors import Cancelled, MercuryError
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcRequestCancelled,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, lsp_method

from mercury_lsp.errors import UnknownDocument

logger = logging.getLogger(__name__)

OWN_DOCUMENTS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
)


@dataclass(frozen=True, slots=True)
class _Malformed:
    """A request whose parameters do not have the protocol's shape."""

    id: int | str
    method: str
    error: JsonRpcException
    jsonrpc: str = LanguageServerProtocol.VERSION


class MercuryProtocol(LanguageServerProtocol):
    """The language server's side of the connection."""

    @property
    def exit_code(self) -> int:
        """0 after shutdown, else 1, as the protocol asks."""
        return 0 if self._shutdown else 1

    def _register_builtin_features(self) -> None:
        # pygls's own handlers rebuild the whole text of its workspace on every keystroke.
        super()._register_builtin_features()
        for method in OWN_DOCUMENTS:
            del self.fm.builtin_features[method]

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Like pygls's, but a request that cannot be read is kept, so that it is answered."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                return _Malformed(data["id"], data["method"], _explained(error))
            raise

    def handle_message(self, message: Any) -> None:
        """Answer what may not be asked now, drop what is not JSON-RPC, hand on the rest."""
        if not hasattr(message, "jsonrpc"):
            logger.warning("not a JSON-RPC message: %.200r", message)
            return
        refusal = self._refusal(message)
        if refusal is None:
            super().handle_message(message)
        elif hasattr(message, "id"):
            self._send_response(message.id, error=refusal.to_response_error())

    def _refusal(self, message: Any) -> JsonRpcException | None:
        method = getattr(message, "method", None)
        if method in (None, types.EXIT):
            return None
        if self._shutdown:
            return JsonRpcInvalidRequest("the server was shut down; only exit may follow")
        initialized = self._workspace is not None
        if method == types.INITIALIZE:
            return JsonRpcInvalidRequest("the server is already initialized") if initialized else None
        if not initialized:
            return JsonRpcServerNotInitialized("send initialize first")
        return message.error if isinstance(message, _Malformed) else None

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """UTF-16 whatever the client lists first: several clients assume it without looking."""
        if params.capabilities.general is not None:
            params.capabilities.general.position_encodings = [types.PositionEncodingKind.Utf16]
        return (yield from super().lsp_initialize(params))

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> Generator[Any, Any, None]:
        """Leave the main loop; pygls would call `sys.exit` here and swallow the exit code later."""
        assert self._server._stop_event is not None
        self._server._stop_event.set()
        yield from ()

    def _send_handler_result(self, future: "Future[Any]", *, msg_id: int | str) -> None:
        """Our own errors are answers, not faults; anything else is logged, and told without its traceback."""
        error = None if future.cancelled() else future.exception()
        if error is None:
            super()._send_handler_result(future, msg_id=msg_id)
            return
        self._request_futures.pop(msg_id, None)
        if not isinstance(error, JsonRpcException | MercuryError):
            logger.error("request %s failed", msg_id, exc_info=error)
        self._send_response(msg_id, error=_answer(error).to_response_error())

    def _check_handler_result(self, future: "Future[Any]") -> None:
        error = None if future.cancelled() else future.exception()
        if isinstance(error, MercuryError):
            logger.warning("%s", error)
        else:
            super()._check_handler_result(future)


def _answer(error: BaseException) -> JsonRpcException:
    match error:
        case JsonRpcException():
            return error
        case Cancelled():
            return JsonRpcRequestCancelled(str(error))
        case UnknownDocument():
            return JsonRpcInvalidParams(str(error))
        case _:
            return JsonRpcInternalError(f"{type(error).__name__}: {error}")


def _explained(error: JsonRpcException) -> JsonRpcException:
    """The same error, naming the fields that are wrong."""
    cause = error.__cause__
    if not isinstance(cause, cattrs.BaseValidationError):
        return error
    return JsonRpcInvalidParams("; ".join(cattrs.transform_error(cause)))
