"""What editors/README.md has one copy into a configuration can be read, and its settings are ours."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tree_sitter_lua
from tree_sitter import Language, Parser

from mercury_lsp.documents.languages import LANGUAGES
from mercury_lsp.settings import Settings, section_of
from tests.support.neovim import WAIT_S, Desk, find_nvim, find_nvim_0_12, rule

EDITORS_FOLDER = Path(__file__).parents[2] / "editors"
PAGE = (EDITORS_FOLDER / "README.md").read_text("utf-8")

EDITORS = ("Neovim", "coc.nvim", "VS Code", "Helix", "Kate", "Emacs", "Zed", "Sublime Text", "JetBrains IDEs")


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
    assert "mercury" in text or "http://127.0.0.1:8012/" in text
    for given in options(config):
        Settings.parse(section_of(given.get("mercury", given)))


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


LSPCONFIG = """
vim.opt.runtimepath:append({folder})
vim.o.swapfile = false
vim.lsp.config("mercury", {{ cmd = {{ {command} }} }})
vim.lsp.enable("mercury")
vim.api.nvim_create_autocmd("LspAttach", {{
  callback = vim.schedule_wrap(function(args)
    local client = vim.lsp.get_client_by_id(args.data.client_id)
    local params = vim.lsp.util.make_position_params(0, "utf-16")
    params.context = {{ triggerKind = 1 }}
    local answer = client:request_sync("textDocument/inlineCompletion", params, 9999, args.buf)
    local said = {{ client.name, client.root_dir, answer.result.items[1].insertText }}
    vim.fn.writefile({{ vim.json.encode(said) }}, {told})
    vim.cmd("qall!")
  end),
}})
"""


@pytest.mark.parametrize("find", [find_nvim, find_nvim_0_12])
def test_nvim_lspconfigs_entry_starts_the_server_in_a_repository(find, tmp_path: Path):
    """In a real Neovim, from the file in the form that nvim-lspconfig takes."""
    if (nvim := find()) is None:
        pytest.skip("no such Neovim")
    desk, told = Desk(nvim, tmp_path), tmp_path / "told"
    desk.script([rule("", "one + two")])
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.py").write_text("x = \n")
    (tmp_path / "init.lua").write_text(
        LSPCONFIG.format(
            folder=json.dumps(str(EDITORS_FOLDER / "nvim-lspconfig")),
            command=", ".join(map(json.dumps, desk.cmd)),
            told=json.dumps(str(told)),
        )
    )
    subprocess.run(
        [nvim, "--headless", "--clean", "-u", tmp_path / "init.lua", tmp_path / "a.py"], timeout=WAIT_S, check=True
    )
    assert json.loads(told.read_text()) == ["mercury", str(tmp_path), "one + two"]
    assert desk.received("initialize")[0]["params"]["workspaceFolders"][0]["name"] == str(tmp_path)


def test_the_template_for_lsp4ij_maps_the_files_of_every_language_with_a_grammar():
    """LSP4IJ reads `programArgs` by system and, of each mapping, `fileType.patterns` and `languageId`."""
    folder = EDITORS_FOLDER / "jetbrains" / "mercury"
    template = json.loads((folder / "template.json").read_text("utf-8"))
    assert template["id"] and template["name"]
    assert {system: args.split()[-1] for system, args in template["programArgs"].items()} == {
        "default": "mercury-lsp",
        "windows": "mercury-lsp",
    }
    mapped = {
        (pattern, each["languageId"])
        for each in template["fileTypeMappings"]
        for pattern in each["fileType"]["patterns"]
    }
    known = {(f"*.{extension}", name) for name, each in LANGUAGES.items() for extension in each.extensions}
    assert known <= mapped
    assert len(mapped) == len({pattern for pattern, _ in mapped})
    Settings.parse(json.loads((folder / "settings.json").read_text("utf-8"))["mercury"])
