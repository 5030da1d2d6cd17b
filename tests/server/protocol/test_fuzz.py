"""Random messages, well-formed or not, against the real process: it survives, answers and keeps documents right."""

import json
import os
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.editor import INLINE, Editor, frame, place, span

COUNT = int(os.environ.get("MERCURY_EXAMPLES", "50"))
"""`make fuzz` asks for more."""

EXAMPLES = settings(max_examples=COUNT, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])

INTERNAL_ERROR = -32603

DECOY = "file:///decoy.py"
"""The document that broken messages are about; its text does not matter."""

BREAK = re.compile(r"\r\n|\r|\n")


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with Editor() as made:
        yield made.initialize({"workspace": {"applyEdit": True}, "textDocument": {"codeAction": {}, "completion": {}}})


# Edits

LETTERS = st.sampled_from("ab \n\r\té😀𝒳\ud83d\ude00\0")
texts = st.text(LETTERS, max_size=6)
documents = st.one_of(
    st.text(LETTERS, max_size=60), st.sampled_from(["one\r\ntwo 😀 𝒳\n\nfour\rfive\n", "a😀b\r\n" * 200])
)
columns = st.one_of(st.integers(0, 8), st.just(2**31 - 1))
positions = st.tuples(st.one_of(st.integers(0, 5), st.just(2**31 - 1)), columns)
edits = st.one_of(
    *[st.tuples(positions, positions, texts)] * 4,
    st.tuples(st.just((0, 0)), st.just((2**31 - 1, 0)), texts),
    st.tuples(st.none(), st.none(), texts),
)
"""Start, end and new text; without a start the whole text is replaced."""


def edited(text: str, start: Any, end: Any, new: str) -> str:
    """The protocol's meaning of an edit, in the simplest form."""
    if start is None:
        return new
    low, high = sorted((offset(text, *start), offset(text, *end)))
    return text[:low] + new + text[high:]


def offset(text: str, line: int, column: int) -> int:
    """Offset of a position in UTF-16 units, clamped to its line."""
    starts = [0, *(found.end() for found in BREAK.finditer(text))]
    ends = [*(found.start() for found in BREAK.finditer(text)), len(text)]
    if line >= len(starts):
        return len(text)
    at = starts[line]
    while at < ends[line] and (column := column - (2 if text[at] > "\uffff" else 1)) >= 0:
        at += 1
    return at


def to_change(start: Any, end: Any, new: str) -> dict[str, Any]:
    return {"text": new} | ({} if start is None else {"range": span(start, end)})


def units(text: str | None) -> bytes:
    """Join the halves of surrogate pairs: as JSON they are the same."""
    assert text is not None
    return text.encode("utf-16-le", "surrogatepass")


# Broken messages

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(2**31 - 1, 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=5),
)
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3))

HERE = place(DECOY, 0, 1) | {"context": {"triggerKind": 2}}
ITEM = {"item": {"command": {"title": "", "command": "mercury.accepted", "arguments": ["x"]}}}
DOC = {"doc": {"uri": DECOY, "position": {"line": 0, "character": 1}, "version": 1}}
VERSIONED = {"uri": DECOY, "version": 1}
REQUESTS: dict[str, Any] = {
    INLINE: HERE
    | {"context": {"triggerKind": 1, "selectedCompletionInfo": {"range": span((0, 0), (0, 1)), "text": "x"}}},
    "textDocument/completion": HERE,
    "textDocument/codeAction": {
        "textDocument": VERSIONED,
        "range": span((0, 1), (0, 1)),
        "context": {"diagnostics": []},
    },
    "workspace/executeCommand": {
        "command": "mercury.fill",
        "arguments": [{"textDocument": VERSIONED, "position": {"line": 0, "character": 1}}],
        "workDoneToken": "t",
    },
    "initialize": {"capabilities": {}, "processId": None, "rootUri": None},
    "mercury/status": {"textDocument": VERSIONED},
    "textDocument/copilotInlineEdit": HERE | {"textDocument": VERSIONED},
    "getCompletions": DOC,
    "getCompletionsCycling": DOC,
    "notifyShown": {"uuid": "x"},
    "notifyAccepted": {"uuid": "x", "acceptedLength": 3},
    "notifyRejected": {"uuids": ["x"]},
    "checkStatus": {},
}
NOTIFICATIONS: dict[str, Any] = {
    "textDocument/didOpen": {"textDocument": {"uri": DECOY, "languageId": "python", "version": 1, "text": "x = 1\n"}},
    "textDocument/didChange": {"textDocument": VERSIONED, "contentChanges": [to_change((0, 0), (0, 1), "y")]},
    "textDocument/didClose": {"textDocument": {"uri": DECOY}},
    "textDocument/didFocus": {"textDocument": {"uri": DECOY}},
    "textDocument/didShowCompletion": ITEM,
    "textDocument/didPartiallyAcceptCompletion": ITEM | {"acceptedLength": 3},
    "workspace/didChangeConfiguration": {"settings": {"mercury": {"eagerness": 7}}},
    "workspace/didChangeWorkspaceFolders": {"event": {"added": [{"uri": "file:///a", "name": "a"}], "removed": []}},
    "workspace/didChangeWatchedFiles": {"changes": [{"uri": DECOY, "type": 2}]},
    "window/workDoneProgress/cancel": {"token": "t"},
    "$/cancelRequest": {"id": 1},
    "$/setTrace": {"value": "off"},
}


def parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a value with each of its keys."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield value, key
        yield from parts(each)


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A message with one of its values left out or replaced."""
    method, params = draw(st.sampled_from([*REQUESTS.items(), *NOTIFICATIONS.items()]))
    message = {"jsonrpc": "2.0", "method": method, "params": deepcopy(params)}
    if method in REQUESTS:
        message["id"] = f"request {uuid4().hex}"
    container, key = draw(st.sampled_from(list(parts(message))))
    if isinstance(container, dict) and draw(st.booleans()):
        del container[key]
    else:
        container[key] = draw(values)
    return message


@st.composite
def noise(draw: st.DrawFn) -> bytes:
    """Bytes that are not a frame, or a frame with a wrong length."""
    body = json.dumps(draw(values)).encode()
    lie = draw(st.integers(-9, 60).filter(bool))
    shapes = [
        draw(st.binary(max_size=40)) + b"\r\n\r\n",
        b"Content-Length: %d\r\n\r\n%b" % (max(0, len(body) + lie), body),
        b"Content-Length: %b\r\n\r\n%b" % (draw(st.binary(max_size=2)), body),
        frame(draw(values)),
        b"Content-Length: 4\r\n\r\n" + draw(st.binary(min_size=4, max_size=4)),
    ]
    return draw(st.sampled_from(shapes))


@EXAMPLES
@given(
    text=documents,
    changes=st.lists(st.lists(edits, max_size=4), min_size=1, max_size=8),
    versions=st.lists(st.integers(-9, 9)),
)
def test_documents_are_what_their_edits_make_them(editor: Editor, text: str, changes: list[Any], versions: list[int]):
    uri = editor.opened(text)
    expected = json.loads(json.dumps(text))
    for number, change in enumerate(changes):
        version = versions[number] if number < len(versions) else number
        editor.change(uri, version, *(to_change(*each) for each in change))
        for start, end, new in change:
            expected = edited(expected, start, end, json.loads(json.dumps(new)))
    assert units(editor.text(uri)) == units(expected)
    editor.items(uri, len(changes), 3)
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


@EXAMPLES
@given(st.lists(st.one_of(broken(), noise()), max_size=20))
def test_random_messages_leave_documents_right_and_requests_answered(editor: Editor, sent: list[Any]):
    uri = editor.opened("x = ")
    expected = "x = "
    for number, message in enumerate(sent):
        editor.write(message if isinstance(message, bytes) else frame(message))
        editor.change(uri, number, to_change((0, 0), (0, 0), str(number)))
        expected = str(number) + expected
    assert editor.text(uri) == expected
    assert len(editor.items(uri, 0, len(expected))) == 1
    for message in sent:
        if isinstance(message, dict) and "method" in message and str(message.get("id")).startswith("request "):
            reply = editor.reply(message["id"])
            assert ("result" in reply) != ("error" in reply)
            assert reply.get("error", {}).get("code") != INTERNAL_ERROR
            assert not editor.replies[message["id"]]
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
