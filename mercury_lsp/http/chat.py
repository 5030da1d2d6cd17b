"""`/v1/chat/completions`: conversations with a chat model, written out by the model's own template.

Tool calls are JSON between `<tool_call>` and `</tool_call>`. A call that the client requires is prefilled, and its
arguments follow the tool's JSON schema.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from typing import Annotated, Any

from mercury_engine.api import Chat, GenerateRequest, Sampling, TokenLogProbability
from mercury_engine.prompt.chat_template import TOOL_CALL, TOOL_CALL_END
from mercury_engine.text.ends import begun
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp.http import fields, replies
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.edits import last_text
from mercury_lsp.http.errors import bad_request
from mercury_lsp.http.rewriting import duet_prompt, mercury_prompt, rewritten
from mercury_lsp.http.service import Service
from mercury_lsp.plain_data import within

KIND = "chat.completion"

TEMPERATURE = 0.75
"""For clients that send none, as in Mercury's API."""

MAX_CHOICES = 8

MAX_ALTERNATIVES = 20

MOST_UNLIKELY = -9999.0
"""OpenAI's log-probability of an impossible token; JSON has no infinity."""

Temperature = Annotated[float, within(0, 5)]
Share = Annotated[float, within(0, 1)]
Penalty = Annotated[float, within(-10, 10)]
TopK = Annotated[int, within(-1, 1_000_000, "an integer")]

_CALL = re.compile(rf"{TOOL_CALL}(.*?)(?:{TOOL_CALL_END}|$)", re.S)

ANY_OBJECT = {"type": "object"}

Tool = Mapping[str, Any]

Call = Mapping[str, str]
"""A call that the model makes: the name and, as JSON, the arguments."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tools of a request, and whether the model must call one."""

    tools: tuple[Tool, ...] = ()
    forced: tuple[str, ...] = ()
    """The names of which one must be called; empty: the model decides."""

    @classmethod
    def of(cls, tools: Sequence[Tool], choice: Any) -> "ToolUse":
        """What a request's `tools` and `tool_choice` ask for. Raises ApiError."""
        for tool in tools:
            if not isinstance(tool.get("function"), Mapping) or not isinstance(tool["function"].get("name"), str):
                raise bad_request("each tool needs a function with a name", "tools")
        names = tuple(tool["function"]["name"] for tool in tools)
        match choice:
            case None | "auto":
                return cls(tuple(tools))
            case "none":
                return cls()
            case "required" if names:
                return cls(tuple(tools), names)
            case {"function": {"name": str(name)}} if name in names:
                return cls(tuple(tools), (name,))
        raise bad_request("tool_choice must be none, auto, required or one of the tools' functions", "tool_choice")

    @property
    def reply(self) -> str:
        """How the reply begins if a call is forced."""
        match self.forced:
            case ():
                return ""
            case (name,):
                return f'{TOOL_CALL}\n{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": '
        return f"{TOOL_CALL}\n"

    @property
    def schema(self) -> str | None:
        """The JSON schema of what follows; None unless a call is forced."""
        match self.forced:
            case ():
                return None
            case (name,):
                return json.dumps(self._parameters(name))
        calls = [{"name": {"const": name}, "arguments": self._parameters(name)} for name in self.forced]
        closed = {"required": ["name", "arguments"], "additionalProperties": False}
        return json.dumps({"anyOf": [{"type": "object", "properties": each, **closed} for each in calls]})

    def read(self, text: str) -> tuple[str, list[Call]]:
        """A whole reply as the text beside the calls, and the calls."""
        if len(self.forced) == 1:
            return "", [{"name": self.forced[0], "arguments": text}]
        if self.forced:
            return "", self._calls([text])
        calls = self._calls(_CALL.findall(text))
        if calls:
            return _CALL.sub("", text).rstrip(), calls  # a stream has shown how it begins
        calls = self._calls([text])  # small models leave the marks out
        return ("", calls) if calls else (text, [])

    def settled(self, text: str) -> str:
        """The part of an unfinished reply that is certainly not a call."""
        if self.forced or (self.tools and text.lstrip()[:1] in ("", "{")):
            return ""
        if not self.tools:
            return text
        text = text.partition(TOOL_CALL)[0].rstrip()
        return text[: len(text) - begun(text, TOOL_CALL)].rstrip()

    def _parameters(self, name: str) -> Any:
        tool = next(tool for tool in self.tools if tool["function"]["name"] == name)
        return tool["function"].get("parameters") or ANY_OBJECT

    def _calls(self, texts: Sequence[str]) -> list[Call]:
        """The calls of known tools among texts that may be JSON."""
        names = {tool["function"]["name"] for tool in self.tools}
        found = list[Call]()
        for text in texts:
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict) and isinstance(value.get("name"), str) and value["name"] in names:
                arguments = value.get("arguments", value.get("parameters", {}))
                found.append({"name": value["name"], "arguments": json.dumps(arguments, ensure_ascii=False)})
        return found


