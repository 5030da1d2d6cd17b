"""llama.vim, the plugin of llama.cpp, in a real Neovim over our HTTP API: LLAMA_VIM names the folder of its clone."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from tests.support.http_server import Scripted, Served, served
from tests.support.neovim import Desk, Neovim, until

PLUGIN = os.environ.get("LLAMA_VIM", "")

pytestmark = pytest.mark.skipif(not PLUGIN or shutil.which("curl") is None, reason="LLAMA_VIM names no llama.vim")

TEXT = "import math\n\n\ndef area(radius):\n    return math.pi * radius**2\n"


@pytest.fixture
def server() -> Iterator[Served]:
    engine = Scripted({"x = ": "area(1)", "return ": "one +\n        two"})
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(served(engine)) as made:
        yield made


def started(desk: Desk, server: Served, text: str = "") -> Neovim:
    """A Neovim with the plugin as its documentation sets it up, but for the port; our own shows nothing there."""
    config = json.dumps(f"{server.url}/infill")
    plugin = Path(PLUGIN) / "plugin" / "llama.vim"
    before = (
        f"vim.g.llama_config = {{ endpoint_fim = {config}, show_info = 0, ring_update_ms = 50 }}\n"
        f"vim.opt.runtimepath:append({json.dumps(PLUGIN)})\n"
        f"vim.cmd.source({json.dumps(str(plugin))})"
    )
    return desk.start(text, before=before)


def test_llama_vim_shows_a_fill_while_typing_and_accepts_it(desk: Desk, server: Served):
    nvim = started(desk, server)
    nvim.keys("ix = ")
    until(lambda: nvim.ghost("vt_fim") == "area(1)")
    nvim.keys("<Tab>")
    until(lambda: nvim.lines() == ["x = area(1)"])
    assert [asked.deadline_ms for asked in server.engine.asked if asked.near.endswith("x = ")] != [None]


def test_llama_vim_shows_several_lines(desk: Desk, server: Served):
    nvim = started(desk, server)
    nvim.keys("ireturn ")
    until(lambda: nvim.ghost("vt_fim").startswith("one +\n        two"))


def test_llama_vim_warms_the_cache_with_chunks_of_other_files_and_sends_them_along(desk: Desk, server: Served):
    nvim = started(desk, server, TEXT)
    until(lambda: [asked for asked in server.engine.asked if asked.max_steps == 0])
    nvim.open(desk.folder / "b.py")
    nvim.keys("ix = ")
    until(lambda: nvim.ghost("vt_fim") == "area(1)")
    fills = [asked for asked in server.engine.asked if asked.max_steps != 0]
    assert any("math.pi" in "".join((*asked.far, *asked.lookup_text)) for asked in fills)
