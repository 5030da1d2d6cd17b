"""The positions that one commit offers: two examples made and the rest left, or all made and nothing left."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import tree_sitter
from mercury_engine.text.lines import lines_of

from mercury_lab.commit_edits.changes import WORD, Change, ChangedText, groups, named_groups
from mercury_lab.commit_edits.position import Position, PositionFile
from mercury_lab.commit_edits.shapes import shape_of
from mercury_lsp.documents.languages import LANGUAGES, language_of, parser

MAX_CHANGES = 40
"""Changes of a commit; one with more is no work of an hour."""

MAX_EXAMPLE_TOKENS = 100
"""Old and new words and marks of an example, or of the change that follows from it: some eight lines."""

MIN_FORESEEN = 0.7
MIN_NAMED_FORESEEN = 0.8
MIN_IMPORT_FORESEEN = 0.3
"""Least share of a change's new words that the examples or its old lines have: of one like them, of one that only has
a new name in common with them, and of an import, whose module is in no use."""

MIN_TYPED_CHARS = 3
MIN_LEFT_CHARS = 8
"""Characters of a begun line that are typed and left, blanks aside."""


@dataclass(frozen=True)
class ChangedFile:
    """A file of a commit, and its changes."""

    path: str
    before: str
    after: str
    changes: tuple[ChangedText, ...]

    @property
    def language_id(self) -> str:
        return language_of(self.path)

    @cached_property
    def new_lines(self) -> list[str]:
        return lines_of(self.after)

    @cached_property
    def old_lines(self) -> list[str]:
        return lines_of(self.before)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the file before the commit."""
        return frozenset(WORD.findall(self.before))

    def text_of(self, change: Change) -> list[str]:
        """The new lines of a change, or the old ones of a deletion."""
        return self.new_lines[change.new_start : change.new_end] or self.old_lines[change.start : change.end]


@dataclass(frozen=True)
class ChangedFiles:
    """The files of a commit; `language` is the one of the first."""

    repository: str
    commit: str
    files: tuple[ChangedFile, ...]

    @cached_property
    def all(self) -> list[ChangedText]:
        return [each for file in self.files for each in file.changes]

    @cached_property
    def groups(self) -> list[list[ChangedText]]:
        return groups(self.all)

    @cached_property
    def named(self) -> list[list[ChangedText]]:
        known = frozenset().union(*(file.words for file in self.files))
        return named_groups(self.all, known)

    def shape(self, changed: ChangedText) -> str:
        file = self.files[changed.change.file]
        return shape_of(changed, file.language_id, file.text_of(changed.change))

    def position(self, shape: str, made: Sequence[ChangedText], left: Sequence[ChangedText]) -> Position:
        """A position after two changes; all others above them and in files before theirs are in the text already."""
        kept = {each.change for each in (*made, *left)}
        earlier = tuple(each.change for each in self.all if each.change not in kept)
        files = tuple(PositionFile(file.path, self.commit) for file in self.files)
        language_id = self.files[(left or made)[0].change.file].language_id
        changes = tuple(each.change for each in made), tuple(each.change for each in left)
        return Position(self.repository, shape, language_id, files, earlier, *changes)


def wanting(commit: ChangedFiles) -> Iterator[Position]:
    """Positions at which the rest of the commit is right, and its next change follows from the two that are made."""
    if len(commit.all) > MAX_CHANGES:
        return
    for group in commit.groups:
        yield from _continued(commit, group)
        yield from _in_other_file(commit, group)
    for group in commit.named:
        shape = commit.shape(group[2])
        if shape in ("parameter", "field", "import", "type") and _follows(
            commit, group[2], group[:2], MIN_NAMED_FORESEEN
        ):
            yield commit.position(shape, group[:2], _rest(commit, group[1], group[2:]))
        yield from _import_last(commit, group)


def _follows(
    commit: ChangedFiles, target: ChangedText, made: Sequence[ChangedText], least: float = MIN_FORESEEN
) -> bool:
    """Whether a change is small, and so many of its words are in the changes made or in its own old lines; those of an
    insertion may be anywhere in its file."""
    if max(len(each.old) + len(each.new) for each in (target, *made)) > MAX_EXAMPLE_TOKENS:
        return False
    known = {token for each in made for token in (*each.old, *each.new)} | set(target.old)
    if target.is_insertion:
        known |= commit.files[target.change.file].words
    words = [token for token in target.inserted if WORD.fullmatch(token)]
    return sum(word in known for word in words) >= least * len(words)


def _rest(commit: ChangedFiles, last: ChangedText, first: Sequence[ChangedText]) -> list[ChangedText]:
    """What is left: the given changes, the next one first, and all others of the commit below the last one made."""
    return [*first, *(each for each in commit.all if each.change > last.change and each not in first)]


def _continued(commit: ChangedFiles, group: Sequence[ChangedText]) -> Iterator[Position]:
    """Two of three or more like changes in one file; of inserted lines also when the third is begun."""
    for file in dict.fromkeys(each.change.file for each in group):
        own = [each for each in group if each.change.file == file]
        if len(own) < 3 or not _follows(commit, own[2], own[:2]):
            continue
        at = commit.position(commit.shape(own[2]), own[:2], _rest(commit, own[1], own[2:]))
        yield at
        line = commit.files[file].new_lines[own[2].change.new_start] if own[2].new else ""
        if all(each.is_insertion for each in own[:3]) and (typed := _typed(line)):
            yield replace(at, shape="completion", typed=typed)


