"""The rules for secrets are those of detect-secrets, from which they were copied."""

import random
import re
from pathlib import Path

import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.filters import heuristic
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin
from detect_secrets.plugins.ip_public import IPPublicDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.keyword import DENYLIST, REGEX_BY_FILETYPE, KeywordDetector
from detect_secrets.util.filetype import FileType

from mercury_lsp.documents import secret_rules

CORPUS = Path(__file__).parents[2] / "data" / "held_out"

PLUGINS = [kind() for kind in get_mapping_from_secret_type_to_class().values() if kind is not IPPublicDetector]

FILE_TYPES = {
    "c": FileType.C,
    "cpp": FileType.C_PLUS_PLUS,
    "go": FileType.GO,
    "config": FileType.CONFIG,
    "other": FileType.PYTHON,
}
"""By kind of language, the library's."""

LANGUAGES = {"c": "c", "cpp": "cpp", "go": "go", "config": "yaml", "other": "python"}

NAMES = ("password", "api_key", "DB_PASS", "my_secret", "contraseña", "token", "x", '"auth-key"', "pwd[0]", "PWD[2]")
SIGNS = (" = ", " := ", ": ", " == ", "=> ", " = @", "(", ".assign(", " != ", " ", "=", ":=")
VALUES = (
    *("hunter2", "${HOME}", "{x}", "<none>", "$", "a", "12345678", "****", "get(key)", "os.environ[x]", "é1", "a b"),
    *("AbCd12+/=-_efGH34ij", "q83vASNFZ4kLmN0pQrStUvWxYz", "0123456789", "deadbeef0123456789", "98765432109876543210"),
    *("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.q83v", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0x.q83v", "eyJ.x"),
)
QUOTES, ENDS = ('"', "'", "`", ""), ("", ";", ")", "} ", " == password", " !== 'db_pass'", ", y", "\n")


def test_the_patterns_are_the_librarys():
    regexes = [regex for each in PLUGINS for regex in getattr(each, "denylist", ())]
    caseless = {regex.pattern for regex in regexes if regex.flags & re.IGNORECASE}
    exact = {regex.pattern for regex in regexes if not regex.flags & re.IGNORECASE}
    assert set(secret_rules.CASELESS_PATTERNS) == caseless
    assert {*secret_rules.EXACT_PATTERNS, secret_rules.WEB_TOKEN} == exact


@pytest.mark.parametrize(("kind", "file_type"), FILE_TYPES.items())
def test_the_patterns_for_passwords_are_the_librarys(kind: str, file_type: FileType):
    ours = [(each.pattern, each.flags, group) for each, group in secret_rules._keyword_patterns(kind)]
    assert ours == [(each.pattern, each.flags, group) for each, group in REGEX_BY_FILETYPE[file_type].items()]


def made_lines(count: int) -> list[str]:
    rng = random.Random(0)

    def made() -> str:
        quote = rng.choice(QUOTES)
        value = f"{quote}{rng.choice(VALUES)}{quote if rng.random() < 0.9 else rng.choice(QUOTES)}"
        return f"{rng.choice(NAMES)}{rng.choice(SIGNS)}{value}{rng.choice(ENDS)}"

    return [made() for _ in range(count)]


def sample_lines() -> list[str]:
    files = sorted(path for path in CORPUS.rglob("*") if path.is_file())[::7]
    return [line for path in files for line in path.read_text("utf-8", "replace").splitlines()[:200:3]]


def is_secret_to_the_library(line: str, kind: str) -> bool:
    for plugin in PLUGINS:
        if isinstance(plugin, KeywordDetector):
            continue
        found = list(plugin.analyze_string(line))
        if isinstance(plugin, HighEntropyStringsPlugin):
            found = [each for each in found if plugin.calculate_shannon_entropy(each) > plugin.entropy_limit]
        if found:
            return True
    if re.search("|".join(DENYLIST), line, re.IGNORECASE) is None or heuristic.is_indirect_reference(line):
        return False
    assigned = KeywordDetector().analyze_string(line, REGEX_BY_FILETYPE[FILE_TYPES[kind]])
    templated, blank = heuristic.is_templated_secret, heuristic.is_not_alphanumeric_string
    return any(not templated(each) and not blank(each) for each in assigned)


@pytest.mark.parametrize("kind", FILE_TYPES)
def test_lines_are_judged_as_the_library_judges_them(kind: str):
    lines = [*made_lines(4000), *sample_lines()]
    tests = secret_rules.line_tests()
    ours = [
        any(test(line) for test in tests) or secret_rules.is_assigned_secret(line, LANGUAGES[kind]) for line in lines
    ]
    theirs = [is_secret_to_the_library(line, kind) for line in lines]
    assert [line for line, our, their in zip(lines, ours, theirs, strict=True) if our != their] == []
    assert 100 < sum(ours) < len(lines) - 100


def test_every_plugin_is_covered():
    """A plugin with a rule of its own kind would need code of its own."""
    own = [each for each in PLUGINS if type(each).analyze_string is not RegexBasedDetector.analyze_string]
    assert {type(each).__base__ for each in own} <= {
        HighEntropyStringsPlugin,
        RegexBasedDetector,
        KeywordDetector.__base__,
    }
    assert [type(each) for each in own if isinstance(each, RegexBasedDetector)] == [JwtTokenDetector]
