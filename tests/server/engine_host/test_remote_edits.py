"""A server for edits: its limit of requests, its deadlines, and cancelling."""

import asyncio
from threading import Event

import pytest
from mercury_engine.api import Control, Rewrite, RewriteRequest
from mercury_engine.errors import Cancelled, ModelError

from mercury_lsp.engine_host.remote import editing
from mercury_lsp.engine_host.remote.connection import MAX_MISSED, RemoteError
from mercury_lsp.engine_host.remote.editing import RemoteEdits
from tests.support.edit_server import COMPLETIONS, completes, serving, silent_until

REQUEST = RewriteRequest("a = 1\nb = 2\n", path="a.py", cursor=0)
NEW = "a = 1\nb = 3\n"


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every server counts as another machine."""
    monkeypatch.setattr(editing, "is_loopback", lambda url: False)
    monkeypatch.setattr(editing, "PAUSE_SECONDS", 0.0)


def test_another_machine_is_asked_so_many_times_a_minute(elsewhere: None):
    now = [0.0]
    with serving(completes(NEW)) as remote:
        edits = RemoteEdits(f"{remote.url}#zeta-2", 2, lambda: now[0])

        async def asked() -> list[str]:
            found = []
            for seconds in (0.0, 1.0, 2.0, 61.0, 61.5):
                now[0] = seconds
                answer = await edits.answer(REQUEST)
                assert isinstance(answer, Rewrite)
                found.append(answer.text)
            return found

        assert asyncio.run(asked()) == [NEW, NEW, REQUEST.text, NEW, NEW]
        assert edits.requests == len(remote.posted(COMPLETIONS)) == 4
        assert remote.url in edits.notice and "goes to" in edits.notice


def test_a_key_cancels_while_the_server_is_silent():
    release, cancel = Event(), Event()
    with serving(silent_until(lambda: (cancel.set(), release.wait()))) as remote:
        with pytest.raises(Cancelled):
            asyncio.run(RemoteEdits(f"{remote.url}#zeta-2", 2).answer(REQUEST, Control(cancel)))
        release.set()


def test_a_server_that_misses_deadlines_is_of_no_use(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(editing, "ANSWER_SECONDS", 0.05)
    release = Event()
    with serving(silent_until(release.wait)) as remote:
        edits = RemoteEdits(f"{remote.url}#zeta-2", 2)

        async def missed() -> None:
            for _ in range(MAX_MISSED - 1):
                answer = await edits.answer(REQUEST)
                assert isinstance(answer, Rewrite) and answer.text == REQUEST.text and not answer.hunks
            with pytest.raises(RemoteError, match="missed"):
                await edits.answer(REQUEST)

        asyncio.run(missed())
        release.set()


def test_an_unknown_format_is_an_error_with_the_list():
    with pytest.raises(ModelError, match="format gpt.*zeta-2"):
        RemoteEdits("http://127.0.0.1:9?format=gpt#zeta-2", 2)
