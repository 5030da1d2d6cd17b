"""Who may use the server, and what it takes from them."""

import asyncio
import json
import re
import socket
from collections import Counter
from contextlib import suppress
from threading import Thread, current_thread
from typing import Any

import pytest

from mercury_lsp.errors import UsageError
from mercury_lsp.http import guard, listener, service
from mercury_lsp.http.draft import CompletionDraft
from mercury_lsp.http.gap import Gap
from mercury_lsp.http.listener import HttpAddress, token_for
from tests.support.http_server import Served, served

TOKEN = "0123456789abcdef"


async def status(server: Served, **headers: str) -> int:
    return (await server.post("/infill", {"prompt": "x = "}, **headers)).status_code


async def test_a_page_that_points_its_own_name_at_this_machine_is_refused():
    async with served() as server:
        assert await status(server, Host="evil.example") == 403
        assert await status(server, Host="localhost:8012") == 200
        assert await status(server, Host="[::1]:8012") == 200


async def test_a_page_of_another_origin_is_refused_and_no_origin_is_allowed():
    async with served() as server:
        assert await status(server, Origin="https://evil.example") == 403
        assert await status(server, Origin="null") == 403
        own = await server.post("/infill", {"prompt": "x = "}, Origin=server.url)
        assert own.status_code == 200 and not [name for name in own.headers if name.startswith("access-control")]
        asked_before = await server.client.options("/infill", headers={"Origin": "https://evil.example"})
        assert asked_before.status_code == 403


async def test_with_a_token_every_route_but_health_asks_for_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MERCURY_TOKEN", TOKEN)
    async with served() as server:
        assert await status(server) == 401
        assert await status(server, Authorization=f"Bearer {TOKEN[:-1]}") == 401
        odd = {"Authorization": f"Bearer {TOKEN}é".encode()}
        assert (await server.client.post("/infill", json={}, headers=odd)).status_code == 401
        assert await status(server, Authorization=f"Bearer {TOKEN}", Host="team.example") == 200
        assert (await server.client.get("/health")).status_code == 200
        refused = await server.client.get("/v1/models")
        assert refused.json()["error"]["code"] == "invalid_api_key"
        assert "wrong token" in (await server.client.get("/api/tags")).json()["error"], "as Ollama's clients read it"


def test_others_reach_the_server_only_with_a_token(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MERCURY_TOKEN", raising=False)
    assert token_for(HttpAddress.parse("")) is None
    for address in ("0.0.0.0", "[::]:80", "team.example:80", "10.0.0.1:8012"):
        with pytest.raises(UsageError, match="set MERCURY_TOKEN"):
            token_for(HttpAddress.parse(address))
    monkeypatch.setenv("MERCURY_TOKEN", "short")
    with pytest.raises(UsageError, match="16 characters"):
        token_for(HttpAddress.parse("0.0.0.0"))
    for blank in (" " * 20, f" {TOKEN}", f"{TOKEN}\n", f"{TOKEN}\t{TOKEN}"):
        monkeypatch.setenv("MERCURY_TOKEN", blank)
        with pytest.raises(UsageError, match="blanks"):
            token_for(HttpAddress.parse(""))
    monkeypatch.setenv("MERCURY_TOKEN", TOKEN)
    assert token_for(HttpAddress.parse("0.0.0.0")) == token_for(HttpAddress.parse("")) == TOKEN


@pytest.mark.parametrize("text", ["70000", "a:b", "http://x", "x:1:2", "::1", "a b"])
def test_another_address_is_refused(text: str):
    with pytest.raises(UsageError, match="not HOST:PORT"):
        HttpAddress.parse(text)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", None),
        (b"\xff\xfe", "not JSON in UTF-8"),
        (b"[1]", "not a JSON object"),
        (b"{", "not JSON"),
        (b'{"prompt": NaN}', "not JSON"),
        (b'{"prompt": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"prompt": 1}', "prompt"),
        (b'{"stop": {"a": 1}}', "stop"),
        (b'{"max_tokens": "12"}', "max_tokens"),
        (b'{"max_tokens": 1e999}', "max_tokens: inf is not an integer"),
        (b'{"t_max_predict_ms": 1' + b"0" * 400 + b"}", "t_max_predict_ms"),
        (b'{"prompt": "\xed\xa0\x80"}', "not JSON in UTF-8"),
        (b'{"stream": 1}', "stream"),
        (b'{"stream_options": []}', "stream_options"),
        (b'{"prompt": "\\ud800"}', None),
        (b'{"max_tokens": 12.0, "unknown": null}', None),
    ],
)
async def test_a_wrong_body_is_one_clear_error(body: bytes, says: str | None):
    async with served() as server:
        reply = await server.client.post("/v1/fim/completions", content=body)
        assert reply.status_code == (400 if says else 200), reply.text
        assert says is None or says in reply.json()["error"]["message"]
        assert len(reply.content) < 2000


async def test_a_body_beyond_the_limit_is_refused():
    async with served() as server:
        whole = await server.client.post("/infill", content=b"x" * (guard.MAX_BODY_BYTES + 1))
        assert whole.status_code == 413
        fits = json.dumps({"prompt": "x" * (guard.MAX_BODY_BYTES - 100)})
        assert (await server.client.post("/infill", content=fits)).status_code == 200


async def until_closed(server: Served, *sent: bytes) -> bytes:
    """What the server says to these bytes, and nothing after them, until it closes the connection."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for each in sent:
        writer.write(each)
        await writer.drain()
    said = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return said


HEAD = b"POST /infill HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"


async def test_a_client_that_falls_silent_is_hung_up_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listener, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    async with served() as server:
        assert await until_closed(server) == b""
        assert await until_closed(server, b"POST /infill HTT") == b""
        assert b"408" in (await until_closed(server, HEAD + b"{")).partition(b"\r\n")[0]
        assert await status(server) == 200


async def opened(server: Served, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """So many connections that say nothing."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    return [await asyncio.open_connection(host, int(port)) for _ in range(count)]


