"""A client that is not ours, pygls's, reads every answer into lsprotocol's types."""

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.support.editor import COMMAND, script

URI = "file:///work/main.py"


async def test_pygls_reads_a_session_from_initialize_to_exit() -> None:
    client = LanguageClient("pygls", "2")
    await client.start_io(*COMMAND)
    started = await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
    assert started.capabilities.inline_completion_provider
    assert started.capabilities.position_encoding == types.PositionEncodingKind.Utf16
    client.initialized(types.InitializedParams())
    text = script(text="return 1") + "\ndef one():\n    "
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(URI, types.LanguageKind.Python, 1, text))
    )
    context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Invoked)
    document = types.TextDocumentIdentifier(URI)
    offered = await client.text_document_inline_completion_async(
        types.InlineCompletionParams(context, document, types.Position(2, 4))
    )
    assert isinstance(offered, types.InlineCompletionList)
    assert [item.insert_text for item in offered.items] == ["return 1"]
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
