"""Answers of captured work equal the twin's, whatever is asked together, and beyond its shapes."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from mercury_engine.device.answers import LISTS, ROWS, Head
from mercury_engine.models.row_answers import RowQuestion, bits_of

from tests.support import tiny
from tests.support.asking import answered


@pytest.fixture(scope="module")
def decoder():
    return tiny.network(rank=4)


def asked(random, rows, vocabulary, lists=3, draws=False, tokens=5):
    shares = np.linspace(0.02, 0.9, lists)
    banned = np.stack([bits_of(random.random(vocabulary) < share) for share in shares])
    numbers = random.integers(-1, lists, rows, dtype=np.int32)
    return RowQuestion(numbers, banned, draws, random.integers(0, vocabulary, tokens, dtype=np.int32))


@torch.no_grad()
def compare(decoder, questions, is_slots=False):
    torch.manual_seed(0)
    hidden = torch.randn(sum(each.rows for each in questions), decoder.config.hidden_size)
    logits = decoder.logits(hidden, is_slots).numpy()
    head = Head(decoder)
    for _ in range(2):  # the second time over what the first one left
        found = head.answers(hidden, questions, is_slots)
    ends = np.cumsum([each.rows for each in questions])[:-1]
    for told, part, question in zip(found, np.split(logits, ends), questions, strict=True):
        expected = answered(part, question)
        assert told.token_W.tolist() == expected.token_W.tolist()
        drawn = np.isfinite(expected.candidate_logit_WK)
        assert (told.candidate_WK[drawn] == expected.candidate_WK[drawn]).all()
        for field in (each for each in fields(told) if each.name != "candidate_WK"):
            values = getattr(told, field.name), getattr(expected, field.name)
            np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-4, err_msg=field.name)
    return head


@pytest.mark.parametrize("draws", [False, True])
@pytest.mark.parametrize("is_slots", [False, True])
@pytest.mark.parametrize("rows", [1, 16, 33])
def test_answers_equal_the_twins(decoder, rows, is_slots, draws):
    vocabulary = decoder.config.vocab_size + 2 * is_slots
    compare(decoder, [asked(np.random.default_rng(rows), rows, vocabulary, draws=draws)], is_slots)


def test_questions_of_one_pass_are_answered_by_one_run(decoder):
    random, vocabulary = np.random.default_rng(0), decoder.config.vocab_size
    questions = [asked(random, 4, vocabulary), asked(random, 1, vocabulary, 1, draws=True, tokens=0)]
    questions.append(RowQuestion.of([None] * 3, vocabulary, asked=[7]))
    head = compare(decoder, questions)
    assert len([*head._captures]) == 1


@pytest.mark.parametrize(("rows", "lists"), [(ROWS[-1] + 1, 2), (3, LISTS + 1)])
def test_what_is_beyond_the_shapes_is_answered_alike(decoder, rows, lists):
    head = compare(decoder, [asked(np.random.default_rng(1), rows, decoder.config.vocab_size, lists)])
    assert not [*head._captures]
