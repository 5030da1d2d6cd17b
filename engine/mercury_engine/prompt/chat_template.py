"""Chat templates: a conversation as the text that a model was trained on, by the template in the model's files.

Templates are Jinja with the settings of transformers' `apply_chat_template`, in a sandbox; jinja2 is imported on first
use. Names of special tokens in a client's messages are guarded, so that they stay text.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn

from mercury_kernels.installation import install_command

from mercury_engine.api import Chat
from mercury_engine.errors import ModelCorrupt, RequestError
from mercury_engine.model_folders import read_json
from mercury_engine.models.gguf.file import gguf_of, opened
from mercury_engine.prompt.tokenizer import Tokenizer

TOOL_CALL, TOOL_CALL_END = "<tool_call>", "</tool_call>"
"""Around a call as JSON with `name` and `arguments`, in the templates of Qwen, Granite 4, SmolLM 3 and Hermes."""

TEMPLATE_FILE = "chat_template.jinja"

TOKEN_NAMES = ("bos_token", "eos_token")
"""Special tokens whose names templates use."""

PRIVATE_CHARACTERS = range(0xE000, 0xF900)


class ChatTemplate:
    """Writes conversations for one model."""

    def __init__(self, source: str, tokenizer: Tokenizer, names: Mapping[str, str]) -> None:
        """`names`: the names of special tokens that templates ask for, such as `bos_token`."""
        self.source, self._tokenizer, self._names = source, tokenizer, names

    @property
    def has_tool_calls(self) -> bool:
        """Whether the model writes calls of tools between TOOL_CALL and TOOL_CALL_END."""
        return TOOL_CALL in self.source

    def encode(self, chat: Chat) -> list[int]:
        """The tokens of a conversation, up to where the model's reply goes on.

        Raises RequestError for messages that the template refuses, and where jinja2 is missing.
        """
        return self._tokenizer.encode_marked(*self._guarded_text(chat))

    def text(self, chat: Chat) -> str:
        """The same as text, in which a special token's name in a message looks like the token. Raises as `encode`."""
        text, guard = self._guarded_text(chat)
        return text.replace(guard, "")

    def _guarded_text(self, chat: Chat) -> tuple[str, str]:
        """The text with a guard in names of special tokens in messages, and the guard."""
        try:
            guard = _unused(chat)
            messages = [_guarded(_message(each), self._tokenizer.special_names, guard) for each in chat.messages]
            tools = [_guarded(each, self._tokenizer.special_names, guard) for each in chat.tools]
            text = self._render(
                messages=messages,
                tools=tools or None,
                add_generation_prompt=True,
                enable_thinking=chat.thinks,
                **self._names,
            )
        except RequestError:
            raise
        except Exception as error:  # a template may fail in any way, and messages may be nested too deeply
            raise RequestError(f"the model's chat template cannot write these messages: {error}") from error
        return text + chat.reply, guard

    @cached_property
    def _render(self) -> Callable[..., str]:
        """Writes what the template does with variables. Raises RequestError, and what the template raises."""
        try:
            from jinja2 import TemplateError

            from mercury_engine.prompt.template_sandbox import TemplateSandbox
        except ImportError as error:
            raise RequestError(f"chat needs jinja2: {install_command('http')}") from error
        sandbox = TemplateSandbox()
        sandbox.add_filter("tojson", lambda value, **options: json.dumps(value, ensure_ascii=False, **options))
        sandbox.globals["raise_exception"] = _refuse
        try:
            return partial(sandbox.render, sandbox.from_string(self.source))
        except TemplateError as error:
            raise RequestError(f"the model's chat template is not valid ({error}); choose another model") from error


def chat_template_of(folder: Path, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The chat template of a model's folder or GGUF file; None if it has none. Raises ModelCorrupt."""
    source, names = _in_gguf(gguf, tokenizer) if (gguf := gguf_of(folder)) is not None else _in_folder(folder)
    return ChatTemplate(source, tokenizer, names) if isinstance(source, str) and source else None


def _in_gguf(path: Path, tokenizer: Tokenizer) -> tuple[Any, dict[str, str]]:
    file = opened(path)
    ids = {name: file.value(f"tokenizer.ggml.{name}_id", None) for name in TOKEN_NAMES}
    names = {name: tokenizer.bpe.id_to_token(number) for name, number in ids.items() if isinstance(number, int)}
    return file.value("tokenizer.chat_template", None), {name: text or "" for name, text in names.items()}


def _in_folder(folder: Path) -> tuple[Any, dict[str, str]]:
    """From chat_template.jinja or tokenizer_config.json, where older models have it."""
    path = folder / "tokenizer_config.json"
    config = read_json(path) if path.is_file() else {}
    if not isinstance(config, dict):
        raise ModelCorrupt(f"{path} is no JSON object; fetch the model again")
    own = folder / TEMPLATE_FILE
    source = own.read_text("utf-8") if own.is_file() else config.get("chat_template")
    if isinstance(source, list):  # several, by name
        source = next((each.get("template") for each in source if each.get("name") == "default"), None)
    tokens = {name: config.get(name) for name in TOKEN_NAMES}
    return source, {
        name: token["content"] if isinstance(token, dict) else token for name, token in tokens.items() if token
    }


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as templates expect it: its text in one piece, and the arguments of calls as objects."""
    content = message.get("content")
    if isinstance(content, list | tuple):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    role = "system" if message.get("role") == "developer" else message.get("role")
    made = {**message, "role": role, "content": content or ""}
    if calls := message.get("tool_calls"):
        made["tool_calls"] = [_call(call) for call in calls]
    return made


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments)
    return {**call, "function": {**function, "arguments": arguments}}


def _unused(chat: Chat) -> str:
    """A character that the conversation does not hold."""
    text = json.dumps([chat.messages, chat.tools], ensure_ascii=False, default=dict)
    found = next((each for each in map(chr, PRIVATE_CHARACTERS) if each not in text), None)
    if found is None:
        raise RequestError("the messages hold all private characters of Unicode; leave some out")
    return found


def _guarded(value: Any, names: "re.Pattern[str]", guard: str) -> Any:
    """The value with the guard after the first character of each special token's name in it."""
    if isinstance(value, str):
        return names.sub(lambda name: name[0][0] + guard + name[0][1:], value)
    if isinstance(value, Mapping):
        return {_guarded(name, names, guard): _guarded(each, names, guard) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_guarded(each, names, guard) for each in value]
    return value


def _refuse(message: str) -> NoReturn:
    raise RequestError(f"the model's chat template refuses these messages: {message}")
