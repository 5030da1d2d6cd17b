"""What becomes of suggestions: inferred from edits, kept as figures on this machine, shown by `mercury-lsp stats`."""

from mercury_lsp.statistics.record import Record
from mercury_lsp.statistics.span import edit_between
from mercury_lsp.statistics.statistics import Statistics

__all__ = ["Record", "Statistics", "edit_between"]
