"""The name that a change replaced, and the places of a document where the same name means the same.

Another language server reports the places, or else they are found in the syntax tree: the uses of a plain name inside
the smallest function that binds it, or else in the file; those of a member of `self` or `this` in its class. Other
members, and keys, need types and are left to language servers.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from mercury_lsp.completion.next_edits.edits import moved_offset, narrowed, occurrences, text_around
from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.languages import language

MAX_NAME_CHARS, MAX_LINE_CHARS = 80, 2000
"""Longest name, old or new, and longest line in which a name is renamed."""

MAX_USES = 1_000
"""Most uses of a name examined, the nearest first, at about 20 microseconds each, once for each changed name."""

OWNER_CHARS = 8
"""Characters before a name that are searched for the owner of a member."""

_NAME = re.compile(r"[^\W\d]\w*")
_NO_LETTER = re.compile(r"\W")
_GOES_ON = re.compile(r"\.|\?\.|::|->|[(\[!]")
"""Extends a typed name to a longer expression (`self`, then `.path`)."""
_OWNED = re.compile(r"(?<!\.)(?:\.|->|::)[ \t]*#?\Z")
_OF_SELF = re.compile(r"\b(?:self|this)(?:\.|->)#?\Z")
_FUNCTION = re.compile("func|method|arrow|closure|constructor|lambda")
_CLASS = re.compile("class|impl|interface|trait")
_BINDING = re.compile(
    "assignment$|declaration$|definition$|_item$|(init|variable)_declarator|(struct|enum|union|class)_specifier"
    "|parameter|^for_|^let_|^var_spec|range_clause|target$|^arrow"
)
"""Nodes that bind the names in them, except in `_READ_FIELDS`."""
_READ_FIELDS = ("value", "right", "type", "trait", "condition", "body", "start", "end", "step", "size")
_WITHIN_BINDING = re.compile("pattern|declarator|(variable|expression)_list|assignment_statement")
"""Nodes between a name and the node that binds it."""
_ASSIGNMENT = re.compile("assign")


def renamed_by(change: Edit, snapshot: Snapshot) -> Edit | None:
    """The change extended to whole words, without text typed after the new name; None if these aren't two names."""
    line, end = snapshot.source.line_bounds(change.start)
    if end - line > MAX_LINE_CHARS:
        return None
    change = narrowed(change)
    end = snapshot.source.line_bounds(change.new_end)[1]
    head = _first_word(snapshot.slice(line, change.start)[::-1])[::-1]
    tail = _first_word(snapshot.slice(change.new_end, end))
    old, new = head + change.removed + tail, head + change.inserted + tail
    name = _first_word(new)
    if name != new and (tail or _GOES_ON.match(new, len(name))):
        return None
    are_names = all(_NAME.fullmatch(each) and len(each) <= MAX_NAME_CHARS for each in (old, name))
    return Edit(change.start - len(head), old, name) if are_names and old != name else None


def _first_word(text: str) -> str:
    """The letters, digits and underscores with which a text begins."""
    return _NO_LETTER.split(text, 1)[0]


@dataclass(frozen=True, slots=True)
class NamePlaces:
    """The places of a name in one document, from the top down, by offsets that edits move."""

    name: str = ""
    starts: tuple[int, ...] = ()
    binding: int | None = None
    """The index of the first place that binds the name."""
    is_told: bool = False
    """The places come from another language server, which knows scopes and types."""
    new: str = ""
    """The name that the user gives to these places."""
    is_ignored: bool = False
    """The new name was in use before, so the user switched to it instead of renaming; or the line shows a secret."""
    last: int = 0
    """The index of the place that the user renamed last."""

    @classmethod
    def told(cls, snapshot: Snapshot, places: Iterable[tuple[int, int, bool]]) -> "NamePlaces":
        """From start and end of each place, and whether the name is assigned there; without places if texts differ."""
        found = sorted(set(places))
        names = {snapshot.slice(start, end) for start, end, _ in found}
        if len(names) != 1:
            return cls()
        written = (index for index, (_, _, is_written) in enumerate(found) if is_written)
        return cls(names.pop(), tuple(start for start, _, _ in found), next(written, None), is_told=True)

    def know(self, renamed: Edit) -> bool:
        """Whether the name was changed in one of these places."""
        return renamed.removed == self.name and renamed.start in self.starts

    def are_in(self, start: int, end: int) -> bool:
        """Whether one of these places begins within [start, end]."""
        return any(start <= at <= end for at in self.starts)

    def renamed_in(self, snapshot: Snapshot) -> set[int]:
        """The places that have the new name."""
        kept = f"{self.name}: {self.new}"  # a key and its value, for `{old}`
        return {at for at in self.starts if stands_at(self.new, at, snapshot) or stands_at(kept, at, snapshot)}

    def after(self, edit: Edit, names: Collection[str]) -> "NamePlaces":
        """The places after an edit, in which the name may have become one of `names`."""
        if not self.starts or edit.start > self.starts[-1]:
            return self
        return replace(self, starts=tuple(_moved(at, edit, {self.name, *names}) for at in self.starts))


def _moved(at: int, edit: Edit, names: Collection[str]) -> int:
    """A place after an edit: where one of its names occurs again, or else moved with the text."""
    if edit.start <= at < edit.end:
        pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)"
        old, new = ([each.start() for each in re.finditer(pattern, text)] for text in (edit.removed, edit.inserted))
        if len(old) == len(new) and at - edit.start in old:
            return edit.start + new[old.index(at - edit.start)]
    is_typed_before = not edit.removed and re.search(r"\W\Z", edit.inserted) is not None
    return at if edit.start == at and not is_typed_before else moved_offset(at, edit)


