r"""The rules by which a line looks like a secret: those of detect-secrets 1.5, except the one for public IP addresses.

They are copied (Apache License 2.0; the words for passwords are from Bandit, MIT License, copyright 2014
Hewlett-Packard Development Company), because importing the library loads an HTTP client, 20 MB, and takes a sixth of a
second. A test compares the copy with the library.
"""

import base64
import json
import math
import re
import string
from collections.abc import Callable, Iterator
from functools import cache

LineTest = Callable[[str], object]
"""Returns something true for a line that looks like a secret."""

_ASSIGNED = (
    r"""(?:(?<=\W)|(?<=^))(?:\[|)(?:"|\'|)(?:{name}){key}(?:"|\'|)(?:\]|)"""
    r"""(?: *)(?:=|:|:=|=>| +|::)(?: *)(?:"|\'|)({secret})(?:"|\'|)"""
)
"""A secret assigned to a key with a service's name."""

_KEY_WORDS = "(?:key|pwd|password|pass|token)"
_CLOUDANT = "(?:_|-|)(?:api|)(?:key|pwd|pw|password|pass|token)"
_IBM_CLOUD = "ibm(?:_|-|)cloud(?:_|-|)iam|cloud(?:_|-|)iam|ibm(?:_|-|)cloud|ibm(?:_|-|)iam|ibm|iam|cloud|"  # or none


def _assigned(name: str, key: str, secret: str) -> str:
    return _ASSIGNED.format(name=name, key=key, secret=secret)


EXACT_PATTERNS = (
    r'(?:\s|=|:|"|^)AKC[a-zA-Z0-9]{10,}(?:\s|"|$)',  # Artifactory
    r'(?:\s|=|:|"|^)AP[\dABCDEF][a-zA-Z0-9]{8,}(?:\s|"|$)',
    "(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}",  # AWS
    r"AccountKey=[a-zA-Z0-9+\/=]{88}",  # Azure storage
    r"://[^:/\?\#\[\]@!\$\&'\(\)\*\+,;=\s]+:([^:/\?\#\[\]@!\$\&'\(\)\*\+,;=\s]+)@",  # user:password@host
    r"[MNO][a-zA-Z\d_-]{23,25}\.[a-zA-Z\d_-]{6}\.[a-zA-Z\d_-]{27}",  # Discord
    "(ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9_]{36}",  # GitHub
    r"(glpat|gldt|glft|glsoat|glrt)-[A-Za-z0-9_\-]{20,50}(?!\w)",  # GitLab
    r"GR1348941[A-Za-z0-9_\-]{20,50}(?!\w)",
    r"glcbt-([0-9a-fA-F]{2}_)?[A-Za-z0-9_\-]{20,50}(?!\w)",
    r"glimt-[A-Za-z0-9_\-]{25}(?!\w)",
    r"glptt-[A-Za-z0-9_\-]{40}(?!\w)",
    r"glagent-[A-Za-z0-9_\-]{50,1024}(?!\w)",
    r"gloas-[A-Za-z0-9_\-]{64}(?!\w)",
    "[0-9a-z]{32}-us[0-9]{1,2}",  # Mailchimp
    r"\/\/.+\/:_authToken=\s*((npm_.+)|([A-Fa-f0-9-]{36})).*",  # npm
    "sk-[A-Za-z0-9-_]*[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",  # OpenAI
    "BEGIN DSA PRIVATE KEY",
    "BEGIN EC PRIVATE KEY",
    "BEGIN OPENSSH PRIVATE KEY",
    "BEGIN PGP PRIVATE KEY BLOCK",
    "BEGIN PRIVATE KEY",
    "BEGIN RSA PRIVATE KEY",
    "BEGIN SSH2 ENCRYPTED PRIVATE KEY",
    "PuTTY-User-Key-File-2",
    "pypi-AgEIcHlwaS5vcmc[A-Za-z0-9-_]{70,}",  # PyPI
    "pypi-AgENdGVzdC5weXBpLm9yZw[A-Za-z0-9-_]{70,}",
    r"SG\.[a-zA-Z0-9_-]{22}\.[a-zA-Z0-9_-]{43}",  # SendGrid
    r"sq0csp-[0-9A-Za-z\\\-_]{43}",  # Square
    "(?:r|s)k_live_[0-9a-zA-Z]{24}",  # Stripe
    r"\d{8,10}:[0-9A-Za-z_-]{35}",  # Telegram
    "AC[a-z0-9]{32}",  # Twilio
    "SK[a-z0-9]{32}",
)
"""What secrets of known services look like."""

