"""Next edits: what follows from the user's last changes, offered one at a time.

The changes in all files (history.py) are read as examples (examples.py). A change made twice is offered where the same
text or lines occur (pairs.py) and in lines like the examples (templates.py). If the last change renamed something, the
other places follow (renaming.py). A model rewrites the region around the cursor, the region around another use of a
changed name and, by key, lines with new errors (region_edits.py, rewriting.py, places.py). filters.py says what is
never shown, and the ledger in proposals.py what became of the offers.
"""

from mercury_lsp.completion.next_edits.history import History
from mercury_lsp.completion.next_edits.next_edits import NextEdits, RenamedDocument
from mercury_lsp.completion.next_edits.places import Diagnostics
from mercury_lsp.completion.next_edits.proposals import Question

__all__ = [
    "Diagnostics",
    "History",
    "NextEdits",
    "Question",
    "RenamedDocument",
]
