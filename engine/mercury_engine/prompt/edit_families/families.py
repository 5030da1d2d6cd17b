"""All families, and which of them a model is of."""

from collections.abc import Iterable
from pathlib import Path

from mercury_engine.errors import ModelCorrupt
from mercury_engine.models import json_files
from mercury_engine.prompt.edit_families.instinct import INSTINCT
from mercury_engine.prompt.edit_families.mercury_edit import MERCURY_EDIT
from mercury_engine.prompt.edit_families.sweep import SWEEP, SWEEP_CARD
from mercury_engine.prompt.edit_families.window import Family
from mercury_engine.prompt.edit_families.zeta import ZETA_2, ZETA_2_1

FAMILIES = (MERCURY_EDIT, ZETA_2_1, ZETA_2, SWEEP, SWEEP_CARD, INSTINCT)
"""The first whose name a model's has is its family."""


FORMAT_FILE, MEND = "edit_format.json", "correct it or delete it"
"""A file in a model's folder, `{"family": "sweep"}`, which goes before the model's name."""


def family_of(model: str, named: str = "") -> Family | None:
    """The family that is `named`, dashes and dots apart, or else the one that a model's name tells."""
    if named:
        return next((each for each in FAMILIES if _plain(each.name) == _plain(named)), None)
    return next((each for each in FAMILIES if any(part in model.lower() for part in each.names)), None)


def family_of_folder(folder: Path, names: Iterable[str]) -> Family | None:
    """The family of a model in this process: what its folder says, else its names. Raises ModelCorrupt."""
    here, path = [each for each in FAMILIES if not each.is_chat], folder / FORMAT_FILE
    if not path.is_file():
        return next((found for name in names if (found := family_of(name)) in here), None)
    said = json_files.read(path, MEND)
    if (found := next((each for each in here if said == {"family": each.name}), None)) is None:
        known = ", ".join(each.name for each in here)
        raise ModelCorrupt(f'{path} is not {{"family": NAME}} with one of {known}; {MEND}')
    return found


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace(".", "")
