"""Make edits to learn from: synthetic ones on syntax trees, and real ones between two versions of a file.

Each kind of edit (`rename.py` and others) plans all sites of one edit; some sites become the edit history and the next
one the target (`stage.py`); `examples/edits.py` lays the result out as a gap.
"""

from mercury_lab.training.edits.stage import EditExample
from mercury_lab.training.edits.versions import from_versions

__all__ = ["EditExample", "from_versions"]
