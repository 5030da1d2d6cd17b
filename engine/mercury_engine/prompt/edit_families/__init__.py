"""The families of models of edits that a server can be asked for, one file each."""

from mercury_engine.prompt.edit_families.families import FAMILIES, family_of
from mercury_engine.prompt.edit_families.window import Family, Window

__all__ = ["FAMILIES", "Family", "Window", "family_of"]
