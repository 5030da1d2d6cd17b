"""The canvas: the slots of one fill and what is known of them.

Dimensions: S open slots, V vocabulary with mask and end.
"""

import math
from dataclasses import dataclass, field, replace

from torch import Tensor

from mercury_engine.api import OnStep, SlotView


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What token numbers mean: their texts ("" where there is none), the mask and the end marker."""

    texts: list[str]
    mask_id: int
    end_id: int

    def spelled(self, ids: list[int]) -> str:
        return "".join(self.texts[i] for i in ids)


@dataclass(slots=True)
class Canvas:
    """The state of one fill; slots [0, settled) are final unless they are opened again."""

    vocabulary: Vocabulary
    ids: list[int]
    settled: int
    begun: str = ""
    """Text before the cursor that the slots behind those settled at the start spell again."""
    draft: list[int] = field(default_factory=list)
    """Tokens to try in the first step, in place of the writer's own guesses."""
    choice: int = 0
    """The first slot that nothing need be spelled in gets the token of this rank: 0 is the best one."""
    known: int = field(init=False)
    capacity: int = field(init=False)
    spell: str = field(init=False)
    chances: list[float] = field(init=False)
    confidence: float = 1.0
    ended: bool = False
    banned: dict[int, int] = field(default_factory=dict)
    """Tokens that proved wrong, by slot."""
    ahead: dict[int, float] = field(default_factory=dict)
    """Slots behind the settled ones that are final as well, with their chances: where the writer decides alone."""
    steps: int = 0
    on_step: OnStep | None = None
    """Wants to see the canvas after every step."""
    follows: str = ""
    """What stands behind the gap."""

    def __post_init__(self) -> None:
        self.known, self.capacity, self.spell = self.settled, len(self.ids), self.begun
        self.chances = [1.0] * self.settled

    def settle(self, token: int, chance: float) -> None:
        """Make the next slot final; forced spelling does not count against the confidence."""
        end = token == self.vocabulary.end_id
        text = "" if end else self.vocabulary.texts[token]
        forced = bool(text) and self.spell.startswith(text)
        self.spell = self.spell[len(text) :] if forced else ""
        self.chances.append(1.0 if forced else chance)
        self.confidence *= self.chances[-1]
        if end:
            self.ids, self.ended = self.ids[: self.settled], True
            return
        self.ids[self.settled] = token
        self.settled += 1

    def reopen(self, position: int) -> None:
        """Mask all slots again from the one that writes the character at a position of the text.

        Its token is banned there. A canvas that was opened before ends at that slot instead.
        """
        slot = self._slot_at(position + len(self.begun))
        self.ended = bool(self.banned)
        self.banned[slot] = self.ids[slot]
        self.ids = self.ids[:slot] + [self.vocabulary.mask_id] * (0 if self.ended else self.capacity - slot)
        self.settled, self.chances = slot, self.chances[:slot]
        self.spell = self.begun[len(self.vocabulary.spelled(self.ids[self.known : slot])) :]
        self.confidence = math.prod(self.chances)
        self.ahead.clear()

    def write_again(self) -> None:
        """Open all slots behind the settled ones again; of a draft that those follow the rest stays."""
        done = self.settled - self.known
        kept = self.draft[done:] if self.ids[self.known : self.settled] == self.draft[:done] else []
        masks = [self.vocabulary.mask_id] * (self.capacity - self.settled - len(kept))
        self.ids = [*self.ids[: self.settled], *kept, *masks]
        self.ahead.clear()

    def _slot_at(self, position: int) -> int:
        for slot in range(self.known, self.settled):
            position -= len(self.vocabulary.texts[self.ids[slot]])
            if position < 0:
                return slot
        return self.settled - 1

    def step_done(self, written_SV: Tensor | None, first: int) -> None:
        """Count a step and show it, for what the writer said of the slots from `first` on."""
        self.steps += 1
        if self.on_step is not None:
            self.on_step(self.view(written_SV, first))

    def view(self, written_SV: Tensor | None, first: int) -> tuple[SlotView, ...]:
        """The slots behind the cursor; the writer's log-probabilities [S,V] begin with slot `first`."""
        views, hidden = [], len(self.begun)
        for slot in range(self.known, len(self.ids)):
            seen = self._slot_view(slot, written_SV, first)
            views.append(replace(seen, text=seen.text[hidden:]) if hidden else seen)
            hidden = max(0, hidden - len(seen.text))
        return tuple(views)

    def sure_slots(self, least: float) -> int:
        """How many slots from the start have at least this chance to be right all together."""
        chance = 1.0
        for slot, each in enumerate(self.chances[: self.settled]):
            chance *= each
            if chance < least:
                return slot
        return self.settled

    def _slot_view(self, slot: int, written_SV: Tensor | None, first: int) -> SlotView:
        token = self.ids[slot]
        if slot < self.settled:
            return SlotView(self.vocabulary.texts[token], "committed", self.chances[slot])
        if slot in self.ahead:
            end = token == self.vocabulary.end_id
            return SlotView(
                "" if end else self.vocabulary.texts[token], "end" if end else "committed", self.ahead[slot]
            )
        if token == self.vocabulary.mask_id or written_SV is None or slot - first >= len(written_SV):
            return SlotView("", "mask", 0.0)
        chance = float(written_SV[slot - first, token].exp())
        if token == self.vocabulary.end_id:
            return SlotView("", "end", chance)
        return SlotView(self.vocabulary.texts[token], "draft", chance)
