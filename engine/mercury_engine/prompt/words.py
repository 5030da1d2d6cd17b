"""A model's tokens and template, for clients that count tokens or write prompts themselves."""

from collections.abc import Sequence

from mercury_engine.api import Chat
from mercury_engine.errors import RequestError
from mercury_engine.prompt.chat_template import ChatTemplate
from mercury_engine.prompt.tokenizer import Tokenizer


class ModelWords:
    """Implements `Words`; nothing here is remembered, so that other threads may ask."""

    def __init__(self, name: str, tokenizer: Tokenizer, template: ChatTemplate | None) -> None:
        self._name, self._tokenizer, self._template = name, tokenizer, template

    def tokens(self, text: str, marked: bool = True, begun: bool = False) -> list[int]:
        ids = (self._tokenizer.encode_marked if marked else self._tokenizer.encode)(text)
        return [*self._tokenizer.bpe.encode("").ids, *ids] if begun else ids

    def text(self, tokens: Sequence[int]) -> str:
        self._require(tokens)
        return self._tokenizer.bpe.decode([*tokens], skip_special_tokens=False)

    def piece(self, token: int) -> bytes:
        self._require((token,))
        return self._tokenizer.piece(token)

    def prompt(self, chat: Chat) -> str:
        return required(self._template, self._name).text(chat)

    def _require(self, tokens: Sequence[int]) -> None:
        """Raise RequestError for a token that the model does not have."""
        if wrong := [token for token in tokens if not 0 <= token < self._tokenizer.size]:
            raise RequestError(f"{self._name} has no token {wrong[0]}; its last one is {self._tokenizer.size - 1}")


def required(template: ChatTemplate | None, model: str) -> ChatTemplate:
    """The model's chat template. Raises RequestError if it has none."""
    if template is None:
        raise RequestError(f"{model} has no chat template; choose a model that was trained to chat")
    return template
