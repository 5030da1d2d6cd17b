"""Secrets in URLs and in headers of requests."""

import re

from mercury_lsp.documents.secret_text.values import is_dense, is_password, is_wordy, looks_random

MIN_TOKEN_CHARS = 16
"""Shortest user name of a URL that is taken for a token."""

_USER = re.compile(r"://(?P<user>[^\s/\"'`<>@:]{0,100})(?::(?P<password>[^\s/\"'`<>\[\]]{1,200}))?@[\w.\[\]${}-]")
_SOURCE = re.compile(
    r"(?<![\w/.@])[\w.-]{2,40}:(?P<password>[^\s:@/\"'`<>(){}]{3,100})@(?:\w{2,5}\(|[\w.-]{1,100}(?::\d|/\w))"
)
"""A user, a password and a host without a scheme, as in names of data sources of Go and Oracle."""

_HOST = re.compile(r"^\[?[\w-]+(?:\.[\w-]+)+\]?(?::\d+)?[ \t]+[\w.@+-]+:(?P<password>\S{4,})\s*\Z")
"""A line with a host, a user and a password, as Postfix has them."""

_QUERY = re.compile(
    r"[?&;][\w.-]{0,30}?(?:token|key|secret|password|passwd|pwd|sig|signature|auth|code|credential|session|jwt|hmac)"
    r"=(?P<value>[\w%.~+/=-]{8,})",
    re.IGNORECASE,
)
_PATH = re.compile(r"://[^\s\"'`<>]{1,200}/(?P<value>(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{20,})(?![\w/.-])")
_SCHEME = re.compile(
    r"\b(?:bearer|basic|digest|token|apikey|api-key|negotiate|hmac)[ :=\\]{1,4}\s?[\"']?"
    r"(?P<value>[A-Za-z0-9._~+/=-]{8,})(?![\w(\[.~+/=-])",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(?:x-(?:[a-z]{1,20}-){0,3}(?:key|token|auth|secret|signature|password)|authorization|cookie|subscription-key"
    r"|(?:private|job|deploy)-token)[\"'`]?\s{0,3}[:=,]\s{0,3}[\"'`]?(?:[a-z]{1,12} )?(?P<value>[^\s\"'`,;]{8,})",
    re.IGNORECASE,
)
_ENCODED = re.compile(r"%[\dA-Fa-f]{2}")
_RUN = re.compile(r"[A-Za-z0-9+/=_-]{16,}")


def has_url_secret(line: str) -> bool:
    """Whether a URL has a password, or a token as its user or in its query."""
    for found in _USER.finditer(line):
        password, user = found["password"], found["user"]
        if password is not None and is_password(password):
            return True
        if len(user) >= MIN_TOKEN_CHARS and "%40" not in user and looks_random(user):
            return True
    if any(is_dense(found["value"]) for found in _PATH.finditer(line)):
        return True
    return any(looks_random(_ENCODED.sub("", found["value"])) for found in _QUERY.finditer(line))


def has_source_secret(line: str) -> bool:
    """Whether the name of a data source has a password."""
    return any(is_password(found["password"]) for each in (_SOURCE, _HOST) for found in each.finditer(line))


def has_header_secret(line: str) -> bool:
    """Whether a header for authorisation has its value."""
    values = [_ENCODED.sub("", found["value"]) for pattern in (_SCHEME, _HEADER) for found in pattern.finditer(line)]
    if any(looks_random(value) or is_dense(value) or _is_padded(value) for value in values):
        return True
    return "uthorization" in line and any(looks_random(run) and not is_wordy(run) for run in _RUN.findall(line))


def _is_padded(value: str) -> bool:
    """Whether a value ends as base64 does."""
    return value.endswith("=") and len(value) >= 12
