"""Requests and answers are plain data: they come through JSON as they were, whatever they hold."""

import json
from typing import Any

import cattrs
import pytest
from cattrs.preconf.json import make_converter
from mercury_engine.api import (
    Chat,
    Control,
    EditHunk,
    Fill,
    FillRequest,
    GenerateRequest,
    Generation,
    RegionHunk,
    Rewrite,
    RewriteRequest,
    Sampling,
    TokenLogProbability,
)
from mercury_engine.utility import Utility

GAP = FillRequest(
    near="def é(",
    far=("import os\n", ""),
    suffix=(")\n", "x\n"),
    lookup_text=("y = 1\n",),
    multiline=True,
    effort="high",
    max_steps=0,
    candidates=3,
    deadline_ms=12.5,
    unread_limit=128,
    give_up_below=0.25,
    utility=Utility(1.0, 2.0),
    adapter="edit",
)
FILL = Fill("a", 0.5, 3, 0.25, True, 0, 7, 9)

PLAIN_DATA = [
    GAP,
    FillRequest(""),
    RewriteRequest("x = 1\n", history=(EditHunk(3, "a\n", "b\n", "other.py"), EditHunk(0, "", "")), enough=0.5),
    FILL,
    Fill("b", 0.25, 1, 0.5, others=(FILL, Fill("", 0.0, 0, 0.0))),
    GenerateRequest("x", marked=True, max_tokens=0, stop=("\n",), sampling=Sampling(0.5, seed=1), alternatives=2),
    GenerateRequest(
        chat=Chat(({"role": "user", "content": [{"type": "text", "text": "é"}]},), ({"a": {"b": 1}},), "x")
    ),
    Generation(
        "x", "stop", 3, 2, 1, 1, 0.5, (TokenLogProbability("x", -0.5, (120,), (TokenLogProbability("y", -1.5),)),)
    ),
    Rewrite("y\n", 2, 0.5, hunks=(RegionHunk(0, 1, "y\n", 0.5),)),
]


@pytest.mark.parametrize("data", PLAIN_DATA, ids=lambda data: type(data).__name__)
def test_requests_and_answers_survive_json(data: Any):
    converter = make_converter()
    text = json.dumps(converter.unstructure(data))
    assert converter.structure(json.loads(text), type(data)) == data


def test_a_control_does_not_travel():
    with pytest.raises((cattrs.errors.StructureHandlerNotFoundError, TypeError)):
        json.dumps(make_converter().unstructure(Control()))