CASELESS_PATTERNS = (
    r"""aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?[\'\"]([0-9a-zA-Z/+]{40})[\'\"]""",
    _assigned("cloudant|cl|clou", _CLOUDANT, "[0-9a-f]{64}"),
    _assigned("cloudant|cl|clou", _CLOUDANT, "[a-z]{24}"),
    r"(?:https?\:\/\/)[\w\-]+\:([0-9a-f]{64})\@[\w\-]+\.cloudant\.com",
    r"(?:https?\:\/\/)[\w\-]+\:([a-z]{24})\@[\w\-]+\.cloudant\.com",
    _assigned(_IBM_CLOUD, f"(?:_|-|)(?:api|)(?:_|-|){_KEY_WORDS}", r"[a-zA-Z0-9_\-]{44}(?![a-zA-Z0-9_\-])"),
    _assigned(
        "(?:ibm)?[-_]?cos[-_]?(?:hmac)?|",
        "(?:_|-|)(?:secret[-_]?(?:access)?[-_]?key)",
        "[a-f0-9]{48}(?![a-f0-9])",
    ),
    r"xox(?:a|b|p|o|s|r)-(?:\d+-)+[a-z0-9]+",  # Slack
    r"https://hooks\.slack\.com/services/T[a-zA-Z0-9_]+/B[a-zA-Z0-9_]+/[a-zA-Z0-9_]+",
    _assigned("softlayer|sl", f"(?:_|-|)(?:api|)(?:_|-|){_KEY_WORDS}", "[a-z0-9]{64}"),
    "(?:http|https)://api.softlayer.com/soap/(?:v3|v3.1)/([a-z0-9]{64})",
)
"""The same, in upper or lower case."""

WEB_TOKEN = r"eyJ[A-Za-z0-9-_=]+\.[A-Za-z0-9-_=]+\.?[A-Za-z0-9-_.+/=]*?"

_WORDS = (
    "api_?key|auth_?key|service_?key|account_?key|db_?key|database_?key|priv_?key|private_?key|client_?key|db_?pass"
    "|database_?pass|key_?pass|password|passwd|pwd|secret|contraseña|contrasena"
)
_WORD = rf"({_WORDS})\w*"
_CLOSING = r"""([]\'"]{0,2})?"""
_QUOTE = r"""[\'"`]"""
_VALUE = r"""((?=[^\v\'\"]*)(?=\w+)[^\v\'\"]*[^\v,\'\"`])"""

_COMPARED = rf"({_QUOTE}){_VALUE}(\1)\s*[!=]{{2,3}}\s*\w*{_WORD}", 2
_COLON = rf"{_WORD}{_CLOSING}:\s*({_QUOTE}?){_VALUE}(\3)", 4
_COLON_QUOTED = rf"{_WORD}{_CLOSING}:(\s*)({_QUOTE}){_VALUE}(\4)", 5
_EQUALS = rf"{_WORD}{_CLOSING}\s*(={{1,3}}|!==?)\s*({_QUOTE}?){_VALUE}(\4)", 5
_EQUALS_QUOTED = rf"{_WORD}{_CLOSING}\s*(={{1,3}}|!==?)\s*({_QUOTE}){_VALUE}(\4)", 5
_QUOTED_STATEMENT = rf"{_WORD}[^\s]{{0,50}}?\s*({_QUOTE}){_VALUE}(\2);", 3

KEYWORD_PATTERNS: dict[str, tuple[tuple[str, int], ...]] = {
    "config": (_COLON, _COMPARED, _EQUALS, _QUOTED_STATEMENT),
    "go": ((rf"{_WORD}{_CLOSING}\s*:=\s*({_QUOTE}?){_VALUE}(\3)", 4), _COMPARED, _EQUALS, _QUOTED_STATEMENT),
    "c": ((rf'{_WORD}((\[[0-9]*\]))?\s*[!=]{{1,2}}\s*(@)?("){_VALUE}(\5)', 6),),
    "cpp": ((rf'{_WORD}(.assign)?\((")' + _VALUE + r"(\3)", 4), _EQUALS_QUOTED),
    "other": (
        _COLON_QUOTED,
        _COMPARED,
        _EQUALS_QUOTED,
        _QUOTED_STATEMENT,
        (rf"{_WORD}{_CLOSING}\s*=>?\s*({_QUOTE}){_VALUE}(\3)", 4),
    ),
}
"""What is assigned to a name like `password`, and the number of the group that holds it; by kind of language."""

