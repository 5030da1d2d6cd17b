"""Next edits: where the user is first, elsewhere second, one at a time.

What the user did in all files (history.py) is what a model reads when it rewrites the region around the cursor, and
places that a head ranks (region_edits.py, rewriting.py, places.py). Edits also become changes (change.py,
change_log.py), a change a replacement of whole words or calls (replacement.py, calls.py), and rules find where it goes
on (repeated_change.py, mirroring.py, signatures.py); the model judges what isn't exact (proposals.py, judging.py), and
a renaming is walked to its end (renaming.py). Errors that appeared since say where to look, too (diagnostics.py). What
is never shown is in filters.py, what became of offers in ledger.py.
"""

from mercury_lsp.completion.next_edits.diagnostics import Diagnostic, Diagnostics
from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.history import History
from mercury_lsp.completion.next_edits.next_edits import NextEdits
from mercury_lsp.completion.next_edits.places import Places
from mercury_lsp.completion.next_edits.region_edits import Surroundings
from mercury_lsp.completion.next_edits.renaming import RenamedDocument, Renaming
from mercury_lsp.completion.next_edits.repeated_change import Closed

__all__ = [
    "Closed",
    "Diagnostic",
    "Diagnostics",
    "EditSite",
    "History",
    "NextEdits",
    "Places",
    "RenamedDocument",
    "Renaming",
    "Surroundings",
]
