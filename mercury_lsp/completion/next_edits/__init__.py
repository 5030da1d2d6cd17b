"""Next edits: offers the user's last change for other places in the document, one at a time, if the model agrees.

Edits become changes (change.py, change_log.py), a change becomes a replacement of whole words or calls (replacement.py,
calls.py), rules find its edit sites (edit_sites.py, syntax_kind.py, repeatable_edits.py), and the model judges each one
(judging.py), or a renaming is walked to its end (renaming.py). What the user did in all files (history.py) says where
the next edit may be (places.py), which keeps rules from guessing; errors that appeared since say so, too
(diagnostics.py). A model that rewrites regions is asked about those places (rewritten_places.py, checks.py).
"""

from mercury_lsp.completion.next_edits.diagnostics import Diagnostic, Diagnostics
from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.history import History
from mercury_lsp.completion.next_edits.next_edits import NextEdits
from mercury_lsp.completion.next_edits.places import Places
from mercury_lsp.completion.next_edits.renaming import RenamedDocument, Renaming
from mercury_lsp.completion.next_edits.repeated_change import Closed
from mercury_lsp.completion.next_edits.rewritten_places import Surroundings

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
