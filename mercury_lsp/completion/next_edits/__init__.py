"""Next edits: what follows from what the user did, one at a time.

What the user did in all files (history.py) is read as examples (examples.py). A change made twice goes on where the
same text or lines stand (pairs.py, whole_lines.py) and in lines like the examples (templates.py). The last change may
be a renaming (change.py, replacement.py), which is walked to its end (name_places.py, renaming.py). A model rewrites
the region around the cursor, that of a line with a name of the last change, and by key where errors appeared
(region_edits.py, rewriting.py, places.py, diagnostics.py). What is never shown is in filters.py, what became of offers
in ledger.py.
"""

from mercury_lsp.completion.next_edits.diagnostics import Diagnostics
from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.history import History
from mercury_lsp.completion.next_edits.next_edits import NextEdits
from mercury_lsp.completion.next_edits.region_edits import Question
from mercury_lsp.completion.next_edits.renaming import RenamedDocument, Renaming

__all__ = [
    "Diagnostics",
    "EditSite",
    "History",
    "NextEdits",
    "Question",
    "RenamedDocument",
    "Renaming",
]
