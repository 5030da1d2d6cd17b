"""The relay's copy of a document against the server's own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import converters, types

from mercury_lsp.documents.document import Document
from mercury_lsp.relay import session
from mercury_lsp.relay.session import RESUMED_ID, Mirror, RelayedSession

letters = st.sampled_from("ab \n\r\té😀𝒳\0")
positions = st.fixed_dictionaries({"line": st.integers(0, 5), "character": st.integers(0, 9)})
changes = st.fixed_dictionaries(
    {"text": st.text(letters, max_size=6)},
    optional={"range": st.fixed_dictionaries({"start": positions, "end": positions})},
)
CONVERTER = converters.get_converter()
PARTIAL, WHOLE = types.TextDocumentContentChangePartial, types.TextDocumentContentChangeWholeDocument


def item(text: str, version: int = 1) -> dict[str, Any]:
    return {"uri": "file:///a.py", "languageId": "python", "version": version, "text": text}


@given(st.text(letters, max_size=60), st.lists(changes, max_size=12), st.sampled_from([0, 3, 512]))
def test_it_is_what_the_server_makes_of_the_same_edits(text: str, sent: list[dict[str, Any]], noted: int):
    document, copy = Document("file:///a.py", "text", 1, text), Mirror(item(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "MAX_PENDING_CHANGES", noted)
        for version, each in enumerate(sent):
            document.apply([CONVERTER.structure(each, PARTIAL if "range" in each else WHOLE)], version)
            copy.change(version, [each])
    assert copy.item() == item(document.snapshot().text, len(sent) - 1 if sent else 1)


@pytest.mark.parametrize(
    "broken",
    [
        None,
        {},
        {"text": 1},
        {"text": "x", "range": 1},
        {"text": "x", "range": {"start": {"line": 0, "character": 0}}},
        {"text": "x", "range": {"start": {"line": 0, "character": -1}, "end": {"line": 0, "character": 1}}},
        {"text": "x", "range": {"start": {"line": True, "character": 0}, "end": {"line": 0, "character": 1}}},
    ],
)
def test_changes_one_of_which_is_malformed_are_not_applied_in_part(broken: Any):
    copy = Mirror(item("old"))
    copy.change(2, [{"text": "new"}, broken])
    assert copy.item() == item("old")


def test_a_change_without_a_version_is_not_applied():
    copy = Mirror(item("old"))
    copy.change(None, [{"text": "new"}])
    assert copy.item() == item("old")


def test_a_session_can_be_resumed_whatever_nonsense_was_said_in_it():
    session = RelayedSession()
    session.hear_client({"id": 1, "method": "initialize", "params": {"capabilities": {}}})
    session.hear_daemon({"id": 1, "result": {}})
    session.hear_client({"method": "initialized", "params": {}})
    session.hear_client({"method": "textDocument/didOpen", "params": {"textDocument": item("kept")}})
    nonsense = (
        None,
        3,
        {},
        {"textDocument": None},
        {"textDocument": {"uri": []}},
        {"event": {"added": 1}},
        {"settings": 1},
    )
    documents = (
        f"{kind}Document/did{change}" for kind in ("text", "notebook") for change in ("Open", "Change", "Close")
    )
    workspace = (f"workspace/didChange{what}" for what in ("Configuration", "WorkspaceFolders"))
    for method in ("initialize", *documents, *workspace):
        for params in nonsense:
            session.hear_client({"method": method, "params": params})
            session.hear_client({"id": [], "method": method, "params": params})
    assert session.introduction()["id"] == RESUMED_ID
    assert [each["params"] for each in session.rest() if each["method"] == "textDocument/didOpen"] == [
        {"textDocument": item("kept")}
    ]


def opened(session: RelayedSession, name: str, text: str) -> None:
    session.hear_client({"method": "textDocument/didOpen", "params": {"textDocument": item(text) | {"uri": name}}})


def test_what_the_client_says_while_a_new_daemon_is_introduced_is_told_too():
    session = RelayedSession()
    session.hear_client({"id": 1, "method": "initialize", "params": {"capabilities": {}}})
    session.hear_daemon({"id": 1, "result": {}})
    session.hear_client({"method": "initialized", "params": {}})
    for name in ("changed", "closed"):
        opened(session, name, "old")
    assert list(session.lose()) == []
    assert session.introduction()["id"] == RESUMED_ID
    changed = {"textDocument": {"uri": "changed", "version": 2}, "contentChanges": [{"text": "new"}]}
    session.hear_client({"method": "textDocument/didChange", "params": changed})
    session.hear_client({"method": "textDocument/didClose", "params": {"textDocument": {"uri": "closed"}}})
    opened(session, "opened", "new")
    settings = {"method": "workspace/didChangeConfiguration", "params": {"settings": {}}}
    session.hear_client(settings)
    initialized, configured, *documents = session.rest()
    assert initialized["method"] == "initialized" and configured == settings
    assert {each["params"]["textDocument"]["uri"]: each["params"]["textDocument"]["text"] for each in documents} == {
        "changed": "new",
        "opened": "new",
    }
