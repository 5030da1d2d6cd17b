"""The server over stdio, used as editors use it; the documents script its engine."""

import asyncio
import json
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient

from tests.support.editor import COMMAND, PATIENCE, Editor, Refused, frame, place, script, span

URI = "file:///work/space/sample.py"
HERE = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
INVALID_PARAMS, CANCELLED = -32602, -32800


def initialize_params(options: Any = None, **client: Any) -> types.InitializeParams:
    general = types.GeneralClientCapabilities(position_encodings=["utf-8", "utf-16", "utf-32"])
    return types.InitializeParams(
        capabilities=types.ClientCapabilities(general=general, **client),
        root_uri="file:///work/space",
        initialization_options=options,
    )


@pytest_lsp.fixture(config=ClientServerConfig(server_command=COMMAND))
async def client(lsp_client: LanguageClient):
    lsp_client.result = await lsp_client.initialize_session(initialize_params())  # type: ignore[attr-defined]
    yield
    await lsp_client.shutdown_session()


@pytest_lsp.fixture(config=ClientServerConfig(server_command=COMMAND))
async def bare(lsp_client: LanguageClient):
    """Started, not initialized."""
    yield
    if lsp_client._server.returncode is None:
        if lsp_client.capabilities is None:
            lsp_client.exit(None)
        await lsp_client.shutdown_session()


def open_document(client: LanguageClient, text: str, uri: str = URI, language: str = "python") -> None:
    item = types.TextDocumentItem(uri, language, 1, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))


def change(client: LanguageClient, version: int, start: tuple, end: tuple, text: str) -> None:
    span = types.Range(types.Position(*start), types.Position(*end))
    send_change(client, version, types.TextDocumentContentChangePartial(span, text))


def send_change(client: LanguageClient, version: int, change: types.TextDocumentContentChangeEvent) -> None:
    document = types.VersionedTextDocumentIdentifier(version, URI)
    client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))


def ask(client: LanguageClient, line: int, column: int, uri: str = URI, automatic: bool = True, selected=None):
    kind = types.InlineCompletionTriggerKind
    context = types.InlineCompletionContext(kind.Automatic if automatic else kind.Invoked, selected)
    params = types.InlineCompletionParams(context, types.TextDocumentIdentifier(uri), types.Position(line, column))
    return asyncio.ensure_future(client.text_document_inline_completion_async(params))


def texts(result: Any) -> list[str]:
    return [item.insert_text for item in result.items]


async def code_of(answer: Any) -> int:
    with pytest.raises(JsonRpcException) as caught:
        await answer
    return caught.value.code


async def eventually(condition) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


async def raw_items(client: LanguageClient, line: int, column: int) -> list[dict[str, Any]]:
    """The items as they are on the wire."""
    seen: list[dict[str, Any]] = []
    structure = client.protocol.structure_message

    def listen(data: dict[str, Any]) -> Any:
        if "insertText" in data:
            seen.append(json.loads(json.dumps(data)))
        return structure(data)

    client.protocol.structure_message = listen
    await ask(client, line, column)
    return seen


# What the server says of itself


async def test_utf_16_is_announced_whatever_the_client_lists_first(client: LanguageClient):
    assert client.result.capabilities.position_encoding == types.PositionEncodingKind.Utf16  # type: ignore[attr-defined]


async def test_capabilities_are_incremental_sync_and_inline_completion(client: LanguageClient):
    capabilities = client.result.capabilities  # type: ignore[attr-defined]
    assert capabilities.text_document_sync.open_close
    assert capabilities.text_document_sync.change == types.TextDocumentSyncKind.Incremental
    assert capabilities.inline_completion_provider


async def test_every_command_of_an_item_is_announced(client: LanguageClient):
    open_document(client, "x = ")
    result = await ask(client, 0, 4)
    announced = client.result.capabilities.execute_command_provider.commands  # type: ignore[attr-defined]
    assert result.items[0].command.command in announced


# What an item looks like


async def test_an_item_has_text_a_one_line_range_at_the_cursor_and_no_nulls(client: LanguageClient):
    open_document(client, "x = ")
    [item] = await raw_items(client, 0, 4)
    here = {"line": 0, "character": 4}
    assert item["insertText"] == "suggested"
    assert item["range"] == {"start": here, "end": here}
    assert item["command"]["arguments"] == [item["command"]["arguments"][0]]
    assert "null" not in json.dumps(item)


