"""The text of a generation: whole characters, up to a stop text, told of in parts as it is written."""

from collections.abc import Sequence

from mercury_engine.api import PART_OF_A_CHARACTER, Control
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.text.stop_texts import begun, first_of

TOKENS_OF_A_CHARACTER = 4
"""Most tokens that a character's bytes are divided among."""


class StreamedText:
    """Takes tokens. What may be the beginning of a stop text is told only once it is none."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str], control: Control) -> None:
        self.text = ""
        self._tokenizer, self._stop, self._on_text = tokenizer, [each for each in stop if each], control.on_text
        self._longest_stop = max(map(len, self._stop), default=0)
        self._undecoded: list[int] = []
        """Tokens at the end that are no whole character yet."""
        self._is_stopped = False
        self._told = 0
        """Number of characters that were told."""

    def add(self, token: int) -> bool:
        """Add a token; returns whether the text has reached a stop text, which is cut off."""
        self._undecoded.append(token)
        self._decode()
        self._tell(0 if self._is_stopped else max((begun(self.text, each) for each in self._stop), default=0))
        return self._is_stopped

    def finish(self) -> None:
        """Tell what was held back."""
        self._decode(whole=True)
        self._tell(0)

    def _decode(self, whole: bool = False) -> None:
        added = self._tokenizer.decode(self._undecoded)
        if added.endswith(PART_OF_A_CHARACTER) and len(self._undecoded) < TOKENS_OF_A_CHARACTER and not whole:
            return
        self._undecoded = []
        searched = max(0, len(self.text) - self._longest_stop + 1)
        self.text += added
        end = first_of(self.text, self._stop, searched)
        if end is not None:
            self.text, self._is_stopped = self.text[:end], True

    def _tell(self, held_back: int) -> None:
        end = len(self.text) - held_back
        if end > self._told:
            if self._on_text is not None:
                self._on_text(self.text[self._told : end])
            self._told = end
