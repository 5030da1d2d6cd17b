"""Statistics of suggestions: outcomes inferred from edits, kept on this machine, shown by `mercury-lsp stats`.

`Observer` (observer.py) follows each `Impression` (impression.py), a suggestion on display, through the edits around it
and records its outcome as an `OutcomeRecord` (record.py). store.py keeps the records; summary.py reports them.
"""

from mercury_lsp.statistics.impression import edit_between
from mercury_lsp.statistics.record import OutcomeRecord
from mercury_lsp.statistics.statistics import Statistics

__all__ = ["OutcomeRecord", "Statistics", "edit_between"]
