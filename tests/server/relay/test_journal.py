"""What a hub has noted is what another one reads, wherever the first was killed."""

import os
import sys
from collections.abc import Iterator

import pytest

from mercury_lsp.relay import journal as journal_module
from mercury_lsp.relay.journal import Journal, Record
from mercury_lsp.relay.resuming import resumed
from mercury_lsp.relay.session import Session
from mercury_lsp.transport.framing import framed
from tests.support.editor import span

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="has no files in memory")

URI = "file:///a.py"


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal.make()
    assert made is not None
    yield made
    made.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for each in ends:
        os.close(each)


def again(journal: Journal) -> Journal:
    """The journal as another process finds it."""
    return Journal(journal.descriptors)


def test_what_is_taken_and_noted_is_read_again_in_order(journal: Journal, pipe: tuple[int, int]):
    assert journal.is_empty and again(journal).is_empty
    os.write(pipe[1], b"one")
    assert journal.take(pipe[0]) == b"one"
    journal.note_output(b"answer")
    os.write(pipe[1], b"two")
    assert journal.take(pipe[0]) == b"two"
    found = [Record(b"<", b"one"), Record(b">", b"answer"), Record(b"<", b"two")]
    assert list(again(journal).records()) == found == list(journal.records())


def test_an_editors_socket_is_read_as_a_pipe_is(journal: Journal):
    import socket

    ours, editors = socket.socketpair()
    with ours, editors:
        editors.sendall(b"said")
        assert journal.take(ours.fileno()) == b"said"
        assert list(again(journal).records()) == [Record(b"<", b"said")]


def test_the_end_of_the_editors_input_is_empty_and_not_noted(journal: Journal):
    reading, writing = os.pipe()
    os.close(writing)
    assert journal.take(reading) == b"" and again(journal).is_empty
    os.close(reading)


def test_bytes_moved_and_not_noted_are_not_lost(journal: Journal, pipe: tuple[int, int], monkeypatch):
    os.write(pipe[1], b"before")
    journal.take(pipe[0])
    os.write(pipe[1], b"moved")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "pwrite", _killed)
        journal.take(pipe[0])
    after = again(journal)
    assert [record.data for record in after.records()] == [b"before", b"moved"]
    os.write(pipe[1], b"after")
    after.take(pipe[0])
    assert [record.data for record in again(after).records()] == [b"before", b"moved", b"after"]


def _killed(*_: object) -> int:
    raise KeyboardInterrupt


def test_output_that_was_noted_in_part_was_not_written_and_is_forgotten(journal: Journal):
    journal.note_output(b"whole")
    size = os.fstat(journal.descriptors[0]).st_size
    journal.note_output(b"in part")
    os.ftruncate(journal.descriptors[0], size + 12)
    assert list(again(journal).records()) == [Record(b">", b"whole")]
    after = again(journal)
    after.note_output(b"new")
    assert [record.data for record in again(after).records()] == [b"whole", b"new"]


def test_the_rest_of_what_was_being_written_is_known(journal: Journal, pipe: tuple[int, int]):
    journal.note_output(b"first")
    assert again(journal).unwritten() == b"first"
    assert journal.send(pipe[1], 5) == 5
    assert again(journal).unwritten() == b""
    journal.note_output(b"second")
    assert journal.send(pipe[1], 2) == 2
    os.write(pipe[1], b"|")
    assert journal.take(pipe[0]) == b"firstse|"
    assert again(journal).unwritten() == b"cond"
    journal.send(pipe[1], 4)
    assert again(journal).unwritten() == b""


def test_an_editors_log_that_is_appended_to_is_written_as_a_pipe_is(journal: Journal, tmp_path):
    with (tmp_path / "log").open("ab", buffering=0) as log:
        for said in (b"one", b"two"):
            journal.note_output(said)
            assert journal.send(log.fileno(), 2) == 2 and again(journal).unwritten() == said[2:]
            assert journal.send(log.fileno(), 10) == 1 and again(journal).unwritten() == b""
    assert (tmp_path / "log").read_bytes() == b"onetwo"


