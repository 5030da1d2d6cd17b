"""Concurrent requests share forward passes without affecting each other."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from mercury_engine import scheduler
from mercury_engine.api import Control, Fill, FillRequest, GenerateRequest
from mercury_engine.errors import Cancelled, DeviceError, RequestError
from mercury_engine.models import batching
from mercury_engine.scheduler import MOST_SHARED_ROWS
from mercury_lab.engine import Engine

from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document
from tests.support import tiny
from tests.support.answering import answered, passes_from_now

FILES = ["calculator/parser.py", "library/shelves.py", "graphs/paths.py", "weather/stations.py"]


@pytest.fixture(scope="module", params=["torch", "native"])
def engine(request, tmp_path_factory) -> Engine:
    return tiny.on_backend(tmp_path_factory.mktemp("all") / "model", request.param)


def requests(**changes) -> list[FillRequest]:
    """Requests in four files, at cursors whose contexts share no cached blocks."""
    found = []
    for number, name in enumerate(FILES):
        text = (tiny.CODE / name).read_text("utf-8")
        snapshot = Document(f"file:///{name}", "python", 1, text).snapshot()
        cursor = text.index("\n", 1000 + 300 * number)
        context = ContextBuilder(800, 400).build(snapshot, cursor, name)
        found.append(replace(context.request(), max_slots=4 + number, multiline=True, **changes))
    return found


def filled(engine: Engine, *rounds: list[FillRequest]) -> list[Fill | Exception]:
    """The outcomes of all requests; one round is handed over before each pass."""
    outcomes = answered(engine, *rounds)
    return [outcomes[id(request)] for each in rounds for request in each]


def same(found: Fill, expected: Fill) -> None:
    assert (found.text, found.steps) == (expected.text, expected.steps)
    assert found.confidence == pytest.approx(expected.confidence, abs=1e-5)


@pytest.mark.parametrize("candidates", [1, 3])
def test_an_answer_does_not_depend_on_other_requests(engine, candidates):
    asked = requests(candidates=candidates)
    engine.cache.clear()
    alone = [engine.fill(each) for each in asked]
    engine.cache.clear()
    for found, expected in zip(filled(engine, asked[:2], asked[2:]), alone, strict=True):
        same(found, expected)


def test_with_the_kernels_answers_are_bit_identical(engine):
    if engine.backend != "native":
        pytest.skip("stock matrix products depend on their number of rows")
    asked = requests()
    alone = [engine.fill(each).confidence for each in asked]
    assert [each.confidence for each in filled(engine, asked)] == alone


def test_a_later_fill_joins_at_the_next_pass(engine, monkeypatch):
    first, second = requests()[2:]
    assert engine.fill(first).steps + engine.fill(second).steps > 3
    passes = passes_from_now(monkeypatch)
    filled(engine, [first], [second])
    assert [*map(len, passes[:2])] == [1, 2]


def test_a_long_prefill_and_the_steps_of_others_take_turns(engine, monkeypatch):
    engine.cache.clear()
    unknown, known = requests()[::3]
    steps = engine.fill(known).steps
    rows = passes_from_now(monkeypatch)
    filled(engine, [known, unknown])
    many = [number for number, each in enumerate(rows) if each[0] > MOST_SHARED_ROWS]
    assert len(many) > 1
    assert all(len(rows[number]) == 1 for number in many), "a long prefill has a pass of its own"
    assert many[0] + 2 < steps and rows[many[0] + 1][0] <= MOST_SHARED_ROWS, "between two of them the other continues"


@pytest.mark.parametrize("passed_over", [2, 100])
@pytest.mark.parametrize("is_text", [False, True], ids=["patient fill", "text"])
def test_a_long_prefill_that_can_wait_lets_the_fills_of_users_go_first(engine, monkeypatch, is_text, passed_over):
    monkeypatch.setattr(scheduler, "MOST_PASSED_OVER", passed_over)
    fill, patient = requests()[3], GenerateRequest(tiny.SAMPLE, max_tokens=1) if is_text else requests()[0]
    engine.cache.clear()
    alone = answered(engine, [patient])[id(patient)]
    engine.cache.clear()
    steps = engine.fill(fill).steps
    rows = passes_from_now(monkeypatch)
    outcomes = answered(engine, [patient, fill], controls=[Control(is_patient=not is_text)])
    parts = [number for number, each in enumerate(rows) if each[0] > MOST_SHARED_ROWS]
    assert outcomes[id(patient)].text == alone.text
    assert len(parts) > 1
    assert parts[0] == min(passed_over + 1, steps)


def test_a_user_who_types_is_read_for_before_what_can_wait(engine, monkeypatch):
    engine.cache.clear()
    patient, fill = requests()[0], requests()[3]
    begun, run_in_parts = [], batching.run_in_parts
    monkeypatch.setattr(batching, "run_in_parts", lambda net, one: begun.append(one) or run_in_parts(net, one))
    read = engine.fill(fill) and len(begun)
    engine.cache.clear()
    expected, begun[:] = begun[:], []
    answered(engine, [patient, fill], controls=[Control(is_patient=True)])
    assert [[*one.ids_T] for one in begun[:read]] == [[*one.ids_T] for one in expected]


def test_looking_ahead_joins_no_fill_and_gives_way_to_one(engine, monkeypatch):
    fill, ahead, newer = requests()[:3]
    passes = passes_from_now(monkeypatch)
    outcomes = answered(engine, [fill, ahead], controls=[Control(), Control(is_ahead=True)])
    assert all(isinstance(each, Fill) for each in outcomes.values()) and {*map(len, passes)} == {1}
    outcomes = answered(engine, [ahead], [newer], controls=[Control(is_ahead=True)])
    assert isinstance(outcomes[id(ahead)], Cancelled) and isinstance(outcomes[id(newer)], Fill)


def test_clients_are_served_in_turn_however_much_each_asks(engine, monkeypatch):
    monkeypatch.setattr(scheduler, "MOST_RUNNING", 1)
    asked = [replace(requests()[0], max_slots=number) for number in range(1, 6)]
    outcomes = answered(engine, asked, controls=[Control(client=client) for client in "aaabc"])
    assert [*outcomes] == [id(asked[number]) for number in (0, 3, 4, 1, 2)]


def test_a_cancelled_fill_stops_between_two_blocks_and_keeps_what_was_read(engine, monkeypatch):
    engine.cache.clear()
    request = requests()[0]
    whole = engine.fill(request).tokens_read
    engine.cache.clear()
    control = Control()
    with monkeypatch.context() as patch:
        passes = passes_from_now(patch, lambda number: control.cancel.set() if number == 2 else None)
        with pytest.raises(Cancelled):
            engine.fill(request, control)
    assert len(passes) == 2
    assert 0 < engine.fill(request).tokens_read < whole


def test_a_cancelled_or_invalid_request_does_not_affect_the_others(engine):
    asked = requests()
    alone = [engine.fill(each) for each in asked]
    controls = [Control() for _ in asked]
    controls[1].cancel.set()
    asked[2] = replace(asked[2], max_slots=0)
    outcomes = answered(engine, asked, controls=controls)
    found = [outcomes[id(each)] for each in asked]
    same(found[0], alone[0])
    assert isinstance(found[1], Cancelled) and isinstance(found[2], RequestError)
    same(found[3], alone[3])


def test_a_pass_without_memory_fails_only_the_requests_that_share_it(engine, monkeypatch):
    asked = requests()
    alone = [engine.fill(each) for each in asked]

    def full(number: int) -> None:
        if number == 1:
            raise MemoryError

    with monkeypatch.context() as patch:
        passes_from_now(patch, full)
        found = filled(engine, asked[:2], asked[2:])
    assert all(isinstance(each, DeviceError) for each in found[:2])
    assert [each.text for each in found[2:]] == [each.text for each in alone[2:]]


def test_a_deadline_holds_during_prefill_and_the_next_request_continues_it(engine, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("mercury_engine.scheduler.time.perf_counter", lambda: now[0])
    engine.cache.clear()
    late = replace(requests()[0], deadline_ms=50)
    with monkeypatch.context() as patch:
        passes = passes_from_now(patch, lambda number: now.__setitem__(0, 0.02 * number))
        fill = engine.fill(late)
    assert (fill.text, fill.confidence, len(passes)) == ("", 0.0, 3)
    read = engine.cache.tokens_read
    engine.fill(replace(late, deadline_ms=None))
    assert engine.cache.tokens_read > read > 0


@pytest.mark.parametrize("rank", [0, 4], ids=["causal", "masked"])
def test_a_deadline_returns_what_was_accepted_by_either_decoder(tmp_path, monkeypatch, rank):
    """The scheduler tells the steps; neither decoder looks at a clock."""
    engine, now = tiny.load(tiny.folder(tmp_path, rank=rank)), [0.0]
    request = FillRequest(near="x = 1", suffix=("\n",), max_slots=12, multiline=True, effort="high")
    whole = engine.fill(request)
    monkeypatch.setattr("mercury_engine.scheduler.time.perf_counter", lambda: now[0])
    with monkeypatch.context() as patch:
        passes_from_now(patch, lambda number: now.__setitem__(0, 0.02 * number))
        early = engine.fill(replace(request, deadline_ms=50))
    assert 0 < early.steps < whole.steps
    assert whole.text.startswith(early.text)


def layers_run(monkeypatch: pytest.MonkeyPatch, engine: Engine, at: Callable[[int], None]) -> list[int]:
    """Cut long passes into single layers, and count these from now on; `at` is called before each."""
    stack, counted = engine.reader._stack, []  # type: ignore[attr-defined]
    run = stack._library.mercury_run

    class Counted:
        def __getattr__(self, name: str):
            return getattr(library, name)

        def mercury_run(self, *given):
            counted.append(given[-1] - given[-2])
            at(len(counted))
            return run(*given)

    library = stack._library
    monkeypatch.setattr(stack, "_library", Counted())
    monkeypatch.setattr("mercury_engine.models.network.PART", 1)
    return counted


@pytest.mark.parametrize("stop", ["cancel", "deadline"])
def test_a_long_pass_stops_between_two_layers(engine, monkeypatch, stop):
    if engine.backend != "native":
        pytest.skip("torch does not pause")
    engine.cache.clear()
    request, control, now = replace(requests()[0], deadline_ms=50), Control(), [0.0]
    monkeypatch.setattr("mercury_engine.scheduler.time.perf_counter", lambda: now[0])

    def stopped(number: int) -> None:
        if stop == "cancel":
            control.cancel.set()
        else:
            now[0] = 1.0

    counted = layers_run(monkeypatch, engine, stopped)
    if stop == "cancel":
        with pytest.raises(Cancelled):
            engine.fill(request, control)
    else:
        assert engine.fill(request, control).text == ""
    assert counted == [1]
    assert engine.reader.config.num_hidden_layers > 1


def test_a_pass_in_parts_gives_the_same_text_and_lets_others_go_on(engine, monkeypatch):
    if engine.backend != "native":
        pytest.skip("torch does not pause")
    unknown, known = requests()[::3]
    engine.cache.clear()
    alone = [engine.fill(unknown), engine.fill(known)]
    engine.cache.clear()
    engine.fill(replace(known, max_steps=0))  # reads its context alone
    counted = layers_run(monkeypatch, engine, lambda number: None)
    for found, expected in zip(filled(engine, [unknown, known]), alone, strict=True):
        same(found, expected)
    layers = engine.reader.config.num_hidden_layers
    assert counted[:3] == [layers, 1, layers]