@pytest.mark.parametrize(
    "options", [None, {"editorInfo": {"name": "Neovim", "version": "0.12.0"}}], ids=["", "dialect"]
)
def test_however_it_is_asked_for_an_item_has_a_one_line_range_and_no_answer_has_a_null(options: Any):
    with Editor() as editor:
        editor.initialize({"experimental": {"mercury": {"confidence": True}}}, options)
        uri = editor.opened(script(text="a = 1\n    b = 2") + "def f():\n    ")
        selected = {"selectedCompletionInfo": {"range": span((2, 4), (2, 4)), "text": "a"}}
        items = [item for kind in (2, 1) for item in editor.items(uri, 2, 4, kind)]
        items += editor.items(uri, 2, 4, context={"triggerKind": 2} | selected)
        editor.change(uri, 2, {"range": span((2, 4), (2, 4)), "text": "a ="})
        items += editor.items(uri, 2, 7)
        here = place(uri, 2, 7)
        edits = editor.request("textDocument/copilotInlineEdit", here)["edits"]
        older = editor.request("getCompletions", {"doc": {"uri": uri, "position": here["position"]}})["completions"]
        assert (len(items), len(edits), len(older)) == (5, 1, 1)
        assert all(each["range"]["start"]["line"] == each["range"]["end"]["line"] == 2 for each in items + older)
        assert "null" not in json.dumps([items, edits, older])


async def test_no_item_is_a_snippet(client: LanguageClient):
    open_document(client, script(text="${1:x} $0 \\}") + "x = ")
    [item] = await raw_items(client, 1, 4)
    assert item["insertText"] == "${1:x} $0 \\}"


async def test_nothing_to_show_is_an_empty_list_and_not_null(client: LanguageClient):
    open_document(client, script(text="") + "x = ")
    result = await ask(client, 1, 4)
    assert result is not None and texts(result) == []


async def test_an_unsure_fill_is_shown_only_when_asked_for(client: LanguageClient):
    open_document(client, script(confidence=0.2) + "x = ")
    assert texts(await ask(client, 1, 4)) == []
    assert texts(await ask(client, 1, 4, automatic=False)) == ["suggested"]


async def test_an_accepted_suggestion_is_noted(client: LanguageClient):
    open_document(client, "x = ")
    command = (await ask(client, 0, 4)).items[0].command
    for arguments in (command.arguments, [*command.arguments, 3]):
        params = types.ExecuteCommandParams(command.command, arguments)
        assert await client.workspace_execute_command_async(params) is None


async def test_with_a_selected_popup_item_the_suggestion_extends_it_or_is_left_out(client: LanguageClient):
    open_document(client, script(text="nt(x)") + "pri")
    span = types.Range(types.Position(1, 0), types.Position(1, 3))
    result = await ask(client, 1, 3, selected=types.SelectedCompletionInfo(span, "print"))
    assert texts(result) == ["print(x)"] and result.items[0].range == span
    assert texts(await ask(client, 1, 3, selected=types.SelectedCompletionInfo(span, "private"))) == []


# Which text it is about


async def test_an_answer_is_for_the_version_asked_about(client: LanguageClient):
    open_document(client, "y = ")
    change(client, 2, (0, 0), (0, 4), script(text="new") + "value = ")
    result = await ask(client, 1, 8)
    assert texts(result) == ["new"]
    assert result.items[0].range.start == types.Position(1, 8)


async def test_what_is_typed_meanwhile_does_not_move_the_answer(client: LanguageClient):
    open_document(client, script(ms=300, text="value") + "x = ")
    asked = ask(client, 1, 4)
    await asyncio.sleep(0)
    change(client, 2, (1, 4), (1, 4), "va")
    here = types.Position(1, 4)
    [item] = (await asked).items
    assert (item.insert_text, item.range) == ("value", types.Range(here, here))


async def test_astral_characters_count_as_two(client: LanguageClient):
    open_document(client, 's = "😀"; y = ')
    change(client, 2, (0, 8), (0, 8), " z")
    result = await ask(client, 0, 99)
    assert result.items[0].range.start == types.Position(0, 16)


