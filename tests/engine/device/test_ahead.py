"""A GPU reveals the slots that the host will reveal, and what it began is dropped where the host goes another way."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from mercury_engine.decoding.diffusion.canvas import Canvas, Tokens
from mercury_engine.decoding.diffusion.rules import (
    Choice,
    ConfidenceThreshold,
    EntropyBound,
    ExpandAndDelete,
    LinearSchedule,
    PathPlanning,
)
from mercury_engine.device.ahead import _numbers, revealed

from tests.support.asking import told

MASK, END, TOKENS = 11, 12, 13
RULES = {
    "entropy bound": EntropyBound(1.5),
    "threshold": ConfidenceThreshold(0.4),
    "schedule": LinearSchedule(5),
    "path planning": PathPlanning(5, Choice()),
}


@pytest.mark.parametrize("end", [END, None], ids=["end marker", "no end"])
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("name", RULES)
def test_a_gpu_follows_every_rule_that_draws_nothing(name, shift, end):
    rule, random = RULES[name], np.random.default_rng(0)
    for trial in range(40):
        slots, before, after = random.integers(1, 17), random.integers(1, 6), random.integers(0, 6)
        logits = random.normal(0, 3, (slots, TOKENS)).astype(np.float32)
        logits[:, MASK] = -np.inf
        logits[slots // 2 :] = logits[: slots - slots // 2]  # equal slots: the leftmost counts
        canvas = Canvas(random.choice([MASK, MASK, 3, 4], slots), np.zeros(slots, np.float32), Tokens(MASK, end))
        canvas.ids[0] = MASK
        answers, number = told(logits), trial % 5
        expected = rule.step(canvas, rule.choice.draw(answers, random), number)
        ids, answer = np.full(24 + after, MASK), np.full(24 + after, -1)  # masks around are no slots
        ids[before : before + slots], answer[before : before + slots] = canvas.ids, np.arange(slots)
        reveal = rule.ahead(canvas, number, shift)
        numbers = _numbers(reveal, rule.limits(number, slots))
        figures = np.stack((answers.logit_W, answers.log_sum_W, answers.whole_W, answers.entropy_W), 1)
        ids_R, answer_R, token_W, figures_W4 = map(torch.from_numpy, (ids, answer, answers.token_W, figures))
        found = revealed(ids_R, answer_R, token_W, figures_W4, torch.tensor(numbers), MASK).numpy()
        assert found[before : before + slots].tolist() == expected.ids.tolist()
        rest = np.r_[found[:before], found[before + slots :]]
        assert (rest == MASK).all()


def test_a_rule_that_draws_or_changes_the_number_of_slots_is_the_hosts():
    canvas = Canvas.masked(4, Tokens(MASK))
    assert ExpandAndDelete().ahead(canvas, 0, 1) is None
    assert PathPlanning().ahead(canvas, 0, 1) is None
    assert ConfidenceThreshold(0.9, Choice(temperature=0.5)).ahead(canvas, 0, 1) is None


def test_nothing_begins_where_a_step_reveals_the_last_mask():
    one = replace(Canvas.masked(3, Tokens(MASK)), ids=np.array([3, MASK, 4]))
    assert EntropyBound().ahead(one, 0, 1).limits == ()
    assert LinearSchedule(4).ahead(Canvas.masked(3, Tokens(MASK)), 3, 1).limits == ()
    assert len(LinearSchedule(4).ahead(Canvas.masked(3, Tokens(MASK)), 2, 1).limits) == 2
