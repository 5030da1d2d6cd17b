"""Rules step by step, with a table in place of the network."""

from dataclasses import replace

import numpy as np
from mercury_engine.decoding.diffusion import rules
from mercury_engine.decoding.diffusion.rules import Canvas
from mercury_engine.models.row_answers import Choice, Tokens

from tests.support.asking import told

M, DELETE, EXPAND = 9, 8, 7
TOKENS = Tokens(M, delete=DELETE, expand=EXPAND)
RANDOM = np.random.default_rng(0)


def rows(*likeliest: tuple[int, float]) -> np.ndarray:
    """Logits in which a token has a probability, and the other nine share the rest."""
    table = np.empty((len(likeliest), 10), np.float32)
    for row, (token, probability) in zip(table, likeliest, strict=True):
        row[:] = np.log((1 - probability) / 9)
        row[token] = np.log(probability)
    return table


def trace(rule, ids, *tables) -> list[list[int]]:
    """The slots after each step."""
    canvas, seen = Canvas(np.array(ids), np.zeros(len(ids), np.float32), TOKENS), []
    for number, table in enumerate(tables):
        canvas = rule.step(canvas, rule.choice.draw(told(table), RANDOM), number)
        seen.append(canvas.ids.tolist())
    return seen


SURE_FIRST = rows((1, 0.99), (2, 0.6), (3, 0.97), (4, 0.5))


def test_a_threshold_reveals_all_slots_above_it_and_at_least_one():
    steps = trace(rules.confidence_threshold(0.9), [M] * 4, SURE_FIRST, SURE_FIRST, SURE_FIRST)
    assert steps == [[1, M, 3, M], [1, 2, 3, M], [1, 2, 3, 4]]


def test_an_entropy_bound_spends_its_nats_on_the_surest_slots():
    steps = trace(rules.entropy_bound(0.1), [M] * 4, SURE_FIRST, SURE_FIRST, SURE_FIRST)
    assert steps == [[1, M, 3, M], [1, 2, 3, M], [1, 2, 3, 4]]


def test_a_linear_schedule_reveals_floors_and_the_rest_in_its_last_step():
    steps = trace(rules.linear_schedule(4), [M] * 4, SURE_FIRST, SURE_FIRST, SURE_FIRST, SURE_FIRST)
    assert [row.count(M) for row in steps] == [4, 3, 2, 0]
    assert steps[1] == [1, M, M, M]


def test_path_planning_masks_again_what_is_least_sure_now():
    rule = rules.path_planning(4, Choice())
    later = rows((1, 0.2), (2, 0.9), (3, 0.9), (4, 0.9))
    assert trace(rule, [M] * 4, SURE_FIRST, later, SURE_FIRST, SURE_FIRST) == [
        [1, M, M, M],
        [M, M, 3, 4],
        [1, 2, 3, M],
        [1, 2, 3, 4],
    ]


def test_expand_turns_a_slot_into_two_masks():
    assert trace(rules.expand_and_delete(Choice()), [M, M], rows((1, 0.5), (EXPAND, 0.9))) == [[M, M, M]]


def test_behind_a_deleted_slot_all_masks_of_the_step_go():
    assert trace(rules.expand_and_delete(Choice()), [M, M, M], rows((1, 0.5), (DELETE, 0.9), (2, 0.6))) == [[M]]


def test_top_p_keeps_the_first_token_that_passes_it():
    table = np.log(np.array([[0.6, 0.3, 0.1]]))
    drawn = {int(Choice(temperature=1.0, top_p=0.7).draw(told(table), RANDOM).token_S[0]) for _ in range(200)}
    assert drawn == {0, 1}


def test_top_k_keeps_so_many_tokens():
    table = np.log(np.array([[0.6, 0.3, 0.1]]))
    assert {int(Choice(temperature=1.0, top_k=1).draw(told(table), RANDOM).token_S[0]) for _ in range(50)} == {0}


def test_nothing_begins_where_a_step_reveals_the_last_mask():
    one = replace(Canvas.masked(3, Tokens(M)), ids=np.array([3, M, 4]))
    assert rules.entropy_bound().ahead(one, 0, 1, RANDOM).limits == ()
    assert rules.linear_schedule(4).ahead(Canvas.masked(3, Tokens(M)), 3, 1, RANDOM).limits == ()
    assert len(rules.linear_schedule(4).ahead(Canvas.masked(3, Tokens(M)), 2, 1, RANDOM).limits) == 2
