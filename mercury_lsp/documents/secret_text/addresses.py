"""Secrets in URLs and in headers of requests."""

import re

from mercury_lsp.documents.secret_text.values import is_dense, is_password, is_wordy, looks_random

MIN_TOKEN_CHARS = 16
"""Shortest user name of a URL that is taken for a token."""

_USER = re.compile(r"://(?P<user>[^\s/\"'`<>@:]{0,100})(?::(?P<password>[^\s/\"'`<>\[\]]{1,200}))?@[\w.\[\]${}-]")
_SOURCE = re.compile(
    r"(?<![\w/.@])[\w.-]{2,40}:(?P<password>[^\s:@/\"'`<>(){}]{3,100})@(?!sha\d)(?:\w{2,5}\(|[\w.-]{1,100}(?::\d|/\w))"
)
"""A user, a password and a host without a scheme, as in names of data sources of Go and Oracle."""

_HOST = re.compile(r"^\[?[\w-]+(?:\.[\w-]+)+\]?(?::\d+)?[ \t]+[\w.@+-]+:(?P<password>\S{4,})\s*\Z")
"""A line with a host, a user and a password, as Postfix has them."""

_PATH = re.compile(r"://[^\s\"'`<>]{1,200}/(?P<value>(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{20,})(?![\w/.-])")
_RUN = re.compile(r"[A-Za-z0-9+/=_-]{16,}")


def has_url_secret(line: str) -> bool:
    """Whether a URL has a password, or a token as its user or its last segment."""
    for found in _USER.finditer(line):
        password, user = found["password"], found["user"]
        if password is not None and is_password(password):
            return True
        if len(user) >= MIN_TOKEN_CHARS and "%40" not in user and looks_random(user):
            return True
    return any(is_dense(found["value"]) for found in _PATH.finditer(line))


def has_source_secret(line: str) -> bool:
    """Whether the name of a data source has a password."""
    return any(is_password(found["password"]) for each in (_SOURCE, _HOST) for found in each.finditer(line))


def has_header_secret(line: str) -> bool:
    """Whether a header for authorisation has its value; those of other names are found as values of keywords."""
    return "uthorization" in line and any(looks_random(run) and not is_wordy(run) for run in _RUN.findall(line))
