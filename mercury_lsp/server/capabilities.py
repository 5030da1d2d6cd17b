"""The client's capabilities that the server's behaviour depends on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class EditorCapabilities:
    """What the client can do; all False for a client that declares nothing."""

    name: str = ""
    is_copilot: bool = False
    """It speaks Copilot's dialect: its options are not ours, and items start at the start of the line."""
    takes_status: bool = False
    """It knows `didChangeStatus`, or drops unknown notifications silently."""
    wants_popup: bool = False
    """It has completion but no inline completion."""
    has_notebooks: bool = False
    applies_edits: bool = False
    takes_actions: bool = False
    takes_action_literals: bool = False
    takes_versioned_edits: bool = False
    keeps_indentation: bool = False
    """It inserts an item's lines unchanged if the item asks for that."""
    adds_indentation: bool = False
    """It does not: it indents all lines but the first like the line of insertion."""
    takes_markdown: bool = False
    shows_documents: bool = False
    shows_progress: bool = False
    has_configuration: bool = False
    registers_configuration: bool = False
    registers_files: bool = False
    takes_confidence: bool = False
    """Items may carry the model's confidence. This and what follows only our own clients declare."""
    takes_source: bool = False
    """Edits may name their source."""
    takes_edits_elsewhere: bool = False
    """It shows a next edit in another document than the one it asked about."""
    takes_offers: bool = False
    """It can ask its user unobtrusively whether to download a larger model."""
    takes_denoising: bool = False
    """Each partial result replaces the one before."""
    takes_subtle: bool = False
    """It marks where there is a text, shows it by key, and reports that (`mercury.display`)."""

    @classmethod
    def of(cls, params: InitializeParams) -> "EditorCapabilities":
        """The capabilities of the client that sent these parameters."""

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

        name = params.client_info.name if params.client_info else ""
        options = params.initialization_options
        is_copilot = isinstance(options, Mapping) and any(key in options for key in COPILOT_OPTIONS)
        completion, ours = "textDocument.completion", "experimental.mercury"
        # lsp-mode declares inline completion by a null.
        has_inline = has("textDocument") and "inlineCompletion" in declared("textDocument")
        as_is = lists(f"{completion}.completionItem.insertTextModeSupport.valueSet", types.InsertTextMode.AsIs)
        by_default = declared(f"{completion}.insertTextMode")
        return cls(
            name=name,
            is_copilot=is_copilot,
            takes_status=is_copilot or name == "Neovim" or can(f"{ours}.status"),
            wants_popup=has(completion) and not has_inline and not is_copilot,
            has_notebooks=has("notebookDocument"),
            applies_edits=can("workspace.applyEdit"),
            takes_actions=has("textDocument.codeAction") and can("workspace.applyEdit"),
            takes_action_literals=has("textDocument.codeAction.codeActionLiteralSupport"),
            takes_versioned_edits=can("workspace.workspaceEdit.documentChanges"),
            keeps_indentation=as_is,
            adds_indentation=not as_is and by_default == types.InsertTextMode.AdjustIndentation,
            takes_markdown=lists(f"{completion}.completionItem.documentationFormat", types.MarkupKind.Markdown),
            # copilot.lua opens any document it is asked to show in a browser.
            shows_documents=can("window.showDocument.support") and not is_copilot,
            shows_progress=can("window.workDoneProgress"),
            has_configuration=can("workspace.configuration"),
            registers_configuration=can("workspace.didChangeConfiguration.dynamicRegistration"),
            registers_files=can("workspace.didChangeWatchedFiles.dynamicRegistration"),
            takes_confidence=can(f"{ours}.confidence"),
            takes_source=can(f"{ours}.source"),
            takes_edits_elsewhere=can(f"{ours}.editsElsewhere"),
            takes_offers=can(f"{ours}.offers"),
            takes_denoising=can(f"{ours}.denoising"),
            takes_subtle=can(f"{ours}.subtle"),
        )
