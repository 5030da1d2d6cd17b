"""Calls on a separate thread."""

import logging
import sys
from threading import Event, current_thread

import pytest

from mercury_lsp.engine_host.serial_executor import SerialExecutor


def test_calls_run_in_order_on_one_thread_and_none_after_close():
    thread, made = SerialExecutor("mercury-test"), []
    for number in range(5):
        thread.call(lambda number=number: made.append((number, current_thread().name)))
    assert thread.result(lambda: len(made)).result(10) == 5
    assert made == [(number, "mercury-test") for number in range(5)]
    thread.close()
    with pytest.raises(RuntimeError, match="mercury-test"):
        thread.call(made.clear)
    thread._thread.join(10)
    assert not thread._thread.is_alive() and len(made) == 5


def test_a_failing_call_is_logged_or_reported_and_the_next_one_runs(caplog):
    thread, done = SerialExecutor("mercury-test"), Event()
    with caplog.at_level(logging.ERROR):
        thread.call(lambda: exit(1))
        thread.call(done.set)
        assert done.wait(10)
    assert "mercury-test" in caplog.text
    with pytest.raises(ZeroDivisionError):
        thread.result(lambda: 1 / 0).result(10)
    thread.close()


def test_a_waiting_call_asks_for_the_interpreters_lock_sooner_than_a_slice_of_long_work_ends(monkeypatch):
    """With Python's interval, a loop that gives the lock back more often than that is never asked for it."""
    monkeypatch.setattr(sys, "setswitchinterval", (asked := []).append)
    thread = SerialExecutor("mercury-test")
    thread.result(list).result(10)
    thread.close()
    assert asked and max(asked) <= 0.0005
