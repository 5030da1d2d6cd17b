"""Edits to learn from: made on syntax trees, or found between two versions of a file.

A kind of edit (`rename.py` and its like) plans all places of one edit; some of them are the history, the next one is
the target (`stage.py`); the sampler lays that out as a gap.
"""

from mercury_engine.training.edits.sampler import EditSampler
from mercury_engine.training.edits.stage import EditExample
from mercury_engine.training.edits.versions import from_versions

__all__ = ["EditExample", "EditSampler", "from_versions"]
