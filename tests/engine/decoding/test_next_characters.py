"""Which characters are likely next."""

import numpy as np
from mercury_engine.decoding.next_characters import NextCharacters
from mercury_engine.models.row_answers import RowQuestion

from tests.support.asking import answered

TEXTS = ["pa", "path", "pat", "pack", "(", " ="]


def test_what_only_spells_the_text_before_the_cursor_leaves_it_to_the_next_token() -> None:
    found, question = NextCharacters(TEXTS), RowQuestion.of([None], len(TEXTS), draws=True)
    for spell, chances in (("pa", (0.5, 0.2, 0.1, 0.02, 0.1, 0.08)), ("", (0.01, 0.01, 0.01, 0.01, 0.9, 0.06))):
        assert not found.is_known
        found.add(spell, answered(np.log(np.array([chances], np.float32)), question))
    assert found.is_known
    assert found.likeliest() == ("(", "t"), "c and the blank are not likely enough"