@dataclass(frozen=True, slots=True)
class ChatRequest(fields.TextRequest):
    messages: tuple[dict[str, Any], ...] = ()
    temperature: Temperature = TEMPERATURE
    top_p: Share = 1.0
    top_k: TopK = 0
    min_p: Share = 0.0
    repetition_penalty: Annotated[float, within(0.01, 10)] = 1.0
    presence_penalty: Penalty = 0.0
    frequency_penalty: Penalty = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    top_logprobs: int = 0
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: Any = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = None

    def request(self, use: ToolUse) -> GenerateRequest:
        """What the engine is asked. Raises ApiError."""
        fields.require_few(self.stop)
        return GenerateRequest(
            chat=self.conversation(use),
            max_tokens=self.limit if self.limit is None or self.limit >= 0 else None,
            stop=self.stop,
            sampling=self.sampling(),
            schema=use.schema or self._schema(),
            alternatives=max(0, min(self.top_logprobs, MAX_ALTERNATIVES)) if self.logprobs else None,
        )

    def conversation(self, use: ToolUse) -> Chat:
        """What the model reads. Raises ApiError."""
        return Chat(self._checked(), use.tools, use.reply, self.reasoning_effort not in ("instant", "low"))

    def sampling(self) -> Sampling:
        """How tokens are chosen."""
        sampling = Sampling(**{each.name: getattr(self, each.name) for each in fields_of(Sampling)})
        return replace(sampling, top_k=max(0, self.top_k), seed=None if self.seed is None else abs(self.seed))

    def _checked(self) -> tuple[dict[str, Any], ...]:
        """The messages. Raises ApiError for none, and for what is no message of text."""
        if not self.messages:
            raise bad_request("there are no messages", "messages")
        for message in self.messages:
            content = message.get("content")
            if not isinstance(message.get("role"), str) or not isinstance(content, str | list | None):
                raise bad_request("each message needs a role, and a string or a list of parts as content", "messages")
            for part in content if isinstance(content, list) else ():
                if not isinstance(part, Mapping) or part.get("type", "text") != "text":
                    raise bad_request("the model reads text only; leave out other parts", "messages")
        return self.messages

    def _schema(self) -> str | None:
        """The JSON schema that the response format asks for. Raises ApiError."""
        match self.response_format:
            case None | {"type": "text"}:
                return None
            case {"type": "json_object"}:
                return json.dumps(ANY_OBJECT)
            case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
                return json.dumps(schema)
        raise bad_request(
            "response_format must have the type text, json_object, or json_schema with a schema", "response_format"
        )


def routes(service: Service) -> list[Route]:
    async def chat(request: Request) -> Response:
        asked = await fields.read(request, ChatRequest)
        use = ToolUse.of(asked.tools, asked.tool_choice)
        wanted, last = asked.request(use), last_text(asked.messages)
        chat_format = (await service.engine()).chat_format
        document = duet_prompt(last) or mercury_prompt(last)
        if document is not None and (service.edits.can_rewrite or chat_format is None):
            found, _ = await rewritten(service, document)
            return await replies.known(service, KIND, found, asked.stream)
        if use.tools and chat_format != "tool_call":
            raise bad_request("the model was not trained to call tools; use another model, or leave out tools", "tools")
        head = await replies.head(service, KIND)
        if asked.stream:
            return await _streamed(service, asked, wanted, use, head | {"object": f"{KIND}.chunk"})
        written, seed = list[Completion](), wanted.sampling.seed
        for number in range(max(1, min(asked.n, MAX_CHOICES))):  # in turn, so that the first reads the messages for all
            sampling = replace(wanted.sampling, seed=None if seed is None else seed + number)
            written.append(await service.generate(replace(wanted, sampling=sampling)).whole())
        choices = [_choice(index, each, use) for index, each in enumerate(written)]
        whole = replace(written[0], completion_tokens=sum(each.completion_tokens for each in written))
        return JSONResponse(head | {"choices": choices, "usage": replies.usage(whole)})

    return [Route("/v1/chat/completions", chat, methods=["POST"])]


async def _streamed(
    service: Service, asked: ChatRequest, wanted: GenerateRequest, use: ToolUse, head: replies.Body
) -> Response:
    if asked.n > 1:
        raise bad_request("only one choice can be streamed; leave out n", "n")
    role = {"role": "assistant"}

    def chunk(delta: dict[str, Any], **more: Any) -> replies.Body:
        nonlocal role
        delta, role = role | delta, {}
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None} | more]}

    def last(completion: Completion) -> list[replies.Body]:
        choice = _choice(0, completion, use)
        ends = []
        if calls := choice.pop("message").get("tool_calls"):
            ends.append(chunk({"tool_calls": [{"index": number, **call} for number, call in enumerate(calls)]}))
        ends.append(chunk({}, **choice))
        if asked.includes_usage:
            ends.append({**head, "choices": [], "usage": replies.usage(completion)})
        return ends

    bodies = replies.written(
        service.generate(wanted, use.settled),
        lambda text: chunk({"content": text}),
        last,
        lambda completion: use.read(completion.text)[0],
    )
    return await replies.streamed(bodies, end=replies.DONE)


def _choice(index: int, completion: Completion, use: ToolUse) -> dict[str, Any]:
    content, calls = use.read(completion.text)
    message: dict[str, Any] = {"role": "assistant", "content": content if content or not calls else None}
    reason: str = completion.finish_reason
    if calls:
        message["tool_calls"] = [{"id": replies.new_id("call"), "type": "function", "function": each} for each in calls]
        reason = "tool_calls" if completion.finish_reason == "stop" else reason
    return {"index": index, "message": message, "finish_reason": reason, "logprobs": _log_probabilities(completion)}


def _log_probabilities(completion: Completion) -> dict[str, Any] | None:
    found = completion.log_probabilities
    content = [_token(each) | {"top_logprobs": [*map(_token, each.alternatives)]} for each in found]
    return {"content": content, "refusal": None} if found else None


def _token(found: TokenLogProbability) -> dict[str, Any]:
    return {"token": found.text, "logprob": max(found.nats, MOST_UNLIKELY), "bytes": found.data}
