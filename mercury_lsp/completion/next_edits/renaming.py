"""The renamings in progress in one document, and the other places where a changed name means the same.

Another language server reports the places, or else they are found in the syntax tree: the uses of a plain name inside
the smallest function that binds it, or else in the file; those of a member of `self` or `this` in its class. Other
members, and keys, need types and are left to language servers. Edits move the places until none is left.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from mercury_lsp.completion.next_edits.edits import (
    below_first,
    effective,
    moved_offset,
    narrowed,
    occurrences,
    text_around,
)
from mercury_lsp.completion.suggestions import Renaming
from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.languages import language
from mercury_lsp.documents.redaction import edit_shows_secret

MIN_FINISHED_NAME_CHARS, MAX_NAME_CHARS = 2, 80
"""Shortest new name that counts as finished with the cursor at its end, and longest name, old or new."""

MAX_USES = 1_000
"""Most uses of a name examined, the nearest first, at about 20 microseconds each, once for each changed name."""

OWNER_CHARS = 8
"""Characters before a name that are searched for the owner of a member."""

_NAME, _NO_LETTER = re.compile(r"[^\W\d]\w*"), re.compile(r"\W")
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
_FILE = -1


@dataclass(frozen=True, slots=True)
class _Begun:
    """The places of a name, from the top down, by offsets that edits move, and the name that the user gives to them."""

    old: str = ""
    starts: tuple[int, ...] = ()
    binding: int | None = None
    """The index of the first place that binds the name."""
    is_told: bool = False
    """The places come from another language server, which knows scopes and types."""
    new: str = ""
    is_ignored: bool = False
    """The new name was in use before, so the user switched to it instead of renaming; or the line shows a secret."""
    last: int = 0
    """The index of the place that the user renamed last."""

    def know(self, renamed: Edit) -> bool:
        """Whether the name was changed in one of these places."""
        return renamed.removed == self.old and renamed.start in self.starts

    def are_touched_by(self, change: Edit) -> bool:
        """Whether a change has an end or more in common with one of these places."""
        return any(change.start - len(self.new) <= at <= change.new_end for at in self.starts)

    def renamed_in(self, snapshot: Snapshot) -> set[int]:
        """The places that have the new name, perhaps behind a key with the old one: `{old: new}` for `{old}`."""
        return {at for at in self.starts if _word_at(at, snapshot, behind=f"{self.old}: ") == self.new}

    def after(self, edit: Edit, names: Collection[str]) -> "_Begun":
        """The places after an edit, in which the name may have become one of `names`."""
        if not self.starts or edit.start > self.starts[-1]:
            return self
        return replace(self, starts=tuple(_moved(at, edit, {self.old, *names}) for at in self.starts))


class Renamings:
    """The renamings in progress in one document; used on the event loop's thread only."""

    def __init__(self, is_declined: Callable[[str, Edit], bool] = lambda uri, edit: False) -> None:
        self._is_declined = is_declined
        """Whether the user did not want an edit of a document."""
        self._begun: list[_Begun] = []
        """In the order of their latest changes."""
        self._told = _Begun()
        """The places of the name at the cursor, from another language server."""
        self._last: Edit | None = None
        """The last change, if it replaced a name."""
        self._erased_at: int | None = None
        """Where the last edit was, if it only removed text."""

    def told(self, snapshot: Snapshot, places: Iterable[tuple[int, int, bool]]) -> None:
        """Another server reports the places of the name at the cursor: start, end, and whether it is assigned there."""
        found = sorted(set(places))
        names, starts = {snapshot.slice(start, end) for start, end, _ in found}, tuple(start for start, _, _ in found)
        if len(names) == 1 and not {*starts} < {*self._told.starts}:  # during a renaming it sees only a part
            written = (index for index, (_, _, is_written) in enumerate(found) if is_written)
            self._told = _Begun(names.pop(), starts, next(written, None), is_told=True)

    def record(self, edits: Sequence[Edit]) -> None:
        """Record edits, in order; every edit of the document must be recorded."""
        for edit in effective(edits):
            self._erased_at = None if edit.inserted else edit.start
            names = {each.new for each in self._begun}
            self._told = self._told.after(edit, names)
            self._begun = [each.after(edit, names) for each in self._begun]

    def under_way(self, snapshot: Snapshot, changes: Sequence[Edit], taken_back: Edit | None = None) -> Renaming | None:
        """The renaming to continue: the latest that must go on, or else that of the last change, even if finished.

        `changes` are the user's in this document, oldest first; renamings that none of them touches are forgotten.
        `taken_back` is the change that the user has just undone.
        """
        found = [_renamed_by(each, snapshot) for each in changes]
        self._last = found[-1] if found else None
        made = [each for each in found if each is not None]
        for each in made:
            self._begin(each, made, snapshot)
        touched = [each for each in self._begun if any(map(each.are_touched_by, changes))]
        self._begun = [each for each in touched if each.renamed_in(snapshot)]
        finished = None
        for begun in reversed(self._begun):
            if begun.is_ignored or (taken_back is not None and begun.are_touched_by(taken_back)):
                continue
            renaming = self._seen(begun, snapshot)
            if renaming.left and renaming.must_go_on:
                return renaming
            if self._last is not None and begun.new == self._last.inserted and begun.know(self._last):
                finished = renaming
        return finished

    def is_unfinished(self, cursor: int) -> bool:
        """Whether the cursor is in the new name of the last change, and the user seems to be still editing it."""
        last = self._last
        if last is None or not last.start <= cursor <= last.new_end:
            return False
        is_erasing = self._erased_at is not None and last.start <= self._erased_at <= last.new_end
        is_short = len(last.inserted) < MIN_FINISHED_NAME_CHARS
        return is_erasing or is_short or last.removed.startswith(last.inserted)

    def _begin(self, found: Edit, made: Sequence[Edit], snapshot: Snapshot) -> None:
        """Begin a renaming with a changed name, or continue one."""
        known = [each for each in self._begun if each.know(found)]
        begun = next((each for each in known if each.new == found.inserted), None)
        if begun is None:
            told = self._told if self._told.know(found) else None
            begun = known[-1] if known else told or _places_of(found, made, snapshot)
            if begun is None:
                return
            is_secret = edit_shows_secret(snapshot, found.start, found.new_end, found.removed)
            is_ignored = is_secret or (not begun.is_told and _was_there(found, begun, snapshot))
            begun = replace(begun, new=found.inserted, is_ignored=is_ignored)
        latest = replace(begun, last=begun.starts.index(found.start))
        self._begun = [*(each for each in self._begun if each != begun), latest]

    def _seen(self, begun: _Begun, snapshot: Snapshot) -> Renaming:
        """The state of a renaming in a version; remaining places below the last change come first.

        Places with a new name that the user gave earlier remain, too.
        """
        new, made = begun.new, begun.renamed_in(snapshot)
        earlier = self._begun[: self._begun.index(begun)]
        names = [begun.old, *(each.new for each in earlier if each.starts == begun.starts)]
        left = [
            Edit(at, name, f"{name}: {new}" if _is_shorthand(at, snapshot) else new)
            for at in begun.starts
            if at not in made and (name := _word_at(at, snapshot)) in names
        ]
        ordered = below_first(left, begun.starts[begun.last])
        open_ones = tuple(each for each in ordered if not self._is_declined(snapshot.uri, each))
        is_bound_here = begun.binding is not None and begun.starts[begun.binding] in made
        must_go_on = is_bound_here or (len(made) > 1 and (begun.binding is not None or begun.is_told))
        return Renaming(begun.old, new, len(made), open_ones, must_go_on, begun.is_told)