def _in_other_file(commit: ChangedFiles, group: Sequence[ChangedText]) -> Iterator[Position]:
    """The last two like changes of a file, and others of them in the files behind it."""
    for number in dict.fromkeys(each.change.file for each in group):
        own = [each for each in group if each.change.file == number]
        others = [each for each in group if each.change.file > number]
        if len(own) > 1 and others and _follows(commit, others[0], own[-2:]):
            left = [*others, *(e for e in commit.all if e.change.file > number and e not in others)]
            yield commit.position("other file", own[-2:], left)
            return


def _typed(line: str) -> int:
    """Characters of a line up to the end of its first word or second mark, at a third of it; 0 if it is too short."""
    text = line.rstrip()
    ends = [m.end() for m in re.finditer(r"\w+|[^\w\s]", text)]
    blank = len(text) - len(text.lstrip())
    fitting = [end for end in ends if end - blank >= MIN_TYPED_CHARS and len(text[end:].strip()) >= MIN_LEFT_CHARS]
    third = blank + (len(text) - blank) // 3
    return next((end for end in fitting if end >= third), 0)


def _import_last(commit: ChangedFiles, group: Sequence[ChangedText]) -> Iterator[Position]:
    """Two uses of a new name, and the import that brings it in."""
    imports = [each for each in group if commit.shape(each) == "import"]
    for target in imports[:1]:
        uses = [each for each in group if each not in imports and each.change.file == target.change.file][:2]
        if len(uses) == 2 and _follows(commit, target, uses, MIN_IMPORT_FORESEEN):
            below = (each for each in commit.all if each.change > uses[1].change and each is not target)
            yield commit.position("import", uses, [target, *below])


def quiet(commit: ChangedFiles) -> Iterator[Position]:
    """Positions at which nothing is right, for the commit is finished or was taken back."""
    if len(commit.all) > MAX_CHANGES:
        return
    for group in commit.groups:
        for file in dict.fromkeys(each.change.file for each in group):
            own = [each for each in group if each.change.file == file]
            if len(own) < 2 or not _follows(commit, own[-1], own[-2:-1]):
                continue
            if kind := _what_is_left(commit.files, own[-1]):
                yield commit.position(kind, own[-2:], ())
            if len(own) > 2:
                at = commit.position("revert", own[:2], ())
                earlier = tuple(change for change in at.earlier if change < own[0].change)
                yield replace(at, earlier=earlier, is_undone=True)


def _what_is_left(files: Sequence[ChangedFile], changed: ChangedText) -> str | None:
    """ "exhausted" if what a change removed is in no file any more, "literal" if it is in comments and strings of its
    own file only, None if it is left in code."""
    for gone, _ in changed.replaced:
        phrase = r"\s*".join(map(re.escape, gone))
        if not any(map(WORD.fullmatch, gone)):
            continue
        found = re.compile(rf"(?<!\w){phrase}(?!\w)")
        places = [(file, match.start()) for file in files for match in found.finditer(file.after)]
        if not places:
            return "exhausted"
        own = files[changed.change.file]
        return (
            "literal"
            if all(file is own and is_literal(own.language_id, own.after, at) for file, at in places)
            else None
        )
    return "exhausted" if changed.is_insertion else None


def is_literal(language_id: str, text: str, offset: int) -> bool:
    """Whether a character is within a comment or a string, and not in code inside it."""
    known = LANGUAGES.get(language_id)
    if known is None:
        return False
    data = text.encode()
    at = len(text[:offset].encode())
    node: tree_sitter.Node | None = parser(language_id).parse(data).root_node.descendant_for_byte_range(at, at)
    while node is not None:
        if node.type in known.embedded:
            return False
        if node.type in known.comments or node.type in known.strings:
            return True
        node = node.parent
    return False


def unrelated(one: ChangedFiles, other: ChangedFiles) -> Position | None:
    """A finished commit, then another one, both of a single file, with the cursor behind the last change."""
    files = (one.files[0], other.files[0])
    if files[0].path == files[1].path or len(one.files) + len(other.files) > 2:
        return None
    if not 0 < len(one.all) <= MAX_CHANGES or not 0 < len(other.all) <= MAX_CHANGES or _words(one) & _words(other):
        return None
    if max(len(each.old) + len(each.new) for each in (one.all[-1], other.all[-1])) > MAX_EXAMPLE_TOKENS:
        return None
    moved = tuple(replace(each.change, file=1) for each in other.all)
    names = (PositionFile(files[0].path, one.commit), PositionFile(files[1].path, other.commit))
    made = (one.all[-1].change, moved[-1])
    earlier = tuple(each.change for each in one.all[:-1]) + moved[:-1]
    return Position(one.repository, "unrelated", files[1].language_id, names, earlier, made, ())


def _words(commit: ChangedFiles) -> set[str]:
    tokens = {token for each in commit.all for token in (*each.inserted, *each.removed)}
    return {token for token in tokens if len(token) > 3 and WORD.fullmatch(token)}
