"""All families, and which of them a model is of."""

from mercury_engine.prompt.edit_families.instinct import INSTINCT
from mercury_engine.prompt.edit_families.mercury_edit import MERCURY_EDIT
from mercury_engine.prompt.edit_families.sweep import SWEEP, SWEEP_CARD
from mercury_engine.prompt.edit_families.window import Family
from mercury_engine.prompt.edit_families.zeta import ZETA_2, ZETA_2_1

FAMILIES = (MERCURY_EDIT, ZETA_2_1, ZETA_2, SWEEP, SWEEP_CARD, INSTINCT)
"""The first whose name a model's has is its family."""


def family_of(model: str, named: str = "") -> Family | None:
    """The family that is `named`, dashes and dots apart, or else the one that a model's name tells."""
    if named:
        return next((each for each in FAMILIES if _plain(each.name) == _plain(named)), None)
    return next((each for each in FAMILIES if any(part in model.lower() for part in each.names)), None)


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace(".", "")
