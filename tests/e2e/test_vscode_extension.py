"""What package.json of the VS Code extension promises is what the server reads and the sources have."""

import json
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from mercury_lsp.errors import SettingsError
from mercury_lsp.settings import Settings

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
PACKAGE = json.loads((EXTENSION / "package.json").read_text("utf-8"))
SOURCES = "\n".join(path.read_text("utf-8") for path in sorted((EXTENSION / "src").rglob("*.ts")))

ITS_OWN = ("command", "nextEditKey", "trace.server")
"""Settings that are not the server's."""

PROPERTIES = {
    name.removeprefix("mercury."): shape
    for name, shape in PACKAGE["contributes"]["configuration"]["properties"].items()
}
SHARED = {name: shape for name, shape in PROPERTIES.items() if name not in ITS_OWN}


def in_camel_case(name: str) -> str:
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)


def is_accepted(name: str, value: Any) -> bool:
    try:
        Settings.parse({name: value})
    except SettingsError:
        return False
    return True


def test_every_setting_of_the_server_is_there_and_no_other():
    assert set(SHARED) == {in_camel_case(field.name) for field in fields(Settings)}
    assert all(name in PROPERTIES for name in ITS_OWN)


@pytest.mark.parametrize("name", SHARED)
def test_a_setting_allows_what_the_server_allows(name: str):
    shape = SHARED[name]
    types = shape["type"] if isinstance(shape["type"], list) else [shape["type"]]
    assert is_accepted(name, None) == ("null" in types)
    for choice in shape.get("enum", ()):
        assert is_accepted(name, choice)
    assert ("minimum" in shape) == ("maximum" in shape) == bool({"integer", "number"} & set(types))
    for bound, beyond in (("minimum", -1), ("maximum", 1)):
        if bound in shape:
            assert is_accepted(name, shape[bound]) and not is_accepted(name, shape[bound] + beyond)
    assert is_accepted(name, 0.5) == ("number" in types)
    assert is_accepted(name, True) == ("boolean" in types)
    assert is_accepted(name, "") == ("string" in types and "enum" not in shape and "minLength" not in shape)


def test_the_choices_are_the_servers():
    for name, shape in SHARED.items():
        if "enum" in shape:
            with pytest.raises(SettingsError, match=re.escape(f"one of {', '.join(shape['enum'])}")):
                Settings.parse({name: "no such choice"})
            assert len(shape.get("enumDescriptions", shape["enum"])) == len(shape["enum"])


def test_what_could_run_something_is_not_taken_from_an_untrusted_workspace():
    restricted = PACKAGE["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert {"mercury.command", "mercury.model", "mercury.editModel", "mercury.engine"} <= set(restricted)
    assert {name.removeprefix("mercury.") for name in restricted} <= set(PROPERTIES)
    assert PROPERTIES["model"]["scope"] == PROPERTIES["editModel"]["scope"] == "machine-overridable"


def test_no_workspace_names_the_program_even_if_it_is_trusted():
    assert PROPERTIES["command"]["scope"] == "machine"


def test_no_workspace_names_the_engine_even_if_it_is_trusted():
    assert PROPERTIES["engine"]["scope"] == "machine"


def test_the_palette_has_what_needs_a_document_where_one_is_served():
    served = set(re.findall(r'\{ scheme: "([^"]+)" \}', SOURCES))
    when = {item["command"]: item["when"] for item in PACKAGE["contributes"]["menus"]["commandPalette"]}
    for command in ("mercury.fillHere", "mercury.applyNextEdit"):
        shown = re.fullmatch(r"resourceScheme =~ /\^\((.+)\)\$/", when[command])
        # The workbench of a remote window calls its files so, and the extension, which runs there, calls them files.
        assert shown and set(shown[1].split("|")) == served | {"vscode-remote"}


KEYS = {each["command"]: each for each in PACKAGE["contributes"]["keybindings"]}


def test_every_context_of_a_key_or_a_menu_is_one_that_the_sources_set():
    set_ones = set(re.findall(r"^  (nextEdit\w+):", SOURCES, re.MULTILINE))
    entries = [*PACKAGE["contributes"]["keybindings"], *PACKAGE["contributes"]["menus"]["commandPalette"]]
    read = {name for each in entries for name in re.findall(r"(?<!config\.)mercury\.(\w+)", each["when"])}
    assert read and read <= set_ones


def test_keys_leave_menus_snippets_and_ghost_text_alone():
    tabs = [each for each in PACKAGE["contributes"]["keybindings"] if each["key"] == "tab"]
    assert {each["command"] for each in tabs} == {"mercury.jumpToNextEdit", "mercury.applyNextEdit"}
    for each in (*tabs, KEYS["mercury.dismissNextEdit"]):
        for other in ("suggestWidgetVisible", "inlineSuggestionVisible", "inSnippetMode", "editorHasSelection"):
            assert f"!{other}" in each["when"].split(" && ")
    assert all("!hasSnippetCompletions" in each["when"] and "!editorTabMovesFocus" in each["when"] for each in tabs)


def test_the_parts_that_need_no_editor_pass_their_own_tests():
    if shutil.which("npm") is None or not (EXTENSION / "node_modules").is_dir():
        pytest.skip("no Node: install Node 20 and run `npm ci` in editors/vscode")
    subprocess.run(["npm", "test"], cwd=EXTENSION, check=True)


def test_the_one_package_that_is_bundled_is_the_language_client_and_no_proposed_api_is_used():
    assert list(PACKAGE["dependencies"]) == ["vscode-languageclient"]
    assert "enabledApiProposals" not in PACKAGE


def test_the_lockfile_is_that_of_the_package_and_names_no_registry():
    text = (EXTENSION / "package-lock.json").read_text("utf-8")
    lock = json.loads(text)["packages"]
    assert lock[""]["dependencies"] == PACKAGE["dependencies"]
    assert lock[""]["devDependencies"] == PACKAGE["devDependencies"]
    assert all("integrity" in package for name, package in lock.items() if name)
    assert not any("resolved" in package for package in lock.values()) and "registry" not in text
