"""Rows that passes have read are not read again, and change no text."""

from dataclasses import replace

import numpy as np
import pytest
from mercury_engine.api import FillRequest
from mercury_engine.kv_cache.read_ahead import KEPT_ROWS, ReadAhead, ReadRows
from mercury_engine.models.network import KeyValueSegment
from mercury_lab.engine import Engine

from tests.support import tiny

REQUEST = FillRequest(
    near="def view(self):\n    path = self.pa",
    far=("import os\n", "class View:\n    name = 1\n"),
    suffix=(")\n    return path\n", "\ndef other():\n    pass\n"),
    max_slots=8,
    multiline=True,
)


@pytest.fixture(scope="module", params=["torch", "native"])
def engine(request, tmp_path_factory) -> Engine:
    return tiny.on_backend(tmp_path_factory.mktemp("ahead") / "model", request.param, markers=tiny.QWEN_MARKERS)


@pytest.fixture
def rows(engine, monkeypatch) -> list[int]:
    """The number of tokens in each pass from now on."""
    seen, read = [], engine.reader.read_together

    def counted(forwards):
        seen.append(sum(each.rows for each in forwards))
        return read(forwards)

    monkeypatch.setattr(engine.reader, "read_together", counted)
    return seen


def test_the_same_fill_again_needs_no_pass(engine, rows):
    engine.cache.clear()
    first = engine.fill(REQUEST)
    assert sum(rows) > 0
    rows.clear()
    again = engine.fill(replace(REQUEST, foresees=True))
    assert (again.text, again.confidence, again.steps) == (first.text, first.confidence, first.steps)
    assert rows == []


def test_keys_read_nothing_twice_and_get_the_fills_from_scratch(engine, rows):
    typed = "th.join(self.name, 'views', 1 + 22"
    keys = [replace(REQUEST, near=REQUEST.near + typed[:end]) for end in range(len(typed))]
    engine.cache.clear()
    engine.fill(keys[0])
    rows.clear()
    found = [tiny.watched(engine, each) for each in keys]
    read = sum(rows)
    rows.clear()
    for key, (fill, steps) in zip(keys, found, strict=True):
        engine.cache.clear()
        scratch, scratch_steps = tiny.watched(engine, key)
        assert (fill.text, [slot.text for slot in steps[-1]]) == (scratch.text, [s.text for s in scratch_steps[-1]])
        assert fill.confidence == pytest.approx(scratch.confidence, rel=1e-3)
    assert 0 < read < sum(rows) / 4


def test_a_few_new_tokens_are_read_in_the_pass_that_verifies(engine, rows):
    engine.cache.clear()
    engine.fill(replace(REQUEST, max_slots=1))
    rows.clear()
    engine.fill(replace(REQUEST, near=REQUEST.near + "th + 1", max_slots=1))
    assert len(rows) == 1 and rows[0] > 1


def read_rows(ids: list[int], count: int) -> ReadRows:
    """The last `count` of these tokens, whose values name their tokens."""
    values = np.array(ids[-count:], np.float32)
    array = values.reshape(1, 1, 1, count, 1)
    return ReadRows(tuple(ids), KeyValueSegment(array, array), values[:, None])


def test_the_longest_run_after_the_same_tokens_is_found():
    ahead = ReadAhead()
    ahead.put(read_rows([1, 2, 3, 4], 3))
    ahead.put(read_rows([1, 2, 3, 5, 6], 4))
    ahead.put(read_rows([9, 2, 3, 4, 7], 3))
    found = ahead.find((1, 2, 3, 5, 8), 2)
    assert found is not None and found.hidden_TC.ravel().tolist() == [3, 5] == found.side.keys.ravel().tolist()
    assert (found.ids, found.rows, found.first) == ((1, 2, 3, 5), 2, 2)
    assert ahead.find((1, 2), 2) is None, "nothing is asked for"
    assert ahead.find((8, 2, 3, 4), 2) is None, "after another token"
    assert ahead.find((1, 2, 3), 0) is None, "the first row is not kept"


def test_the_latest_passes_are_kept_and_a_long_one_stays():
    ahead = ReadAhead()
    for number in range(2 * KEPT_ROWS):
        ahead.put(read_rows([number, 1], 1))
    assert ahead.find((0, 1), 1) is None and ahead.find((2 * KEPT_ROWS - 1, 1), 1) is not None
    assert ahead.find((KEPT_ROWS, 1), 1) is not None
    ahead.put(read_rows([7] * (2 * KEPT_ROWS), 2 * KEPT_ROWS))
    assert ahead.find((7, 7), 0) is not None
