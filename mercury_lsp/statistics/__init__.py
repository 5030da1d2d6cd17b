"""Statistics of suggestions: outcomes inferred from edits, kept on this machine, shown by `mercury-lsp stats`.

`Observer` (observer.py) follows each `Impression` (impression.py), a suggestion on display, through the edits at its
`TrackedSpan` (span.py), and makes a `OutcomeRecord` of its outcome (record.py). `Writer` (writer.py) stores the records
(store.py); summary.py and plot.py report them.
"""

from mercury_lsp.statistics.record import OutcomeRecord
from mercury_lsp.statistics.span import edit_between
from mercury_lsp.statistics.statistics import Statistics

__all__ = ["OutcomeRecord", "Statistics", "edit_between"]