async def test_an_unopened_document_is_an_error_that_says_so(client: LanguageClient):
    with pytest.raises(JsonRpcException, match="not open") as caught:
        await ask(client, 0, 0, uri="file:///nowhere.py")
    assert caught.value.code == INVALID_PARAMS


async def test_a_closed_document_is_not_open(client: LanguageClient):
    open_document(client, "x = ")
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(URI)))
    assert await code_of(ask(client, 0, 4)) == INVALID_PARAMS


# Newest wins


async def test_a_newer_request_cancels_the_older_one(client: LanguageClient):
    open_document(client, script(ms=60_000) + "x = ")
    older = ask(client, 1, 4)
    await asyncio.sleep(0)
    change(client, 2, (0, 0), (1, 0), script(text="newer"))
    newer = ask(client, 1, 4)
    assert await code_of(older) == CANCELLED
    assert texts(await newer) == ["newer"]


async def test_an_automatic_request_does_not_cancel_an_invoked_one(client: LanguageClient):
    open_document(client, script(ms=300, text="a = 1\n    b = 2") + "def f():\n    ")
    by_key, by_itself = ask(client, 2, 4, automatic=False), ask(client, 2, 4)
    assert texts(await by_key) == ["a = 1\n    b = 2", "a = 1"]
    assert texts(await by_itself) == ["a = 1\n    b = 2"]


async def test_the_client_can_cancel(client: LanguageClient):
    open_document(client, script(ms=60_000) + "x = ")
    params = types.InlineCompletionParams(
        types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
        types.TextDocumentIdentifier(URI),
        types.Position(1, 4),
    )
    method = types.TEXT_DOCUMENT_INLINE_COMPLETION
    answer = asyncio.ensure_future(client.protocol.send_request_async(method, params, msg_id="mine"))
    await asyncio.sleep(0)
    client.cancel_request(types.CancelParams("mine"))
    assert await code_of(answer) == CANCELLED
    change(client, 2, (0, 0), (1, 0), script(text="after"))
    assert texts(await ask(client, 1, 4)) == ["after"]


@pytest.mark.parametrize("is_whole", [False, True], ids=["edits are sent", "whole texts are sent"])
async def test_typing_through_a_suggestion_keeps_its_rest(client: LanguageClient, is_whole: bool):
    text = script(text="value(1)") + "x = "
    open_document(client, text)
    first = (await ask(client, 1, 4)).items[0]
    if is_whole:
        send_change(client, 2, types.TextDocumentContentChangeWholeDocument(text + "va"))
    else:
        change(client, 2, (1, 4), (1, 4), "va")
    rest = (await ask(client, 1, 6)).items[0]
    assert (rest.insert_text, rest.range.start) == ("lue(1)", types.Position(1, 6))
    assert rest.command.arguments == first.command.arguments


# Life cycle


@pytest.mark.parametrize("params", [{"context": {"triggerKind": 2}}, {}], ids=["well formed", "malformed"])
def test_before_initialize_requests_are_refused(params: dict[str, Any]):
    with Editor() as editor:
        with pytest.raises(Refused) as refused:
            editor.request("textDocument/inlineCompletion", HERE | params)
        assert refused.value.code == -32002
        editor.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        editor.initialize()


def test_exit_does_not_wait_for_a_model_that_is_being_loaded():
    with Editor() as editor:
        editor.initialize(options={"model": "stuck"})


def test_a_request_is_about_the_document_as_it_was_when_it_was_sent():
    with Editor() as editor:
        editor.initialize()
        editor.open(URI, script(text="old") + "x = ")
        request = {
            "id": "r",
            "method": "textDocument/inlineCompletion",
            "params": {**HERE, "context": {"triggerKind": 2}},
        }
        request["params"] |= {"position": {"line": 1, "character": 4}}
        contents = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": script(text="new")}]}
        change = {"method": "textDocument/didChange", "params": contents}
        editor.write(b"".join(frame({"jsonrpc": "2.0"} | message) for message in (request, change)))
        [item] = editor.result("r")["items"]
        assert (item["insertText"], item["range"]["start"]) == ("old", {"line": 1, "character": 4})


def test_the_server_ends_when_the_pipe_is_closed():
    editor = Editor().initialize(options={"model": "stuck"})
    editor.process.stdin.close()
    assert editor.process.wait(PATIENCE) == 1