def stands_at(name: str, at: int, snapshot: Snapshot) -> bool:
    """Whether the whole name stands at an offset."""
    text = snapshot.slice(at, at + len(name) + 1)
    return text.startswith(name) and re.match(r"\w", text[len(name) :]) is None


def is_shorthand(at: int, snapshot: Snapshot) -> bool:
    """Whether a name is a key as well, as in `{count}`."""
    return any("shorthand" in node.type for node in _path_to(at, snapshot)[-2:])


def places_of(renamed: Edit, made: Iterable[int], snapshot: Snapshot) -> NamePlaces | None:
    """The places where the old name means the same; `renamed` and, perhaps, `made` have the new one already.

    None for anything else, and before the document is parsed.
    """
    here = _use_at(renamed.start, snapshot)
    if here is None:
        return None
    there = (_use_at(at, snapshot) for at in made if at != here.start)
    uses = [here, *filter(None, there), *_uses(renamed.removed, here, snapshot)]
    uses.sort(key=lambda use: use.start)
    outer = {each.around for each in uses if each.is_outer}
    binders = {each.around for each in uses if each.binds or each.is_member} - outer
    same = [each for each in uses if each.home(binders) == here.home(binders)]
    binding = next((index for index, each in enumerate(same) if each.binds), None)
    return NamePlaces(renamed.removed, tuple(each.start for each in same), binding)


def was_there(renamed: Edit, places: NamePlaces, snapshot: Snapshot) -> bool:
    """Whether the new name was in use in the old one's scope: the user switched to it instead of renaming."""
    here = _use_at(renamed.start, snapshot)
    if here is None:
        return False
    binding = None if places.binding is None else _use_at(places.starts[places.binding], snapshot)
    home = () if binding is None else binding.around
    uses = _uses(renamed.inserted, here, snapshot)
    return any(each.around[: len(home)] == home and each.start not in places.starts for each in uses)


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of a plain name, or of a member of `self`."""

    start: int
    around: tuple[int, ...]
    """Offsets of the functions around it, outermost first; for a member, of the classes."""
    binds: bool
    is_outer: bool
    """It only declares that an outer scope binds the name."""
    is_member: bool

    def home(self, binders: Collection[tuple[int, ...]]) -> tuple[int, ...]:
        """The innermost of the functions around it that is among `binders`; empty for the file."""
        return next((self.around[:n] for n in range(len(self.around), 0, -1) if self.around[:n] in binders), ())


def _uses(name: str, here: _Use, snapshot: Snapshot) -> Iterator[_Use]:
    """The nearest uses of a name that are, like `here`, plain names or members."""
    start, text = text_around(here.start, snapshot)
    found = [start + at for at in occurrences(name, text)]
    for at in sorted(found, key=lambda at: abs(at - here.start))[:MAX_USES]:
        use = _use_at(at, snapshot)
        if use is not None and use.is_member == here.is_member:
            yield use


def _use_at(at: int, snapshot: Snapshot) -> _Use | None:
    """The use that begins at an offset; None if there is none, and before the document is parsed."""
    rules, path = language(snapshot.language_id), _path_to(at, snapshot)
    if len(path) < 2 or "identifier" not in path[-1].type:
        return None
    before = snapshot.slice(max(0, at - OWNER_CHARS), at)
    is_member = _OF_SELF.search(before) is not None
    binder = _binder(path[:-1], _ASSIGNMENT) if is_member else _binder(path, _BINDING)
    around = [node for node in path if node.type in rules.definitions and (node != binder or "arrow" in node.type)]
    is_field = binder is not None and bool(around) and _CLASS.search(around[-1].type) is not None
    if not is_member and (is_field or _OWNED.search(before) or _is_key(path)):
        return None
    scopes = [node for node in around if (_CLASS if is_member else _FUNCTION).search(node.type)]
    starts = tuple(snapshot.source.offset_of_byte(node.start_byte) for node in scopes)
    is_outer = path[-2].type in ("global_statement", "nonlocal_statement")
    return _Use(at, starts, binder is not None, is_outer, is_member)


def _path_to(at: int, snapshot: Snapshot) -> list[Node]:
    """The nodes down to the leaf at an offset; none before the document is parsed."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return []
    return path_to(snapshot.tree, snapshot.source.byte_of(at) + 1)


def _is_key(path: list[Node]) -> bool:
    """Whether a name is the keyword of an argument or the key of an element or table."""
    *_, above, parent, leaf = (path[0], *path)
    if parent.type in ("keyword_argument", "field"):
        return parent.child_by_field_name("name") == leaf
    is_keyed = above.type == "keyed_element" and above.named_child(0) == parent
    return is_keyed or leaf.type.startswith(("property", "field", "private_property"))


def _binder(path: list[Node], binding: re.Pattern[str]) -> Node | None:
    """The node that binds the last one of a path where it stands."""
    for parent, node in zip(path[-2::-1], path[:0:-1], strict=False):
        is_read = any(parent.child_by_field_name(each) == node for each in _READ_FIELDS)
        if (is_read and parent.type != "pair_pattern") or ("assign" in parent.type and parent.child(0) != node):
            return None
        if binding.search(parent.type):
            return parent
        if not _WITHIN_BINDING.search(parent.type):
            return None
    return None
