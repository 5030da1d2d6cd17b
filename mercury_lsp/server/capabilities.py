"""The client's capabilities that the server's behaviour depends on."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from lsprotocol import types

COPILOT_OPTIONS = ("editorInfo", "editorPluginInfo")
"""Options sent by clients that were made for Copilot's language server."""


@attrs.define
class InitializeParams:
    """What is read of initialize. The capabilities stay JSON, because a malformed one must not lock a client out."""

    capabilities: Any = None
    client_info: types.ClientInfo | None = None
    initialization_options: Any = None
    root_uri: str | None = None
    workspace_folders: Sequence[types.WorkspaceFolder] | None = None


class EditorCapabilities:
    """What the client can do; nothing if it declares nothing."""

    def __init__(self, params: InitializeParams | None = None):
        params = params or InitializeParams()

        def declared(path: str) -> Any:
            found = params.capabilities
            for name in path.split("."):
                found = found.get(name) if isinstance(found, Mapping) else None
            return found

        def can(path: str) -> bool:
            return declared(path) is True

        def has(path: str) -> bool:
            return isinstance(declared(path), Mapping)

        def lists(path: str, value: Any) -> bool:
            found = declared(path)
            return isinstance(found, list) and value in found

        options, completion = params.initialization_options, "textDocument.completion"
        self.name = params.client_info.name if params.client_info else ""
        self.is_copilot = isinstance(options, Mapping) and any(key in options for key in COPILOT_OPTIONS)
        """It speaks Copilot's dialect: its options are not ours, and items start at the start of the line."""
        self.takes_status = self.is_copilot or self.name == "Neovim" or can("experimental.mercury.status")
        """It knows `didChangeStatus`, or drops unknown notifications silently."""
        # lsp-mode declares inline completion by a null; a client may also say false.
        inline = declared("textDocument").get("inlineCompletion", False) if has("textDocument") else False
        has_inline = inline is None or isinstance(inline, Mapping)
        self.wants_popup = has(completion) and not has_inline and not self.is_copilot
        """It has completion but no inline completion."""
        self.has_notebooks = has("notebookDocument")
        self.applies_edits = can("workspace.applyEdit")
        self.takes_actions = self.applies_edits and has("textDocument.codeAction")
        self.takes_action_literals = has("textDocument.codeAction.codeActionLiteralSupport")
        self.takes_versioned_edits = can("workspace.workspaceEdit.documentChanges")
        modes = f"{completion}.completionItem.insertTextModeSupport.valueSet"
        self.keeps_indentation = lists(modes, types.InsertTextMode.AsIs)
        """It inserts an item's lines unchanged if the item asks for that."""
        by_default = declared(f"{completion}.insertTextMode")
        self.adds_indentation = not self.keeps_indentation and by_default == types.InsertTextMode.AdjustIndentation
        """It does not: it indents all lines but the first like the line of insertion."""
        self.takes_markdown = lists(f"{completion}.completionItem.documentationFormat", types.MarkupKind.Markdown)
        # copilot.lua opens any document it is asked to show in a browser.
        self.shows_documents = can("window.showDocument.support") and not self.is_copilot
        self.shows_progress = can("window.workDoneProgress")
        self.has_configuration = can("workspace.configuration")
        self.registers_configuration = can("workspace.didChangeConfiguration.dynamicRegistration")
        self.registers_files = can("workspace.didChangeWatchedFiles.dynamicRegistration")
        # Only our own clients declare these.
        self.takes_confidence = can("experimental.mercury.confidence")
        """Items may carry the model's confidence."""
        self.takes_source = can("experimental.mercury.source")
        """Edits may name their source."""
        self.takes_edits_elsewhere = can("experimental.mercury.editsElsewhere")
        """It shows a next edit in another document than the one it asked about."""
        self.takes_offers = can("experimental.mercury.offers")
        """It can ask its user unobtrusively whether to download a larger model."""
        self.takes_denoising = can("experimental.mercury.denoising")
        """Each partial result replaces the one before."""
        self.takes_subtle = can("experimental.mercury.subtle")
        """It marks where there is a text, shows it by key, and reports that (`mercury.display`)."""