def _renamed_by(change: Edit, snapshot: Snapshot) -> Edit | None:
    """The change extended to whole words, without text typed after the new name; None if these aren't two names."""
    change, reach = narrowed(change), MAX_NAME_CHARS + 1
    head = _NO_LETTER.split(snapshot.slice(change.start - reach, change.start))[-1]
    tail = _NO_LETTER.split(snapshot.slice(change.new_end, change.new_end + reach), 1)[0]
    old, new = head + change.removed + tail, head + change.inserted + tail
    name = _NO_LETTER.split(new, 1)[0]
    if name != new and (tail or _GOES_ON.match(new, len(name))):
        return None
    are_names = all(_NAME.fullmatch(each) and len(each) <= MAX_NAME_CHARS for each in (old, name))
    return Edit(change.start - len(head), old, name) if are_names and old != name else None


def _moved(at: int, edit: Edit, names: Collection[str]) -> int:
    """A place after an edit: where one of its names occurs again, or else moved with the text."""
    if edit.start <= at < edit.end:
        pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)"
        old, new = ([each.start() for each in re.finditer(pattern, text)] for text in (edit.removed, edit.inserted))
        if len(old) == len(new) and at - edit.start in old:
            return edit.start + new[old.index(at - edit.start)]
    is_typed_before = not edit.removed and re.search(r"\W\Z", edit.inserted) is not None
    return at if edit.start == at and not is_typed_before else moved_offset(at, edit)