_CASED = (_COMPARED[0], KEYWORD_PATTERNS["cpp"][0][0])
"""The patterns among them that know lower case only."""

KINDS = {
    "c": "c",
    "cpp": "cpp",
    "go": "go",
    **dict.fromkeys(("yaml", "toml", "plaintext", "shellscript", "sh", "bash"), "config"),
    **dict.fromkeys(("dotenv", "ini", "properties", "dockerfile"), "config"),
}
"""Kinds of languages that need their own rules for words like `password`; in "config", secrets need no quotes."""

_ENTROPY_LIMITS = ((string.ascii_letters + string.digits + r"+/\-_=", 4.5), (string.hexdigits, 3.0))
"""Characters of random-looking strings in quotes, and the entropy in bits above which they count as random."""

_INDIRECT = re.compile(r"([^\v=!:]*)\s*(:=?|[!=]{1,3})\s*([\w.-]+[\[\(][^\v]*[\]\)])")
"""A call or an item that is assigned: `secret = load_secret()`."""

MAX_INDIRECT_CHARS = 1000
"""Longest line that is examined for an indirect value; the pattern backtracks."""


def line_tests() -> tuple[LineTest, ...]:
    """Tests for secrets that look like one wherever they stand."""
    exact = [re.compile(each).search for each in EXACT_PATTERNS]
    caseless = [re.compile(each, re.IGNORECASE).search for each in CASELESS_PATTERNS]
    random = [_randomness_test(characters, limit) for characters, limit in _ENTROPY_LIMITS]
    return (*exact, *caseless, *random, _web_token_test())


def is_assigned_secret(line: str, language_id: str) -> bool:
    """Whether the line assigns a literal to a name like `password`."""
    if _words().search(line) is None:  # every pattern contains one of them
        return False
    found = (
        match.group(group)
        for pattern, group in _keyword_patterns(KINDS.get(language_id, "other"))
        if (match := pattern.search(line))
    )
    return any(map(_is_meant, found)) and not _is_indirect(line)


@cache
def _words() -> re.Pattern[str]:
    return re.compile(_WORDS, re.IGNORECASE)


@cache
def _keyword_patterns(kind: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    return tuple(
        (re.compile(pattern, 0 if pattern in _CASED else re.IGNORECASE), group)
        for pattern, group in KEYWORD_PATTERNS[kind]
    )


def _is_meant(secret: str) -> bool:
    """False for a template like ${secret}, and for what has no letter."""
    is_template = secret[:1] + secret[-1:] in ("{}", "<>") or secret[:2] + secret[-1:] == "${}"
    return not is_template and not set(string.ascii_letters).isdisjoint(secret)


def _is_indirect(line: str) -> bool:
    return len(line) <= MAX_INDIRECT_CHARS and _INDIRECT.search(line) is not None


def _randomness_test(characters: str, limit: float) -> LineTest:
    quoted = re.compile(rf"([\'\"])([{re.escape(characters)}]+)(\1)")
    return lambda line: any(entropy(found[1], characters) > limit for found in quoted.findall(line))


def entropy(text: str, characters: str) -> float:
    """Shannon entropy in bits of those characters; lower for hexadecimal numbers of decimal digits only."""
    shares = [count / len(text) for each in characters if (count := text.count(each))]
    found = -sum(share * math.log2(share) for share in shares)
    if characters == string.hexdigits and len(text) > 1 and text.isdecimal():
        found -= 1.2 / math.log2(len(text))
    return found


def _web_token_test() -> LineTest:
    token = re.compile(WEB_TOKEN)

    def tokens(line: str) -> Iterator[str]:
        return (match.group() for match in token.finditer(line))

    return lambda line: any(map(_is_web_token, tokens(line)))


def _is_web_token(token: str) -> bool:
    """Whether a token's first two parts are JSON in base64."""
    try:
        for number, part in enumerate(token.split(".")):
            if len(part) % 4 == 1:
                return False
            decoded = base64.urlsafe_b64decode(part.encode("ascii") + b"=" * (-len(part) % 4))
            if number < 2:
                json.loads(decoded.decode())
    except ValueError:
        return False
    return True
