"""A GPU reveals, inserts and deletes the slots that the host will, and begins nothing after a last step."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from mercury_engine.decoding.diffusion import rules
from mercury_engine.decoding.diffusion.canvas import Canvas, Tokens
from mercury_engine.decoding.diffusion.rules import Choice, LinearSchedule
from mercury_engine.device.rows import UNSEEN
from mercury_engine.device.rules import DeviceRule, Slots, drawn, edited, likeliest, numbers_of, revealed

from tests.support.asking import told

DELETE, EXPAND, MASK, END, TOKENS = 9, 10, 11, 12, 13
RULES = {
    "entropy bound": rules.EntropyBound(1.5),
    "threshold": rules.ConfidenceThreshold(0.4),
    "schedule": LinearSchedule(5),
    "path planning": rules.PathPlanning(5, Choice()),
    "path planning that draws": rules.PathPlanning(5),
    "few tokens": rules.ConfidenceThreshold(0.4, Choice(temperature=0.8, top_k=3)),
    "expand and delete": rules.ExpandAndDelete(Choice(temperature=0.9, top_p=0.9, confidence="entropy")),
}


@pytest.mark.parametrize("end", [END, None], ids=["end marker", "no end"])
@pytest.mark.parametrize("name", RULES)
def test_a_gpu_follows_every_rule(name, end):
    rule, random = RULES[name], np.random.default_rng(0)
    for trial in range(80):
        slots, before, after, padding = random.integers((1, 1, 0, 1), (17, 6, 6, 18))
        logits = random.normal(0, 3, (slots, TOKENS)).astype(np.float32)
        logits[:, MASK] = -np.inf
        logits[slots // 2 :] = logits[: slots - slots // 2]  # equal slots: the leftmost counts
        tokens = Tokens(MASK, end, DELETE, EXPAND)
        canvas = Canvas(random.choice([MASK, MASK, 3, 4], slots), np.zeros(slots, np.float32), tokens)
        canvas.ids[0] = MASK
        answers, number = told(logits), trial % 5
        expected = rule.step(canvas, rule.choice.draw(answers, np.random.default_rng(trial)), number)
        around = [MASK] * before, [MASK] * after  # no slots
        ids = torch.tensor([*around[0], *canvas.ids, *around[1], *[0] * padding])
        answer, order = torch.full_like(ids, -1), torch.full_like(ids, UNSEEN)
        answer[before : before + slots], order[:-padding] = torch.arange(slots), 1
        reveal = rule.ahead(canvas, number, 1, np.random.default_rng(trial))
        numbers = torch.tensor(numbers_of(reveal, rule.limits(number, slots), 0), dtype=torch.double)
        figures = np.stack((answers.logit_W, answers.log_sum_W, answers.whole_W, answers.entropy_W), 1)
        flat = [answers.token_W.view(np.float32), figures, answers.candidate_WK.view(np.float32)]
        flat = np.concatenate([each.ravel() for each in (*flat, answers.candidate_logit_WK)])
        limits, at, flat = DeviceRule(*numbers[:12]), Slots(ids, answer, MASK), torch.from_numpy(flat)
        chosen = drawn(flat, slots, at, numbers[12:], limits) if rule.choice.draws else likeliest(flat, slots, limits)
        ids, order, answer = edited(at, revealed(at, *chosen, limits), order, limits)
        assert ids[order < UNSEEN].tolist() == [*around[0], *expected.ids, *around[1]]
        assert answer[answer >= 0].tolist() == [*range(len(expected))]
        assert answer[before:].tolist()[: len(expected)] == [*range(len(expected))]


def test_nothing_begins_where_a_step_reveals_the_last_mask():
    one = replace(Canvas.masked(3, Tokens(MASK)), ids=np.array([3, MASK, 4]))
    assert rules.EntropyBound().ahead(one, 0, 1).limits == ()
    assert LinearSchedule(4).ahead(Canvas.masked(3, Tokens(MASK)), 3, 1).limits == ()
    assert len(LinearSchedule(4).ahead(Canvas.masked(3, Tokens(MASK)), 2, 1).limits) == 2
