"""`/v1/fim/completions` of Mercury's and Mistral's APIs, and OpenAI's `/v1/completions`.

The latter takes a suffix, or a prompt in a model's own template. Its bodies with `segments` are Tabby's.
"""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mercury_lsp.http import fields, replies, tabby
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.errors import bad_request
from mercury_lsp.http.gap import ONE_PARAGRAPH, Gap, GapRequest
from mercury_lsp.http.rewriting import rewritten, sweep_prompt
from mercury_lsp.http.service import Service
from mercury_lsp.http.templates import taken_apart

FIM_TOKENS, DEFAULT_TOKENS = 512, 256

KIND = "text_completion"


def routes(service: Service) -> list[Route]:
    async def fim(request: Request) -> Response:
        asked = await fields.read(request, GapRequest)
        return await answered(asked, asked.gap(FIM_TOKENS, ONE_PARAGRAPH))

    async def complete(request: Request) -> Response:
        body = await fields.read_object(request)
        if body.get("segments") is not None:
            return await tabby.answered(service, fields.structured(body, tabby.TabbyRequest))
        for name in ("echo", "logprobs"):
            if body.get(name):
                raise bad_request(f"{name} is not supported here; leave it out", name)
        asked = fields.structured(body, GapRequest)
        if (document := sweep_prompt("".join(asked.prompt))) is not None:
            found, _ = await rewritten(service, document)
            return await replies.known(service, KIND, found, asked.stream)
        return await answered(asked, taken_apart(asked.gap(DEFAULT_TOKENS)))

    async def answered(asked: GapRequest, gap: Gap) -> Response:
        if not asked.stream:
            return await replies.known(service, KIND, await service.fill(gap).whole())
        head = await replies.head(service, KIND)

        def piece(text: str, finish_reason: str | None = None) -> replies.Body:
            return head | {"choices": [replies.choice(text, finish_reason, "delta")]}

        def last(found: Completion) -> Sequence[replies.Body]:
            usage = {"choices": [], "usage": replies.usage(found)}
            return [piece("", found.finish_reason), *([head | usage] if asked.includes_usage else ())]

        return await replies.streamed(replies.written(service.fill(gap), piece, last), end=replies.DONE)

    return [
        Route("/v1/fim/completions", fim, methods=["POST"]),
        Route("/v1/completions", complete, methods=["POST"]),
    ]
