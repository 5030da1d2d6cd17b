"""Which edit format a model has, by its own template file or by its name."""

import re
from collections.abc import Iterable
from pathlib import Path

from mercury_engine.prompt.edit_formats.edit_format import EditFormat, read_format
from mercury_engine.prompt.edit_formats.instinct import INSTINCT
from mercury_engine.prompt.edit_formats.sweep import SWEEP, SWEEP_SERVER
from mercury_engine.prompt.edit_formats.zeta import ZETA_1, ZETA_2, ZETA_2_1

FAMILIES = (SWEEP_SERVER, SWEEP, ZETA_2_1, ZETA_2, ZETA_1, INSTINCT)
"""In the order in which their names are tried."""

TOKENS = frozenset(token for family in FAMILIES for token in family.tokens)
"""Their markers that are tokens; text that spells one stays text."""


def format_of(folder: Path, names: Iterable[str]) -> EditFormat | None:
    """The format of the folder's template file, or of the first family that one of the names belongs to.

    Raises ModelCorrupt for a template file that is not valid.
    """
    if (own := read_format(folder, FAMILIES)) is not None:
        return own
    known = [re.sub(r"_", "-", name.lower()) for name in names]
    return next((family for family in FAMILIES if any(re.search(family.names, name) for name in known)), None)
