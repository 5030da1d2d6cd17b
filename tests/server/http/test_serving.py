"""`mercury-lsp serve --http`: one process, one engine for editors and for clients of the HTTP API."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from mercury_lsp.errors import UsageError
from mercury_lsp.http.listener import HttpAddress
from tests.support import tiny
from tests.support.editor import Editor, Refused, script
from tests.support.sharing import Place, eventually

TRY = Path(__file__).parents[3] / "docs" / "try_http.py"

COMMAND = [sys.executable, "-m", "mercury_lsp", "serve"]


@contextmanager
def serving(command: list[str], env: dict[str, str]) -> Iterator[httpx.Client]:
    """A client of a server on a free port."""
    with subprocess.Popen([*command, "--http", "127.0.0.1:0"], env=env, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = re.search(r"serving (\S+) with ", server.stderr.readline())
            assert found is not None
            with httpx.Client(base_url=found[1], timeout=60, trust_env=False) as client:
                yield client
        finally:
            server.terminate()


def items_unless_restarting(editor: Editor) -> list[str]:
    """What the editor is offered; nothing while its relay finds the new daemon."""
    try:
        return [item["insertText"] for item in editor.items("file:///sample.py", 1, 4)]
    except Refused as error:
        assert "restarting" in str(error)
        return []


def test_an_editor_and_a_client_share_one_load_and_an_editors_own_daemon_makes_room(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        editor.open("file:///sample.py", script(text="shown") + "x = ")
        eventually(unix.loaded)
        daemon = [sys.executable, str(Path(tiny.__file__).with_name("fake_daemon.py")), str(unix.loads)]
        before = unix.pid()
        with serving([*daemon, *unix.address.arguments], unix.env) as client:
            assert unix.pid() != before
            body = {"prompt": script(text="shown") + "x = ", "suffix": ")\n"}
            assert client.post("/v1/fim/completions", json=body).json()["choices"][0]["text"] == "shown"
            assert eventually(lambda: items_unless_restarting(editor)) == ["shown"]
            status = eventually(unix.status)
            assert status["engines"] == [{"name": "fake", "device": "cpu", "connections": 2}]


@tiny.needs_kernels
def test_the_command_serves_the_model_that_it_is_given(unix: Place, tmp_path: Path):
    model = tiny.folder(tmp_path / "model", rank=0, **tiny.WIDE)
    with serving([*COMMAND, "--model", str(model), *unix.address.arguments], unix.env) as client:
        body = {"prompt": "def f(a):\n    return ", "suffix": "\n", "max_tokens": 4}
        found = client.post("/v1/fim/completions", json=body).json()
        assert found["usage"]["prompt_tokens"] > 4 and 0 < found["usage"]["completion_tokens"] <= 4
        names = [each["id"] for each in client.get("/v1/models").json()["data"]]
        assert names == [found["model"]]


@pytest.mark.slow
def test_the_bundled_model_fills_and_streams(unix: Place):
    quicksort = "def quicksort(items):\n    if len(items) <= 1:\n        return items\n    pivot = "
    with serving([*COMMAND, "--model", "bundled", *unix.address.arguments], unix.env) as client:
        line = client.post("/infill", json={"prompt": quicksort, "input_suffix": "\n", "stop": ["\n"]}).json()
        assert "items" in line["content"] and "\n" not in line["content"]
        body = {"prompt": quicksort, "stream": True}
        lines = client.post("/v1/fim/completions", json=body).text.split("\n\n")
        events = [json.loads(each.removeprefix("data: ")) for each in lines if each.startswith("data: {")]
        text = "".join(each["choices"][0]["text"] for each in events)
        assert text.startswith(line["content"]) and "\n    return " in text and "\n\n" not in text
        add = "<|fim_prefix|>def add(left, right):\n    return <|fim_suffix|>\n<|fim_middle|>"
        written = client.post("/v1/completions", json={"prompt": add}).json()["choices"][0]
        lines = written["text"].split("\n")
        assert lines[0] == "left + right" and written["finish_reason"] == "stop"
        assert len({*filter(None, lines)}) == len([*filter(None, lines)]) and lines[-1].count("(") == lines[-1].count(
            ")"
        )
        port = client.post(
            "/infill", json={"input_prefix": '{\n  "port": 80,\n', "prompt": '  "b": ', "input_suffix": "\n}"}
        )
        assert not port.json()["content"].endswith(",")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--http", "0.0.0.0:0"], "set MERCURY_TOKEN"),
        (["--http", "a b"], "not HOST:PORT"),
        (["--http", "127.0.0.1:0", "--idle-exit", "1"], "leave out --idle-exit"),
        (["--model", "bundled"], "--model needs --http"),
        (["--http", "127.0.0.1:0", "--model", "./none"], "none"),
    ],
)
def test_a_wrong_argument_is_one_clear_line(unix: Place, arguments: list[str], says: str):
    ended = subprocess.run(
        [*COMMAND, *arguments, *unix.address.arguments], env=unix.env, capture_output=True, text=True
    )
    assert ended.returncode == 2 and says in ended.stderr and ended.stderr.count("\n") == 1


def test_a_taken_port_is_told_with_what_to_do():
    with HttpAddress("127.0.0.1", 0).listen() as taken, pytest.raises(UsageError, match="name another HOST:PORT"):
        HttpAddress("127.0.0.1", taken.getsockname()[1]).listen()


def test_the_body_of_a_reply_does_not_wait_for_the_receipt_of_its_head():
    address = HttpAddress("127.0.0.1", 0)
    with address.listen() as ours, socket.create_connection(ours.getsockname()), ours.accept()[0] as connection:
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.slow
def test_every_dialect_is_tried_with_the_bundled_model():
    tried = subprocess.run(
        [sys.executable, str(TRY)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    statuses = re.findall(r"-> (\d{3}) ", tried.stdout)
    assert statuses == ["501", "501"], "the bundled model makes no edits"
    assert tried.stdout.count("width * height") >= 6
