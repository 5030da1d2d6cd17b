"""`/v1/decisions` of Mercury's API: how likely the model finds each answer to a question about a state."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mercury_engine.api import FillRequest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp.documents.redaction import without_secrets
from mercury_lsp.http import fields, replies
from mercury_lsp.http.errors import bad_request
from mercury_lsp.http.service import Service

MAX_OPTIONS = 255

MAX_QUESTIONS = 32

MAX_STATE_CHARS = 6_000
"""About what the model reads; the end of a longer state counts."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question; instructions and criteria are texts or any JSON."""

    type: Literal["noul", "choice", "score"]
    instructions: Any = ""
    criteria: Any = None


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """The fields that are read."""

    questions: dict[str, Question]
    state: Any = ""


MAX_QUESTION_CHARS = 6_000
"""Longest question with its criteria; the model reads all of it."""


def routes(service: Service) -> list[Route]:
    async def decide(request: Request) -> Response:
        asked = await fields.read(request, DecisionRequest)
        if not 1 <= len(asked.questions) <= MAX_QUESTIONS:
            raise bad_request(f"ask 1 to {MAX_QUESTIONS} questions", "questions")
        model, state, answers, read = await service.model(), _text(asked.state)[-MAX_STATE_CHARS:], {}, 0
        for name, question in asked.questions.items():
            options = _options(question)
            if len(asking := _prompt("", question, options)) > MAX_QUESTION_CHARS:
                raise bad_request(f"a question has more than {MAX_QUESTION_CHARS:,} characters", "questions")
            prompt = without_secrets(state + asking, "plaintext")
            answering = service.compare(FillRequest(near=prompt), [f" {option}" for option in options])
            nats, tokens = await replies.while_connected(request, answering)
            answers[name], read = _answer(question, options, _shares(nats)), read + tokens
        return JSONResponse({"model": model, "answers": answers, "usage": {"input_tokens": read, "output_tokens": 0}})

    return [Route("/v1/decisions", decide, methods=["POST"])]


def _options(question: Question) -> dict[str, str]:
    """The answers to choose from, with what each means. Raises ApiError."""
    criteria = question.criteria
    if question.type == "noul":
        meanings = criteria if isinstance(criteria, dict) else {}
        return {"yes": _text(meanings.get("true")), "no": _text(meanings.get("false"))}
    if question.type == "choice" and isinstance(criteria, dict) and 1 <= len(criteria) <= MAX_OPTIONS:
        return {fields.text_of(label): _text(meaning) for label, meaning in criteria.items()}
    if question.type == "score" and isinstance(criteria, list) and 1 <= len(criteria) <= MAX_OPTIONS:
        return {str(number): _text(meaning) for number, meaning in enumerate(criteria)}
    raise bad_request(f"a {question.type} question has criteria for 1 to {MAX_OPTIONS} answers", "questions")


def _prompt(state: str, question: Question, options: Mapping[str, str]) -> str:
    listed = "".join(f"- {option}: {meaning}\n" if meaning else f"- {option}\n" for option, meaning in options.items())
    return f"{state}\n\nQuestion: {_text(question.instructions)}\nPossible answers:\n{listed}Answer:"


def _answer(question: Question, options: Mapping[str, str], shares: Sequence[float]) -> dict[str, Any]:
    probabilities = dict(zip(options, shares, strict=True))
    best = max(probabilities, key=probabilities.__getitem__)
    if question.type == "noul":
        return {"type": "noul", "noul": probabilities["yes"]}
    about = {"type": question.type, "confidence": probabilities[best], "probabilities": probabilities}
    if question.type == "choice":
        return about | {"choice": best}
    expected = sum(number * share for number, share in enumerate(shares))
    return about | {"score": expected, "legend": dict(zip(options, question.criteria, strict=True))}


def _shares(nats: Sequence[float]) -> list[float]:
    """Probabilities from log-likelihoods."""
    most = max(nats)
    weights = [math.exp(each - most) for each in nats]
    return [each / sum(weights) for each in weights]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return fields.text_of(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
