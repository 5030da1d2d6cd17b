"""`/v1/edit/completions` of Mercury's API: the prompt's tags are read in both layouts that clients send."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp.http import fields, replies
from mercury_lsp.http.errors import bad_request
from mercury_lsp.http.rewriting import EditedDocument, applied, read_diff, rewritten
from mercury_lsp.http.service import Service

CURSOR = "<|cursor|>"


@dataclass(frozen=True, slots=True)
class Message:
    """One message; parts of a list are joined."""

    role: str = "user"
    content: Any = ""

    @property
    def text(self) -> str:
        """Its text. Raises ApiError."""
        parts = self.content if isinstance(self.content, list) else [self.content]
        texts = [part.get("text", "") if isinstance(part, Mapping) else part for part in parts]
        try:
            return "".join(map(fields.text_of, texts))
        except TypeError as error:
            raise bad_request(str(error), "messages") from None


@dataclass(frozen=True, slots=True)
class EditRequest:
    messages: tuple[Message, ...] = ()
    stream: bool = False

    @property
    def text(self) -> str:
        """The last message's text. Raises ApiError."""
        if not self.messages:
            raise bad_request("there is no message", "messages")
        return self.messages[-1].text


def routes(service: Service) -> list[Route]:
    async def edit(request: Request) -> Response:
        asked = await fields.read(request, EditRequest)
        document = edited_document(asked.text)
        found = await replies.while_connected(request, rewritten(service, document))
        text = applied(document.text, document.start, document.end, found.changes)
        return await edited(service, f"```\n{text}\n\n```" if asked.stream else text, found.usage, asked.stream)

    return [Route("/v1/edit/completions", edit, methods=["POST"])]


async def edited(service: Service, text: str, usage: replies.Body, stream: bool) -> Response:
    """The reply with the lines as they should be; the client that streams expects them in a fence."""
    head = await replies.head(service, "edit") | {"object": "edit.completion"}
    message = {"role": "assistant", "content": text}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return JSONResponse(head | {"choices": [choice], "usage": usage})
    choices = (
        {"index": 0, "delta": message, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    )
    return replies.known_events(*(head | {"choices": [choice]} for choice in choices))


def edited_document(prompt: str) -> EditedDocument:
    """What a prompt says; the region is inside the file's content or after it. Raises ApiError."""
    region, content = tagged(prompt, "code_to_edit"), tagged(prompt, "current_file_content")
    if region is None or content is None:
        raise bad_request("the message has no <|code_to_edit|> or no <|current_file_content|>", "messages")
    name, _, content = content.partition("\n")
    path = name.partition("current_file_path:")[2].strip()
    before, inside, _ = content.partition("<|code_to_edit|>\n")
    if inside:
        after = content.partition("<|/code_to_edit|>\n")[2]
    else:
        whole = content.replace(CURSOR, "", 1)
        before, found, after = whole.partition(region.replace(CURSOR, "", 1))
        before, after = (before, after) if found else ("", "")
    cursor = region.find(CURSOR)
    region = region.replace(CURSOR, "", 1)
    return EditedDocument(
        before + region + after,
        len(before),
        len(before) + len(region),
        path,
        None if cursor < 0 else len(before) + cursor,
        read_diff(tagged(prompt, "edit_diff_history") or "", path),
    )


def tagged(prompt: str, name: str) -> str | None:
    """The lines between a tag and its end; None without them."""
    _, begun, rest = prompt.partition(f"<|{name}|>\n")
    text, ended, _ = rest.partition(f"<|/{name}|>")
    return text if begun and ended else None
