"""initialize: answers with the capabilities that fit the client's."""

from typing import Any

from lsprotocol import types

import mercury_lsp
from mercury_lsp.server.editor import InitializeParams
from mercury_lsp.server.requests import execute_command as commands
from mercury_lsp.server.requests.code_action import ACTION_KIND, code_action
from mercury_lsp.server.requests.completion import TRIGGER_CHARACTERS, completion
from mercury_lsp.server.server import MercuryServer


def initialize(server: MercuryServer, params: InitializeParams) -> dict[str, Any]:
    """The capabilities; UTF-16 whatever the client prefers, because several clients assume it."""
    server.begin(params)
    editor = server.editor.capabilities
    hidden = set() if editor.takes_offers else {commands.ANSWER_COMMAND}
    if not editor.applies_edits:
        hidden |= {commands.FILL_COMMAND, commands.NEXT_EDIT_COMMAND, commands.APPLY_ALL_COMMAND}
    capabilities: dict[str, Any] = {
        "positionEncoding": "utf-16",
        "textDocumentSync": {"openClose": True, "change": types.TextDocumentSyncKind.Incremental, "save": True},
        "inlineCompletionProvider": {"workDoneProgress": True},
        "executeCommandProvider": {"commands": [name for name in commands.COMMANDS if name not in hidden]},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
        "experimental": {"mercury": {"diagnostics": True, "highlights": True}},
    }
    if editor.has_notebooks:
        capabilities["notebookDocumentSync"] = {"notebookSelector": [{"notebook": "*"}]}
    if editor.wants_popup:
        server.handlers[types.TEXT_DOCUMENT_COMPLETION] = completion
        capabilities["completionProvider"] = {"triggerCharacters": TRIGGER_CHARACTERS, "workDoneProgress": True}
    if editor.takes_actions:
        server.handlers[types.TEXT_DOCUMENT_CODE_ACTION] = code_action
        capabilities["codeActionProvider"] = {"codeActionKinds": [ACTION_KIND]}
    info = {"name": "mercury-lsp", "version": mercury_lsp.__version__}
    return {"capabilities": capabilities, "serverInfo": info}
