"""The parameters of the functions and `catch` clauses around a place."""

import re

from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Snapshot

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
