"""`/v1/fim/completions` of Mercury's and Mistral's APIs."""

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp.http import fields, replies
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.gap import Gap
from mercury_lsp.http.service import Service

ONE_PARAGRAPH = ("\n\n", "\n \n")
"""Where a completion stops for a client that does not say."""

DEFAULT_TOKENS = 512
MAX_TOKENS = 8192
"""Most tokens of one text; a negative limit means as many, as in llama.cpp's server. 0 only reads."""

BLANK_SUFFIX = "<|endoftext|>"
"""Continue sends it in place of no suffix."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a stream tells besides."""

    include_usage: bool = False


@dataclass(frozen=True, slots=True)
class StreamableRequest:
    """Fields of requests that may be answered by a stream."""

    stream: bool = False
    stream_options: StreamOptions | None = None

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return self.stream_options is not None and self.stream_options.include_usage


@dataclass(frozen=True, slots=True)
class FimRequest(StreamableRequest):
    """The fields that are read; the text is always the likeliest, so those of sampling are not."""

    prompt: str = ""
    suffix: str = ""
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: tuple[str, ...] = ONE_PARAGRAPH
    n: int = 1

    def gap(self) -> Gap:
        limits = (self.max_completion_tokens, self.max_tokens, DEFAULT_TOKENS)
        suffix = "" if self.suffix == BLANK_SUFFIX else self.suffix
        return Gap(
            self.prompt,
            suffix,
            max_tokens=bounded(next(each for each in limits if each is not None)),
            stop=self.stop,
            candidates=max(1, min(self.n, MAX_CANDIDATES)),
        )


MAX_CANDIDATES = 8


def bounded(tokens: int) -> int:
    """A client's limit of tokens, as we have it."""
    return min(tokens, MAX_TOKENS) if tokens >= 0 else MAX_TOKENS


def routes(service: Service) -> list[Route]:
    async def complete(request: Request) -> Response:
        asked = await fields.read(request, FimRequest)
        return await answered(request, service, asked.gap(), asked.stream, asked.includes_usage)

    return [Route("/v1/fim/completions", complete, methods=["POST"])]


async def answered(request: Request, service: Service, gap: Gap, stream: bool, include_usage: bool) -> Response:
    """A gap's completion as OpenAI's, Mercury's and Mistral's clients read it: in three places."""
    head = await replies.head(service, "cmpl") | {"object": "text_completion"}
    writing = service.write(gap)
    if not stream:
        return await replies.whole(request, writing, lambda completion: head | _whole(completion))

    def last(completion: Completion) -> list[replies.Body]:
        ends: list[replies.Body] = [head | {"choices": [_choice("", completion.finish_reason, "delta")]}]
        return ends + [head | {"choices": [], "usage": replies.usage(completion)}] * include_usage

    def piece(text: str) -> replies.Body:
        return head | {"choices": [_choice(text, None, "delta")]}

    return await replies.streamed(request, writing, piece, last, replies.as_event, replies.DONE)


async def text_reply(service: Service, text: str, usage: dict[str, Any], stream: bool) -> Response:
    """The same reply with a text that is known already."""
    head = await replies.head(service, "cmpl") | {"object": "text_completion"}
    body = head | {"choices": [_choice(text, "stop", "delta" if stream else "message")]}
    return replies.known_events(body) if stream else JSONResponse(body | {"usage": usage})


def _whole(completion: Completion) -> dict[str, Any]:
    texts = (completion.text, *completion.others)
    choices = [_choice(text, completion.finish_reason, "message", index) for index, text in enumerate(texts)]
    return {"choices": choices, "usage": replies.usage(completion)}


def _choice(text: str, finish_reason: str | None, place: str, index: int = 0) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"index": index, "text": text, place: message, "finish_reason": finish_reason, "logprobs": None}
