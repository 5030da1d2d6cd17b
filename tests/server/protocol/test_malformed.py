"""Every kind of message that a client must not send gets an error or a line in the log, and the server goes on."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.support.editor import INLINE, Editor, Refused, place, span

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
TEXT = "x = 1\ny = 😀\r\nz = "


@pytest.fixture(scope="module")
def shared() -> Iterator[Editor]:
    with Editor() as made:
        yield made.initialize()


@pytest.fixture
def editor(shared: Editor) -> Iterator[Editor]:
    """After every test the server still answers, and has shown its user nothing."""
    yield shared.quiet()
    uri = shared.opened(TEXT)
    assert shared.text(uri) == TEXT
    assert len(shared.items(uri, 2, 4)) == 1
    assert shared.received("window/showMessage") == []


def refusal(editor: Editor, msg_id: Any = None) -> int:
    """The error code of the answer to a message."""
    reply = editor.reply(msg_id)
    assert reply["error"]["message"] and "result" not in reply
    return reply["error"]["code"]


# JSON-RPC


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: 4\r\n\r\n{'a'",
        b"Content-Length: 2\r\n\r\n\xff\xff",
        b"Content-Length: nine\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Type: application/json\r\n\r\n",
        b"Content-Length: 0\r\n\r\n",
        b"Content-Length: 100000\r\n\r\n" + b"[" * 100000,
    ],
    ids=lambda data: repr(data[:40]),
)
def test_unreadable_input_is_a_parse_error(editor: Editor, data: bytes):
    editor.write(data)
    assert refusal(editor) == PARSE_ERROR


@pytest.mark.parametrize("lie", [-7, 9, 60])
def test_a_wrong_length_costs_no_later_message(editor: Editor, lie: int):
    body = json.dumps({"jsonrpc": "2.0", "id": "lost", "method": INLINE}).encode()
    editor.write(b"Content-Length: %d\r\n\r\n%b" % (len(body) + lie, body))
    assert editor.request("mercury/status", {})["kind"] == "Normal"
    assert refusal(editor) == PARSE_ERROR


@pytest.mark.parametrize(
    "message", [[], [{"jsonrpc": "2.0", "id": 1, "method": "x"}], 3, "x", None, True, {}], ids=repr
)
def test_a_message_that_is_not_an_object_is_an_invalid_request(editor: Editor, message: Any):
    editor.send(message)
    assert refusal(editor) == INVALID_REQUEST


@pytest.mark.parametrize("msg_id", [None, 1.5, True, [], {"a": 1}], ids=repr)
def test_an_invalid_id_is_refused_with_a_null_id(editor: Editor, msg_id: Any):
    editor.send({"jsonrpc": "2.0", "id": msg_id, "method": "mercury/status"})
    assert refusal(editor) == INVALID_REQUEST


@pytest.mark.parametrize("levels", [200, 600, *range(965, 1000, 5), 100_000])
def test_a_message_nested_too_deep_is_refused(editor: Editor, levels: int):
    nested = b"[" * levels + b"]" * levels
    for body in (
        b'{"jsonrpc":"2.0","id":%b,"method":"x"}' % nested,
        b'{"jsonrpc":"2.0","method":"x","params":%b}' % nested,
    ):
        editor.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert refusal(editor) == PARSE_ERROR


def test_an_id_in_use_is_refused_and_the_first_request_is_answered(editor: Editor):
    uri = editor.opened('# [[{"ms": 400}]]\nx = ')
    request = {"jsonrpc": "2.0", "id": "twice", "method": INLINE}
    params = place(uri, 1, 4) | {"context": {"triggerKind": 2}}
    editor.send(request | {"params": params})
    editor.send(request | {"params": params})
    assert refusal(editor, "twice") == INVALID_REQUEST
    assert len(editor.result("twice")["items"]) == 1
    editor.send(request | {"params": params})
    assert len(editor.result("twice")["items"]) == 1  # free again


@pytest.mark.parametrize(
    "answer",
    [
        {"id": 1, "result": None},
        {"id": "never asked", "result": {}},
        {"id": None, "error": {"code": -32700, "message": "?"}},
        {"id": [], "result": 1},
        {"id": 1, "error": "?"},
        {"id": 1},
    ],
    ids=repr,
)
def test_answers_that_nobody_waits_for_are_ignored(editor: Editor, answer: dict[str, Any]):
    editor.send({"jsonrpc": "2.0"} | answer)
    editor.receive_all()


def initialized(answer: dict[str, Any]) -> Editor:
    """A client that sends this as the answer to the request for its settings."""
    editor, sent = Editor({"workspace/configuration": lambda _: NotImplemented}), "workspace/configuration"
    editor.initialize({"workspace": {"configuration": True}}).wait_for(sent)
    editor.send({"jsonrpc": "2.0", "id": dict(editor.questions)[sent]} | answer)
    return editor


@pytest.mark.parametrize(
    "answer", [{"result": {"nonsense": 1}}, {"result": 3}, {"error": "no"}, {"error": {}}], ids=repr
)
def test_a_malformed_answer_is_a_refusal(answer: dict[str, Any]):
    with initialized(answer) as editor:
        assert len(editor.items(editor.opened(TEXT), 2, 4)) == 1


def test_an_answer_with_a_null_error_is_an_answer():
    with initialized({"result": [{"enabled": False}], "error": None}) as editor:
        assert editor.items(editor.opened(TEXT), 2, 4) == []


def test_requests_of_unknown_methods_are_refused_and_notifications_ignored(editor: Editor):
    for method in ("mercury/nothing", "$/nothing", "", "textDocument/hover", "x" * 5000, "\ud800"):
        editor.notify(method, {"a": 1})
        with pytest.raises(Refused) as refused:
            editor.request(method, {"a": [1, {}]})
        assert refused.value.code == NO_METHOD


# LSP


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        [],
        3,
        "x",
        {"textDocument": None},
        {"textDocument": {}, "position": {}, "context": {}},
        place("u", -1, 0),
        place("u", 0, 2**31),
        place("u", 0, 10**300),
        place("u", 1.5, 0),
        place("u", "0", 0),
        place("u", True, 0),
        place("u", None, 0),
        place(None, 0, 0),
        place({"a": 1}, 0, 0),
        place("u", 0, 0) | {"context": {"triggerKind": "2"}},
        place("u", 0, 0) | {"context": {"triggerKind": 2, "selectedCompletionInfo": {"text": 3}}},
        place("u", 0, 0) | {"context": []},
    ],
    ids=lambda params: json.dumps(params)[:60],
)
def test_parameters_of_the_wrong_shape_are_refused(editor: Editor, params: Any):
    if isinstance(params, dict):
        params = {"context": {"triggerKind": 2}} | params
    with pytest.raises(Refused) as refused:
        editor.request(INLINE, params)
    assert refused.value.code == INVALID_PARAMS


def test_the_refusal_names_what_is_wrong(editor: Editor):
    with pytest.raises(Refused, match="position"):
        editor.request(INLINE, {"textDocument": {"uri": "u"}, "context": {"triggerKind": 2}})


@pytest.mark.parametrize(
    "document",
    [
        {"text": None},
        {"text": 5},
        {"version": "1"},
        {"version": 2**40},
        {"version": None},
        {"uri": None},
        {"languageId": 3},
    ],
    ids=repr,
)
def test_a_document_that_is_not_well_formed_is_not_opened(editor: Editor, document: dict[str, Any]):
    uri = f"file:///{uuid4().hex}.py"
    whole = {"uri": uri, "languageId": "python", "version": 1, "text": "x"} | document
    editor.notify("textDocument/didOpen", {"textDocument": whole})
    assert editor.text(uri) is None


@pytest.mark.parametrize(
    "changes",
    [
        None,
        {},
        [3],
        [{}],
        [{"text": None}],
        [{"text": "a"}, {"text": 3}],
        [{"range": span((0, 0), (0, 1))}],
        [{"range": span((-1, 0), (0, 0)), "text": "a"}],
        [{"range": {"start": {"line": 0}}, "text": "a"}],
        [{"range": [], "text": "a"}],
        [{"range": None, "text": "a"}],
    ],
    ids=repr,
)
def test_a_change_that_is_not_well_formed_is_not_applied_in_part(editor: Editor, changes: Any):
    uri = editor.opened(TEXT)
    params = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": changes}
    editor.notify("textDocument/didChange", params)
    assert editor.text(uri) == TEXT


@pytest.mark.parametrize(
    ("where", "text", "expected"),
    [
        (span((9, 0), (9, 9)), "!", TEXT + "!"),
        (span((2, 4), (2147483647, 2147483647)), "!", TEXT + "!"),
        (span((0, 99), (1, 0)), "!", "x = 1!y = 😀\r\nz = "),
        (span((1, 5), (1, 6)), "!", "x = 1\ny = !\r\nz = "),
        (span((1, 0), (0, 0)), "!", "!y = 😀\r\nz = "),
        (span((1, 99), (1, 99)), "!", "x = 1\ny = 😀!\r\nz = "),
    ],
    ids=["below the end", "beyond the end", "behind a line's end", "inside a pair", "backwards", "behind a CR LF line"],
)
def test_edits_that_reach_beyond_are_clamped(editor: Editor, where: dict[str, Any], text: str, expected: str):
    uri = editor.opened(TEXT)
    editor.change(uri, 2, {"range": where, "text": text})
    assert editor.text(uri) == expected


def test_a_document_may_be_opened_again_and_closed_twice(editor: Editor):
    uri = editor.opened(TEXT)
    editor.open(uri, "new", version=1)
    assert editor.text(uri) == "new"
    for _ in range(2):
        editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    editor.change(uri, 2, {"text": "x"})
    assert editor.text(uri) is None


# Initialize


def test_a_capability_that_cannot_be_read_is_not_declared_and_the_others_are():
    general = {"staleRequestSupport": {"cancel": True}, "positionEncodings": ["utf-8"]}
    document = {"completion": {"completionItem": {"tagSupport": {}}}, "inlineCompletion": {}, "codeAction": {}}
    with Editor() as editor:
        editor.initialize({"general": general, "textDocument": document, "workspace": {"applyEdit": True}})
        assert {"inlineCompletionProvider", "codeActionProvider"} <= set(editor.capabilities)
        assert len(editor.items(editor.opened(TEXT), 2, 4)) == 1
