"""The client's capabilities that the server's behaviour depends on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability

COPILOT_OPTIONS = ("editorInfo", "editorPluginInfo")
"""Options sent by clients that were made for Copilot's language server."""


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
    def of(cls, params: types.InitializeParams) -> "EditorCapabilities":
        """The capabilities of the client that sent these parameters."""

        def can(capability: str) -> bool:
            return bool(get_capability(params.capabilities, capability, False))

        def lists(capability: str, value: Any) -> bool:
            return value in (get_capability(params.capabilities, capability, None) or ())

        name = params.client_info.name if params.client_info else ""
        options = params.initialization_options
        is_copilot = isinstance(options, Mapping) and any(key in options for key in COPILOT_OPTIONS)
        features = params.capabilities.text_document or types.TextDocumentClientCapabilities()
        item = "text_document.completion.completion_item"
        as_is = lists(f"{item}.insert_text_mode_support.value_set", types.InsertTextMode.AsIs)
        by_default = get_capability(params.capabilities, "text_document.completion.insert_text_mode", None)
        ours = _ours(params.capabilities.experimental)
        own = ("confidence", "source", "offers", "denoising", "subtle")
        return cls(
            name=name,
            is_copilot=is_copilot,
            takes_status=is_copilot or name == "Neovim" or ours.get("status") is True,
            wants_popup=bool(features.completion and not features.inline_completion and not is_copilot),
            applies_edits=can("workspace.apply_edit"),
            takes_actions=features.code_action is not None and can("workspace.apply_edit"),
            takes_action_literals=can("text_document.code_action.code_action_literal_support"),
            takes_versioned_edits=can("workspace.workspace_edit.document_changes"),
            keeps_indentation=as_is,
            adds_indentation=not as_is and by_default == types.InsertTextMode.AdjustIndentation,
            takes_markdown=lists(f"{item}.documentation_format", types.MarkupKind.Markdown),
            # copilot.lua opens any document it is asked to show in a browser.
            shows_documents=can("window.show_document.support") and not is_copilot,
            has_configuration=can("workspace.configuration"),
            registers_configuration=can("workspace.did_change_configuration.dynamic_registration"),
            registers_files=can("workspace.did_change_watched_files.dynamic_registration"),
            takes_edits_elsewhere=ours.get("editsElsewhere") is True,
            **{f"takes_{each}": ours.get(each) is True for each in own},
        )


def readable_params(params: Any, can_read: Callable[[Any], bool]) -> Any:
    """Parameters of initialize, still JSON, without malformed capabilities, which must not lock a client out.

    lsp-mode declares inline completion by a null, which becomes an object.
    """
    match params:
        case {"capabilities": {"textDocument": {"inlineCompletion": None}}}:
            document = params["capabilities"]["textDocument"] | {"inlineCompletion": {}}
            params = params | {"capabilities": params["capabilities"] | {"textDocument": document}}
    match params:
        case {"capabilities": dict() as capabilities} if not can_read(capabilities):
            return params | {"capabilities": _readable(capabilities, can_read)}
    return params


def _readable(capabilities: Mapping[str, Any], can_read: Callable[[Any], bool]) -> Mapping[str, Any]:
    return {
        section: {key: value for key, value in given.items() if can_read({section: {key: value}})}
        if isinstance(given, Mapping)
        else given
        for section, given in capabilities.items()
    }


def _ours(experimental: Any) -> Mapping[str, Any]:
    declared = experimental.get("mercury") if isinstance(experimental, Mapping) else None
    return declared if isinstance(declared, Mapping) else {}
