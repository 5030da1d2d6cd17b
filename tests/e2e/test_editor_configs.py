"""What editors/README.md has one copy into a configuration can be read, and its settings are ours."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tree_sitter_lua
from tree_sitter import Language, Parser

from mercury_lsp.settings import Settings, section_of

PAGE = (Path(__file__).parents[2] / "editors" / "README.md").read_text("utf-8")

EDITORS = ("Neovim", "VS Code", "Helix", "Kate", "Emacs", "Zed", "Sublime Text", "JetBrains IDEs")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found


def options(config: Any) -> Iterator[Any]:
    """All initialization options in a configuration."""
    if isinstance(config, dict):
        for key, value in config.items():
            if key in ("initializationOptions", "initialization_options"):
                yield value
            else:
                yield from options(value)


@pytest.mark.parametrize("editor", EDITORS)
def test_every_editor_has_a_section(editor: str):
    assert re.search(rf"^## {editor}", PAGE, re.MULTILINE)


@pytest.mark.parametrize("text", blocks("json"))
def test_json_can_be_read_and_has_settings_that_exist(text: str):
    config = json.loads(text)
    assert "mercury-lsp" in text
    for given in options(config):
        Settings.parse(section_of(given.get("mercury", given)))


@pytest.mark.parametrize("text", blocks("toml"))
def test_toml_can_be_read(text: str):
    assert tomllib.loads(text)["language-server"]["mercury"]["command"] == "mercury-lsp"


@pytest.mark.parametrize("text", blocks("lua"))
def test_lua_can_be_read(text: str):
    parser = Parser(Language(tree_sitter_lua.language()))
    readable = (parser.parse(each.encode()) for each in (text, f"return {text}"))  # a plugin's table stands alone
    assert any(not tree.root_node.has_error for tree in readable)


@pytest.mark.parametrize("text", blocks("elisp"))
def test_elisp_can_be_read(text: str):
    assert text.count("(") == text.count(")") and text.count('"') % 2 == 0
    for plist in re.findall(r":initializationOptions \((.*?)\)", text):
        Settings.parse(dict(re.findall(r':(\w+) "(\w+)"', plist)))
    if (emacs := shutil.which("emacs")) is not None:
        subprocess.run(
            [emacs, "--batch", "--eval", f"(car (read-from-string {json.dumps(f'(progn {text})')}))"], check=True
        )