def test_a_state_takes_the_place_of_all_that_was_said(journal: Journal, pipe: tuple[int, int], monkeypatch):
    monkeypatch.setattr(journal_module, "MAX_BYTES", 150)
    for number in range(4):
        assert journal.is_long == (number > 1)
        journal.note_output(b"x" * 60)
        journal.send(pipe[1], 60)
    journal.replace({"at": 1})
    assert not journal.is_long and [record.kind for record in again(journal).records()] == [b"S"]
    assert again(journal).unwritten() == b""
    journal.note_output(b"more")
    assert again(journal).unwritten() == b"more"


@pytest.mark.parametrize("calls", range(5))
def test_a_replacement_that_was_begun_counts_once_it_is_whole(journal: Journal, monkeypatch, calls: int):
    journal.note_output(b"old")
    write, left = os.pwrite, iter([True] * calls)

    def pwrite(*arguments: object) -> int:
        if not next(left, False):
            raise KeyboardInterrupt
        return write(*arguments)

    monkeypatch.setattr(os, "pwrite", pwrite)
    try:
        journal.replace({"state": 1})
        is_whole = True
    except KeyboardInterrupt:
        is_whole = False
    assert [record.kind for record in again(journal).records()] == ([b"S"] if is_whole else [b">"])
    assert is_whole == (calls >= 2)


def test_recent_restarts_are_counted(journal: Journal, monkeypatch):
    assert [again(journal).count_restart() for _ in range(3)] == [1, 2, 3]
    monkeypatch.setattr(journal_module, "RECENT_SECONDS", 0.0)
    assert again(journal).count_restart() == 1


def said(journal: Journal, pipe: tuple[int, int], message: dict[str, object]) -> None:
    os.write(pipe[1], framed({"jsonrpc": "2.0"} | message))
    journal.take(pipe[0])


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_session_is_what_it_was(journal: Journal, pipe: tuple[int, int], is_replaced: bool):
    session = Session()
    item = {"uri": URI, "languageId": "python", "version": 1, "text": "x = "}
    about = {
        "textDocument": {"uri": URI, "version": 2},
        "contentChanges": [{"range": span((0, 4), (0, 4)), "text": "é"}],
    }
    spoken: list[dict[str, object]] = [
        {"id": "one", "method": "initialize", "params": {"capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": item}},
        {"method": "textDocument/didChange", "params": about},
        {"id": 2, "method": "answered", "params": {}},
        {"id": 3, "method": "pending", "params": {}},
    ]
    registered = {"registrations": [{"id": "r", "method": "m"}]}
    answers: list[dict[str, object]] = [
        {"id": "one", "result": {}},
        {"id": 2, "result": 1},
        {"id": "theirs", "method": "client/registerCapability", "params": registered},
    ]
    for message in spoken:
        said(journal, pipe, message)
        session.hear_client({"jsonrpc": "2.0"} | message)
    for message in answers:
        session.hear_daemon({"jsonrpc": "2.0"} | message)
        journal.note_output(framed({"jsonrpc": "2.0"} | message))
        journal.send(pipe[1], 10**6)
        os.read(pipe[0], 10**6)
    if is_replaced:
        journal.replace(session.state())
    os.write(pipe[1], b"Content-Length: 3\r\n\r\n{")
    journal.take(pipe[0])
    found = resumed(again(journal))
    assert found.is_resumed and found.session.state() == session.state()
    assert found.session.state()["documents"] == [item | {"version": 2, "text": "x = é"}]
    assert [answer["id"] for answer in found.session.lose()] == [3]
    assert list(found.decoder.feed(b" }")) == [{}]


def test_without_a_journal_a_conversation_begins():
    assert not resumed(None).is_resumed and resumed(None).session.introduction() is None