def _word_at(at: int, snapshot: Snapshot, behind: str = "") -> str:
    """The word at an offset, after the text `behind` which it may stand."""
    text = snapshot.slice(at, at + len(behind) + MAX_NAME_CHARS + 1)
    return _NO_LETTER.split(text.removeprefix(behind), 1)[0]


def _is_shorthand(at: int, snapshot: Snapshot) -> bool:
    """Whether a name is a key as well, as in `{count}`."""
    return any("shorthand" in node.type for node in _path_to(at, snapshot)[-2:])


def _places_of(renamed: Edit, made: Iterable[Edit], snapshot: Snapshot) -> _Begun | None:
    """The places where the old name means the same; `renamed` and others of the changes made have the new one already.

    None for anything but a plain name or a member of `self`, and before the document is parsed.
    """
    here = _use_at(renamed.start, snapshot)
    if here is None:
        return None
    names = renamed.removed, renamed.inserted
    there = (_use_at(each.start, snapshot) for each in made if (each.removed, each.inserted) == names)
    found = {use.start: use for use in (here, *filter(None, there), *_uses(renamed.removed, here, snapshot))}
    binders = {use.scopes[-1] for use in found.values() if use.binds or use.is_member}
    binders -= {use.scopes[-1] for use in found.values() if use.is_outer}
    same = [found[at] for at in sorted(found) if found[at].home(binders) == here.home(binders)]
    binding = next((index for index, use in enumerate(same) if use.binds), None)
    return _Begun(renamed.removed, tuple(use.start for use in same), binding)


def _was_there(renamed: Edit, begun: _Begun, snapshot: Snapshot) -> bool:
    """Whether the new name was in use in the old one's scope: the user switched to it instead of renaming."""
    here = _use_at(renamed.start, snapshot)
    if here is None:
        return False
    binding = None if begun.binding is None else _use_at(begun.starts[begun.binding], snapshot)
    home = _FILE if binding is None else binding.scopes[-1]
    uses = _uses(renamed.inserted, here, snapshot)
    return any(home in use.scopes and use.start not in begun.starts for use in uses)


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of a plain name, or of a member of `self`."""

    start: int
    scopes: tuple[int, ...]
    """`_FILE` and the offsets of the functions around it, outermost first; for a member, of the classes."""
    binds: bool
    is_outer: bool
    """It only declares that an outer scope binds the name."""
    is_member: bool

    def home(self, binders: Collection[int]) -> int:
        """The innermost of its scopes that is among `binders`, or else the file."""
        return next((scope for scope in reversed(self.scopes) if scope in binders), _FILE)


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
    starts = (snapshot.source.offset_of_byte(node.start_byte) for node in scopes)
    is_outer = path[-2].type in ("global_statement", "nonlocal_statement")
    return _Use(at, (_FILE, *starts), binder is not None, is_outer, is_member)


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
