"""What a denoise step takes beyond its pass and head.

For each rule: the question, the C kernels' answers to it from random logits of a large vocabulary, and the rule's step.
Beside it the same with the NumPy twin's answers.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mercury_engine.decoding.diffusion.rules import (
    Canvas,
    Rule,
    confidence_threshold,
    entropy_bound,
    expand_and_delete,
    linear_schedule,
    path_planning,
)
from mercury_engine.models.arrays import FloatArray
from mercury_engine.models.row_answers import RowAnswers, RowQuestion, Tokens
from mercury_kernels.cpu.layers import Layers

from tests.support.asking import answered

VOCABULARY, SLOTS, BANNED = 151_938, (8, 16), 2_000

TOKENS, EDITED = Tokens(mask=5), Tokens(mask=5, delete=6, expand=7)

RULES: dict[str, Rule] = {
    "entropy bound": entropy_bound(1.0),
    "threshold": confidence_threshold(0.9),
    "linear schedule": linear_schedule(16),
    "path planning": path_planning(16),
    "expand and delete": expand_and_delete(),
}


def steps(threads: int, rounds: int) -> list[dict[str, Any]]:
    """By slots and rule: milliseconds of a step, the fastest of several."""
    layers = Layers(1, 64, 64, 1, 1, 64, 1e-5, threads)
    return [measured(layers, name, slots, rounds) for slots in SLOTS for name in RULES]


def measured(layers: Layers, name: str, slots: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of a rule's step, by the C kernels and by the twin."""
    random = np.random.default_rng(0)
    logits_SV = (3 * random.standard_normal((slots, VOCABULARY))).astype(np.float32)
    hidden_V = np.zeros(VOCABULARY, np.bool_)
    hidden_V[random.integers(8, VOCABULARY, BANNED)] = True

    def native(logits_SV: FloatArray, question: RowQuestion) -> RowAnswers:
        found = layers.answers(logits_SV, question.banned_N, question.list_W, question.asked_A, question.draws)
        return RowAnswers(*found)

    def step(answers: Callable[[FloatArray, RowQuestion], RowAnswers]) -> Canvas:
        rule = RULES[name]
        question = RowQuestion.of([hidden_V.copy()] * slots, VOCABULARY, rule.choice.draws)
        told = answers(logits_SV, question)
        drawn = rule.choice.draw(told, np.random.default_rng(0))
        return rule.step(Canvas.masked(slots, EDITED if name == "expand and delete" else TOKENS), drawn, 0)

    assert np.array_equal(step(native).ids, step(answered).ids), f"{name}: the twin writes something else"
    ms, twin_ms = min(times(lambda: step(native), rounds)), min(times(lambda: step(answered), 2))
    return {"rule": name, "slots": slots, "ms": ms, "twin_ms": twin_ms, "ratio": twin_ms / ms}


def times(act: Callable[[], Any], rounds: int) -> list[float]:
    """Milliseconds of every round."""
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        act()
        found.append(1e3 * (time.perf_counter() - started))
    return found
