"""Families of models made for edits, in this process or on a server."""

from mercury_engine.prompt.edit_families.families import FAMILIES, FORMAT_FILE, family_of, family_of_folder
from mercury_engine.prompt.edit_families.window import Family, new_text

__all__ = ["FAMILIES", "FORMAT_FILE", "Family", "family_of", "family_of_folder", "new_text"]
