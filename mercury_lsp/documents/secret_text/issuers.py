"""Tokens that are known by their issuer's prefix or shape, and names of issuers whose tokens have none.

`issuers.txt` states facts that issuers publish and that gitleaks' and trufflehog's public rules collect.
"""

import re
from functools import cache

from mercury_lsp.documents.secret_text.data import listed, read

_NAMED = "|".join(listed("issuers"))
NAMED_ISSUER = re.compile(
    rf"(?:{_NAMED})[\w .-]{{0,24}}?[\"'`\])]{{0,3}}(?:: ?[\w.<>| ]{{1,30}}?)?\s{{0,4}}(?:=>|:=|[=:,>(])"
    r"[\s\"'`(]{0,6}([\w=./+-]{15,})(?![\w(=./+-])",
    re.IGNORECASE,
)
"""An issuer's name with a value, whose group 1 counts if it looks random: its tokens have no prefix."""


@cache
def issuer_pattern() -> re.Pattern[str]:
    """One expression for all tokens of `issuers.txt`; it can match only where no letter or digit precedes."""
    shapes = [line.split(" ", 1)[1] for line in read("issuers.txt").splitlines() if line and not line.startswith("#")]
    return re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(shapes) + ")")
