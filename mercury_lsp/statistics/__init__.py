"""Statistics of suggestions: outcomes inferred from edits, kept on this machine, shown by `mercury-lsp stats`.

`Observer` follows each `Impression`, a suggestion on display, through the edits around it and records its outcome.
store.py keeps the records and summarises them.
"""

from mercury_lsp.statistics.observer import edit_between
from mercury_lsp.statistics.statistics import Statistics
from mercury_lsp.statistics.store import OutcomeRecord

__all__ = ["OutcomeRecord", "Statistics", "edit_between"]
