"""Whether an edit only moves white space, and whether lines parse or are quoted."""

from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language


def only_moves_white_space(old: str, new: str) -> bool:
    """Whether two texts differ in blanks and line breaks only, or not at all."""
    return "".join(old.split()) == "".join(new.split())


def parses(snapshot: Snapshot, first: int, end: int) -> bool:
    """Whether the lines [first, end) of a version parse."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return False
    start, stop = (snapshot.source.byte_of(snapshot.offset_at(line, 0)) for line in (first, end))
    node = snapshot.tree.root_node.named_descendant_for_byte_range(start, max(start, stop - 1))
    return node is None or not node.has_error


def quoted_as(snapshot: Snapshot, offset: int) -> str:
    """`comment` or `string` if an offset is within one; empty for code, and without a tree."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return ""
    rules = language(snapshot.language_id)
    for node in reversed(path_to(snapshot.tree, snapshot.source.byte_of(offset))):
        if node.type in rules.embedded or node.type in rules.bodies:
            return ""
        if node.type in rules.strings or node.type in rules.comments:
            return "string" if node.type in rules.strings else "comment"
    return ""