async def fresh_status(server: Served) -> int:
    """That of a request on a connection of its own."""
    return (await server.client.post("/infill", json={}, headers={"Connection": "close"})).status_code


async def test_connections_beyond_the_limit_are_answered_and_leave_room_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 20)
    async with served() as server:
        connections = await opened(server, 40)
        assert await fresh_status(server) == 503
        reader, writer = connections[0]
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"200" in await reader.readline(), "those within the limit are served"
        for _, writer in connections:
            writer.close()
        while await fresh_status(server) != 200:
            await asyncio.sleep(0)


async def test_few_connections_are_accepted_before_others_have_their_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listener, "ACCEPTED_TOGETHER", 4)
    made: list[int] = []
    told = listener._Protocol.connection_made

    def noted(protocol: listener._Protocol, transport: asyncio.Transport) -> None:
        made.append(turn)
        told(protocol, transport)

    monkeypatch.setattr(listener._Protocol, "connection_made", noted)
    async with served() as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        callers = [socket.create_connection((host, int(port))) for _ in range(100)]  # the loop stands still meanwhile
        turn = 0
        while len(made) < 100:
            await asyncio.sleep(0)
            turn += 1
        assert max(Counter(made).values()) <= 8
        for each in callers:
            each.close()


async def test_a_client_that_does_not_read_its_replies_is_let_go(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listener, "SEND_SECONDS", 0.2)
    asking = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with served() as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        slow.connect((host, int(port)))
        slow.settimeout(0)
        with pytest.raises(OSError):  # it takes no further request, and then hangs up
            while True:
                with suppress(BlockingIOError):
                    slow.send(asking * 100)
                await asyncio.sleep(0.001)
        slow.close()
        assert await status(server) == 200
        answered = re.search(r'requests_total\{route="/v1/models",status="200"\} (\S+)', await metrics(server))
        assert answered and float(answered[1]) < 1000, "few replies are made that nobody reads"


async def metrics(server: Served) -> str:
    return (await server.client.get("/metrics")).text


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


EDITED = (
    "<|current_file_content|>\ncurrent_file_path: a.py\n{}<|code_to_edit|>\nx = 1<|cursor|>\n<|/code_to_edit|>\n"
    "<|/current_file_content|>\n<|edit_diff_history|>\n{}<|/edit_diff_history|>"
)

WIDE_DIFF = "@@ -1 +1 @@\n-a = 1\n+b = 2\n" * 40_000

HEAVY: dict[str, tuple[str, dict[str, Any]]] = {
    "histories without an end": ("/v1/chat/completions", {"messages": [user("<edit_history>" * 140_000)]}),
    "diffs without an end": ("/v1/completions", {"prompt": "<|file_sep|>" + "a.diff\noriginal:\n" * 110_000}),
    "templates of many files": ("/v1/completions", {"prompt": "<|file_sep|>" * 150_000 + "<|fim_prefix|>a"}),
    "a long file and a long diff": (
        "/v1/edit/completions",
        {"messages": [user(EDITED.format("y = 1\n" * 60_000, WIDE_DIFF))]},
    ),
    "a million wrong items": ("/infill", {"input_extra": [1] * 1_000_000}),
    "a million empty items": ("/infill", {"input_extra": [{}] * 600_000}),
    "very many fields": ("/infill", {f"{number:x}": 1 for number in range(180_000)}),
    "very many values": ("/infill", {"x": [[]] * 500_000}),
    "a text instead of a list": ("/v1/chat/completions", {"messages": "x" * 1_000_000}),
    "many stop texts": ("/v1/fim/completions", {"stop": [f"stop{number}" for number in range(100_000)]}),
    "long stop texts": ("/v1/chat/completions", {"messages": [user("x")], "stop": ["x" * 100_000]}),
    "many candidates": ("/mercury/v1/answer", {"fill": {"near": "x", "candidates": 1_000_000}}),
    "a long block": ("/mercury/v1/answer", {"fill": {"near": "x", "far": ["x" * 1_000_000]}}),
}


@pytest.mark.parametrize(("path", "body"), HEAVY.values(), ids=HEAVY)
async def test_no_body_within_the_limit_keeps_the_server_from_others(path: str, body: dict[str, Any]):
    """Each took from seconds to hours of the event loop, which editors share."""
    async with served() as server:
        heavy = asyncio.ensure_future(server.post(path, body))
        assert (await asyncio.wait_for(heavy, 20)).status_code in (200, 400, 501)
        assert await status(server) == 200


async def test_text_counts_as_one_value_whatever_is_in_it():
    async with served() as server:
        body: dict[str, Any] = {"prompt": '["a", {"b": 1}],\n' * 40_000 + "x = "}
        assert (await server.post("/infill", body)).status_code == 200
        assert (await server.post("/infill", body | {"x": [1] * 201_000})).status_code == 400
        assert (await server.post("/infill", body | {"x": ["\\"] * 50_000})).status_code == 400


async def test_many_other_files_are_searched_for_secrets_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch):
    threads = list[Thread]()

    def begun(gap: Gap) -> CompletionDraft:
        threads.append(current_thread())
        return CompletionDraft(gap)

    monkeypatch.setattr(service, "CompletionDraft", begun)
    async with served() as server:
        for size in (1, 60):
            others = [{"filename": f"a{number}.py", "text": "x = 1\n" * 90} for number in range(size)]
            assert (await server.post("/infill", {"prompt": "x = ", "input_extra": others})).status_code == 200
    assert [each is current_thread() for each in threads] == [True, False]
