"""What the client declares at initialize, as far as the server's behaviour depends on it."""

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
    """It declared that it knows `didChangeStatus`, or it silently drops unknown notifications."""
    wants_popup: bool = False
    """It has completion but no inline completion."""
    applies_edits: bool = False
    takes_actions: bool = False
    takes_action_literals: bool = False
    takes_versioned_edits: bool = False
    keeps_indentation: bool = False
    """It can insert an item's lines unchanged, if the item says so."""
    adds_indentation: bool = False
    """It cannot, and indents every line of an item but the first like the line where the item is inserted."""
    takes_markdown: bool = False
    shows_documents: bool = False
    has_configuration: bool = False
    registers_configuration: bool = False
    registers_files: bool = False
    takes_confidence: bool = False
    """It declared that items may carry the model's confidence."""
    takes_source: bool = False
    """It declared that edits may say who proposed them."""
    takes_edits_elsewhere: bool = False
    """It declared that it shows a next edit in another document than the one it asked about."""
    takes_offers: bool = False
    """It declared that it can ask its user, without getting in the way, whether to download a larger model."""
    takes_denoising: bool = False
    """It declared that each partial result replaces the one before."""
    takes_subtle: bool = False
    """It declared that it marks where there is a text, shows it by a key, and reports that (`mercury.display`)."""

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
        inline = get_capability(params.capabilities, "text_document.inline_completion", None) is not None
        popup = get_capability(params.capabilities, "text_document.completion", None) is not None
        actions = get_capability(params.capabilities, "text_document.code_action", None) is not None
        item = "text_document.completion.completion_item"
        as_is = lists(f"{item}.insert_text_mode_support.value_set", types.InsertTextMode.AsIs)
        by_default = get_capability(params.capabilities, "text_document.completion.insert_text_mode", None)
        ours = _ours(params.capabilities.experimental)
        return cls(
            name=name,
            is_copilot=is_copilot,
            takes_status=is_copilot or name == "Neovim" or ours.get("status") is True,
            wants_popup=popup and not inline and not is_copilot,
            applies_edits=can("workspace.apply_edit"),
            takes_actions=actions and can("workspace.apply_edit"),
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
            takes_confidence=ours.get("confidence") is True,
            takes_source=ours.get("source") is True,
            takes_edits_elsewhere=ours.get("editsElsewhere") is True,
            takes_offers=ours.get("offers") is True,
            takes_denoising=ours.get("denoising") is True,
            takes_subtle=ours.get("subtle") is True,
        )


def readable_params(params: Any, can_read: Callable[[Any], bool]) -> Any:
    """Parameters of initialize, still JSON, without the capabilities that cannot be read.

    lsp-mode declares inline completion by a null, which becomes an object. A malformed capability counts as not
    declared, so that one bad field never keeps a client from using the server.
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
    """The capabilities that only Mercury's own clients declare."""
    declared = experimental.get("mercury") if isinstance(experimental, Mapping) else None
    return declared if isinstance(declared, Mapping) else {}
