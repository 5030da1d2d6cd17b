"""Tool calls in a chat model's own format: JSON between `<tool_call>` and `</tool_call>`.

A call that the client requires is prefilled, and its arguments follow the tool's JSON schema.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mercury_engine.prompt.chat_template import TOOL_CALL, TOOL_CALL_END
from mercury_engine.text.stop_texts import begun

from mercury_lsp.http.errors import bad_request

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
        if not self.forced:
            return ""
        return f"{TOOL_CALL}\n" + (_head(self.forced[0]) if len(self.forced) == 1 else "")

    @property
    def schema(self) -> str | None:
        """The JSON schema of what follows; None unless a call is forced."""
        if not self.forced:
            return None
        if len(self.forced) == 1:
            return json.dumps(self._parameters(self.forced[0]))
        return json.dumps({"anyOf": [self._call_schema(name) for name in self.forced]})

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

    def _call_schema(self, name: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"name": {"const": name}, "arguments": self._parameters(name)},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }

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


def _head(name: str) -> str:
    return f'{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": '
