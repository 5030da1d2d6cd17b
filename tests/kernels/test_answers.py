"""What decoders ask of a pass: the C kernels' answers equal their NumPy twin's in every build."""

import compile_kernels
import numpy as np
import pytest
from mercury_engine.models.row_answers import RowAnswers, RowQuestion, bits_of
from mercury_kernels.cpu.layers import Layers

from tests.support.asking import answered

pytestmark = pytest.mark.skipif(compile_kernels.compiler() is None, reason="no C compiler")


def told(loaded, logits: np.ndarray, question: RowQuestion, threads: int = 2) -> RowAnswers:
    layers = Layers(1, 64, 64, 1, 1, 64, 1e-5, threads, library=loaded)
    found = layers.answers(logits, question.banned_N, question.list_W, question.asked_A, question.draws)
    return RowAnswers(*found)


def same(found: RowAnswers, expected: RowAnswers) -> None:
    for name in ("token_W", "logit_W", "candidate_WK", "candidate_logit_WK", "asked_WA"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    for name in ("log_sum_W", "whole_W", "entropy_W"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=2e-6, atol=3e-6, err_msg=name)


def question_of(random: np.random.Generator, rows: int, tokens: int, draws: bool) -> RowQuestion:
    banned = np.stack([bits_of(random.random(tokens) < share) for share in (0.0, 0.02, 0.5, 1 - 2 / tokens)])
    return RowQuestion(
        random.integers(-1, len(banned), rows, dtype=np.int32),
        banned,
        draws,
        random.integers(0, tokens, 5, dtype=np.int32),
    )


@pytest.mark.parametrize("draws", [False, True])
@pytest.mark.parametrize("tokens", [1, 31, 33, 64, 65, 1023, 1025, 20_001])
@pytest.mark.parametrize("rows", [1, 5])
def test_answers_equal_the_twins(loaded, rows, tokens, draws):
    random = np.random.default_rng(tokens + rows)
    logits = (random.standard_normal((rows, tokens)) * random.choice([0.01, 3, 30], (rows, 1))).astype(np.float32)
    question = question_of(random, rows, tokens, draws)
    blocked = [row for row, number in enumerate(question.list_W) if number == 3]
    logits[blocked] += 100  # far from 0
    same(told(loaded, logits, question), answered(logits, question))


@pytest.mark.parametrize("tokens", [5, 130, 3000])
def test_of_equal_logits_the_first_token_wins(loaded, tokens):
    logits = np.zeros((2, tokens), np.float32)
    banned = np.zeros(tokens, np.bool_)
    banned[[0, 2]] = True
    question = RowQuestion(np.array([-1, 0], np.int32), bits_of(banned)[None], draws=True)
    found = told(loaded, logits, question)
    assert found.token_W.tolist() == [0, 1]
    assert found.candidate_WK[1, :3].tolist() == [1, 3, 4]
    assert found.entropy_W == pytest.approx(np.log([tokens, tokens - 2]), abs=1e-5)
    same(found, answered(logits, question))


def test_weights_that_compute_nan_and_rows_without_a_token_have_no_probability(loaded):
    logits = np.zeros((3, 2000), np.float32)
    logits[0, 1500], logits[1, 3] = np.nan, np.nan
    question = RowQuestion(np.array([-1, -1, 0], np.int32), bits_of(np.ones(2000, np.bool_))[None])
    for found in (told(loaded, logits, question), answered(logits, question)):
        assert np.isnan(found.logp_W).all()


def test_a_row_is_answered_alike_alone_and_with_any_number_of_threads(loaded):
    random = np.random.default_rng(0)
    logits, question = random.standard_normal((5, 9000)).astype(np.float32), question_of(random, 5, 9000, True)
    whole = told(loaded, logits, question, threads=3)
    for row in range(5):
        alone = RowQuestion(question.list_W[row : row + 1], question.banned_N, True, question.asked_A)
        one = told(loaded, logits[row : row + 1], alone, threads=1)
        for name in RowAnswers.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(one, name)[0], getattr(whole, name)[row], name)
