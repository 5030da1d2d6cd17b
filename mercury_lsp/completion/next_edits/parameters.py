"""The parameters of the functions and `catch` clauses around a place, and the class."""

import re

from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Snapshot

_CLASSES = ("class_definition", "class_declaration", "abstract_class_declaration", "class")
_NAME = re.compile(r"[^\W\d]\w*")


def parameters_around(snapshot: Snapshot, offset: int) -> frozenset[str]:
    """The words of the parameters of the functions and `catch` clauses around an offset; empty without a tree."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return frozenset()
    path = path_to(snapshot.tree, snapshot.source.byte_of(offset) + 1)
    around = [node for node in path if node.start_byte < snapshot.source.byte_of(offset)]
    lists = [node.child_by_field_name(field) for node in around for field in ("parameters", "parameter")]
    declared = [node.child_by_field_name("declarator") for node in around]
    lists += [node.child_by_field_name("parameters") for node in declared if node is not None]
    texts = ((node.text or b"").decode("utf-8", "replace") for node in lists if node is not None)
    return frozenset(word for text in texts for word in _NAME.findall(text))


def class_around(snapshot: Snapshot, offset: int) -> str:
    """The name of the innermost class around an offset; empty if there is none."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return ""
    path = path_to(snapshot.tree, snapshot.source.byte_of(offset) + 1)
    inner = next((node for node in reversed(path) if node.type in _CLASSES), None)
    name = inner.child_by_field_name("name") if inner is not None else None
    return (name.text or b"").decode("utf-8", "replace") if name is not None else ""
