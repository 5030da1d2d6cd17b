"""The canvas: the slots of one fill and their state.

A slot is *settled* when it is final and so is every slot to its left; settled slots are a run from the left. A slot is
*committed* when the writer, deciding alone, has made it final anywhere on the canvas; it becomes settled once the slots
to its left are. All other slots are open: masked, or holding a draft that later steps may change.

Dimensions: S open slots, V vocabulary with mask and end.
"""

import math
from collections import Counter
from dataclasses import dataclass, field, replace

from mercury_engine.api import OnStep, SlotView, Source
from mercury_engine.models.arrays import Array


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens: their texts ("" for a token without text), the mask and the end marker."""

    texts: list[str]
    mask_id: int
    end_id: int

    def spelled(self, ids: list[int]) -> str:
        return "".join(self.texts[i] for i in ids)


@dataclass(slots=True)
class Canvas:
    """The state of one fill. Slots [0, settled) are settled; only `reopen` opens them again."""

    vocabulary: Vocabulary
    ids: list[int]
    settled: int
    begun: str = ""
    """Text before the cursor that the first open slots have to spell."""
    draft: list[int] = field(default_factory=list)
    """Tokens to verify in the first step, in place of the writer's guesses."""
    choice: int = 0
    """Rank of the token for the first slot that has nothing to spell: 0 is the best one."""
    known: int = field(init=False)
    """Number of slots that were settled at the start."""
    capacity: int = field(init=False)
    """Number of slots at the start."""
    spell: str = field(init=False)
    """The part of `begun` that is still to be spelled."""
    chances: list[float] = field(init=False)
    """Probability of each settled slot when it was settled, and of the end marker if the canvas has ended with one."""
    confidence: float = 1.0
    """Product of `chances`."""
    ended: bool = False
    banned: dict[int, int] = field(default_factory=dict)
    """The token that proved wrong, by slot."""
    committed: dict[int, float] = field(default_factory=dict)
    """Probability of each committed slot that is not settled yet; empty unless the writer decides alone."""
    steps: int = 0
    settled_from: Counter[Source] = field(default_factory=Counter)
    """Number of tokens settled, by where they come from."""
    on_step: OnStep | None = None
    """Called with a view of the canvas after every step."""
    follows: str = ""
    """Text behind the gap."""
    line: str | None = None
    """The cursor's line before the gap if the fill ends with a thought, see `text.thought`."""
    multiline: bool = False
    """Whether the text may break the line; if not, it ends with the token that does."""

    def __post_init__(self) -> None:
        self.known, self.capacity, self.spell = self.settled, len(self.ids), self.begun
        self.chances = [1.0] * self.settled

    def settle(self, token: int, chance: float) -> None:
        """Settle the next slot; a token that spells `begun` does not count against the confidence."""
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

    def count(self, token: int, source: Source) -> None:
        """Count a token by where it comes from."""
        self.settled_from[source] += token != self.vocabulary.end_id

    def reopen(self, position: int) -> None:
        """Mask every slot from the one that writes the character at `position` of the text.

        Its token is banned there. If the canvas was reopened before, it ends at that slot instead.
        """
        slot = self._slot_at(position + len(self.begun))
        self.ended = bool(self.banned)
        self.banned[slot] = self.ids[slot]
        self.ids = self.ids[:slot] + [self.vocabulary.mask_id] * (0 if self.ended else self.capacity - slot)
        self.settled, self.chances = slot, self.chances[:slot]
        self.spell = self.begun[len(self.vocabulary.spelled(self.ids[self.known : slot])) :]
        self.confidence = math.prod(self.chances)
        self.committed.clear()

    def write_again(self) -> None:
        """Open all slots behind the settled ones; a draft that the settled slots follow keeps its remainder."""
        done = self.settled - self.known
        kept = self.draft[done:] if self.ids[self.known : self.settled] == self.draft[:done] else []
        masks = [self.vocabulary.mask_id] * (self.capacity - self.settled - len(kept))
        self.ids = [*self.ids[: self.settled], *kept, *masks]
        self.committed.clear()

    def _slot_at(self, position: int) -> int:
        for slot in range(self.known, self.settled):
            position -= len(self.vocabulary.texts[self.ids[slot]])
            if position < 0:
                return slot
        return self.settled - 1

    def step_done(self, written_SV: Array | None, first: int) -> None:
        """Count a step and report it; `written_SV` are the writer's log-probabilities of the slots from `first` on."""
        self.steps += 1
        if self.on_step is not None:
            self.on_step(self.view(written_SV, first))

    def view(self, written_SV: Array | None, first: int) -> tuple[SlotView, ...]:
        """The slots behind the cursor; the writer's log-probabilities [S,V] begin with slot `first`."""
        views, hidden = [], len(self.begun)
        for slot in range(self.known, len(self.ids)):
            seen = self._slot_view(slot, written_SV, first)
            views.append(replace(seen, text=seen.text[hidden:]) if hidden else seen)
            hidden = max(0, hidden - len(seen.text))
        return tuple(views if self.multiline else map(_on_its_line, views))

    def chance(self, slots: int) -> float:
        """The probability that the first so many slots are right; one more than are settled counts the end marker."""
        return math.prod(self.chances[:slots])

    def sure_slots(self, least: float) -> int:
        """Length of the longest run of slots from the left that is right with at least this probability."""
        chance = 1.0
        for slot, each in enumerate(self.chances[: self.settled]):
            chance *= each
            if chance < least:
                return slot
        return self.settled

    def _slot_view(self, slot: int, written_SV: Array | None, first: int) -> SlotView:
        token = self.ids[slot]
        if slot < self.settled:
            return SlotView(self.vocabulary.texts[token], "committed", self.chances[slot])
        if slot in self.committed:
            end = token == self.vocabulary.end_id
            text = "" if end else self.vocabulary.texts[token]
            return SlotView(text, "end" if end else "committed", self.committed[slot])
        if token == self.vocabulary.mask_id or written_SV is None or slot - first >= len(written_SV):
            return SlotView("", "mask", 0.0)
        chance = math.exp(float(written_SV[slot - first, token]))
        if token == self.vocabulary.end_id:
            return SlotView("", "end", chance)
        return SlotView(self.vocabulary.texts[token], "draft", chance)


def _on_its_line(view: SlotView) -> SlotView:
    """The slot without a line break that its token joins to the text."""
    return replace(view, text=view.text.partition("\n")[0].rstrip("\r")) if "\n" in view.text else view