async def test_after_shutdown_requests_are_refused_and_exit_is_clean(bare: LanguageClient):
    await bare.initialize_session(initialize_params())
    await bare.shutdown_async(None)
    assert await code_of(ask(bare, 0, 0)) == -32600
    bare.exit(None)
    assert await bare._server.wait() == 0


async def test_a_failing_fill_is_reported_once_and_answered_empty(client: LanguageClient):
    open_document(client, script(error="out of memory") + "x = ")
    assert texts(await ask(client, 1, 4)) == []
    assert texts(await ask(client, 1, 4)) == []
    (message,) = client.messages
    assert message.message == "Mercury: RuntimeError: out of memory; run mercury-lsp doctor"


# The model


async def test_a_request_that_comes_while_the_model_loads_waits_for_it(bare: LanguageClient):
    window = types.WindowClientCapabilities(work_done_progress=True)
    await bare.initialize_session(initialize_params({"model": "slow"}, window=window))
    open_document(bare, "x = ")
    older, newer = ask(bare, 0, 3), ask(bare, 0, 4)
    assert await code_of(older) == CANCELLED
    assert texts(await newer) == ["suggested"]
    await eventually(lambda: [len(reports) for reports in bare.progress_reports.values()] == [2])
    [[begin, end]] = bare.progress_reports.values()
    assert (begin.title, end.message) == ("Loading slow", "ready")  # type: ignore[attr-defined]


@pytest.mark.parametrize(("model", "expected"), [("missing", "set mercury.model"), ("broken", "mercury-lsp doctor")])
async def test_a_model_that_cannot_be_loaded_is_reported_once_and_answered_empty(bare, model: str, expected: str):
    window = types.WindowClientCapabilities(work_done_progress=True)
    await bare.initialize_session(initialize_params({"mercury": {"model": model}}, window=window))
    open_document(bare, "x = ")
    for _ in range(2):
        assert texts(await ask(bare, 0, 4)) == []
    await eventually(lambda: [len(reports) for reports in bare.progress_reports.values()] == [2])
    [message] = bare.messages
    assert message.type == types.MessageType.Error and expected in message.message


async def test_without_progress_support_none_is_shown(client: LanguageClient):
    open_document(client, "x = ")
    await ask(client, 0, 4)
    assert client.progress_reports == {}


async def test_another_model_is_loaded_when_the_settings_name_one(client: LanguageClient):
    open_document(client, "x = ")
    assert texts(await ask(client, 0, 4)) == ["suggested"]
    configure(client, {"model": "missing"})
    await eventually(lambda: client.messages)
    change(client, 2, (0, 0), (0, 0), "xy")
    assert texts(await ask(client, 0, 6)) == []


# Configuration


def configure(client: LanguageClient, section: Any) -> None:
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings={"mercury": section}))


async def test_pushed_settings_take_effect(client: LanguageClient):
    open_document(client, script(confidence=0.6) + "x = ")
    configure(client, {"disabledLanguages": ["python"]})
    assert texts(await ask(client, 1, 4)) == []
    configure(client, {"eagerness": "low"})
    assert texts(await ask(client, 1, 4)) == []
    configure(client, {})
    assert texts(await ask(client, 1, 4)) == ["suggested"]


async def test_settings_are_requested_from_clients_that_support_it(bare: LanguageClient):
    bare.set_configuration({"mercury": {"enabled": False}})
    workspace = types.WorkspaceClientCapabilities(configuration=True)
    await bare.initialize_session(initialize_params(workspace=workspace))
    open_document(bare, "x = ")
    for _ in range(100):  # before the settings arrive it answers with the defaults
        if not texts(await ask(bare, 0, 4)):
            return
    raise AssertionError("the settings did not take effect")


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ({"gaet": 1}, ("mercury.gaet", "deadlineMs")),
        ({"effort": "huge"}, ("mercury.effort", "instant, low, medium, high")),
        ("loud", ("object",)),
    ],
)
async def test_wrong_settings_are_reported_and_change_nothing(client: LanguageClient, section: Any, named: tuple):
    open_document(client, "x = ")
    configure(client, {"enabled": False})
    configure(client, section)
    await eventually(lambda: client.messages)
    [message] = client.messages
    assert message.type == types.MessageType.Warning
    assert all(word in message.message for word in named)
    assert texts(await ask(client, 0, 4)) == []
