"""Passwords in commands, in calls that log in, in lines of .netrc, and in statements of SQL."""

import re

from mercury_lsp.documents.secret_text.data import listed
from mercury_lsp.documents.secret_text.values import is_password

COMMANDS = listed("commands")
"""Parts of commands and statements in lower case: a line without any of them is not examined here."""

_PROGRAM = re.compile(
    r"(?<!\w)(?:curl|wget|http|xh|mysql(?:dump|admin|import)?|mariadb|psql|mongo(?:sh|dump)?|redis-(?:cli|server)|sshpass"
    r"|smbclient|ldap\w{1,20}|docker|podman|helm|oc|az|htpasswd|openssl|sqlplus|sqlcmd|mssql-cli|l?ftp|rsync|svn|7z"
    r"|(?:un)?zip|gpg|keytool|jarsigner|net use|vault|cf|kinit|expect|chpasswd|sudo|iscsiadm|ipmitool|snmp\w{1,20}"
    r"|(?:/usr)?/(?:local/)?s?bin/[\w.-]+|rabbitmqctl|influx|cqlsh|clickhouse-client|mosquitto_\w{1,10}|twine|npm|gh|glab)\b"
)
_PAIR = re.compile(
    r"(?<!\S)(?:-[uaU]|--user|--proxy-user|--login)(?:[= ]\s{0,3}|(?=\S))[\"']?(?P<user>[\w.@{}\\-]{0,60})"
    r"[\"']?[:%,][\"']?(?P<value>[^\s\"']{3,})"
)
_LONG = re.compile(
    r"(?<!\S)--?(?:[a-z]{1,20}-){0,3}(?:password|passwd|pass|pwd|token|secret|key|api-key|auth|passphrase|passin|passout"
    r"|storepass|keypass|requirepass)[= ]\s{0,3}[\"']?(?P<value>[^\s\"'-][^\s\"']{2,})",
    re.IGNORECASE,
)
_SHORT = re.compile(r"(?<![^\s\"'])-(?:p|a|w|P|passin)\s?[\"']?(?P<value>(?:pass:)?[^\s\"'=/.-][^\s\"']{3,})")
_SSHPASS = re.compile(
    r"\b(?:(?:mysql|mariadb)\w{0,8}\b[^|;\n]{0,80}?[\s\"']-p(?=[^\s\"'])|(?:sshpass|login|twine|mongo\w{0,8}|cqlsh)\b[^|;\n]{0,80}?\s-p|(?:sqlcmd|(?:un)?zip|ipmitool)\b[^|;\n]{0,80}?\s-P)"
    r"\s?[\"']?(?P<value>[^\s\"']{4,})"
)
"""Options with a user and a password, with a long name, and with a letter that other programs use for other things."""

_WORD = re.compile(
    r"\b(?:rabbitmqctl\s+\w+\s+\S+|mysqladmin\b[^|;]{0,60}\spassword|vault\s+login|requirepass|masterauth"
    r"|htpasswd\s+-\w{0,6}b\w{0,6}\s+\S+\s+\S+|net\s+use\b[^|;]{0,60}/user:\S+|login\s+\\?[\"'][^\"']{1,40}[\"']|(?i:identified\s+by)|alias\s+set(?:\s+\S+){3})"
    r"\s+\\?[\"']?(?P<value>[^\s\"'\\]{4,})"
)
_LITERAL_KEY = re.compile(r"--from-literal[= ][\"']?[\w.-]+=(?P<value>[^\s\"']{4,})")
_ORACLE = re.compile(r"\b(?:sqlplus\s+|oracle:\w+:)\w+/(?P<value>[^\s@\"']{3,})@")
_PIPED = re.compile(
    r"\becho\s+(?:-\w+\s+){0,3}[\"']?(?P<value>[^\s\"'|$][^\s\"'|]{3,})[\"']?\s{0,3}\|\s{0,3}(?:\S{0,30}/)?"
    r"(?:sudo\s+-S|docker|passwd|chpasswd|kinit|gpg|openssl|su|cryptsetup)\b"
)
_PIPED_PAIR = re.compile(
    r"\bchpasswd\s{0,3}<<<\s{0,3}[\"']?[\w.-]+:(?P<value>[^\s\"']{4,})"
    r"|[\"'\s][\w.-]+:(?P<piped>[^\s\"']{4,})[\"']?\s{0,3}\|\s{0,3}(?:sudo\s)?chpasswd"
)
_STATS = re.compile(r"(?:\bauth\s+|\blogin=|^user=)[\w.-]+:(?P<value>\S{4,})\s*\Z")
_DEVICE = re.compile(
    r"(?:\b(?:secret|password)\s+[057]|\bauth-pass\s+\S+|\bisakmp\s+key(?:\s+[06])?|-server\s+(?:key(?:\s+[07])?|community))"
    r"\s+(?P<value>\S{4,})"
)
"""Commands of routers and switches."""

_SECURED = re.compile(r"ConvertTo-SecureString\s+(?:-String\s+)?[\"'](?P<value>[^\"']{4,})", re.IGNORECASE)
_WIFI = re.compile(r"\bWIFI:[^\n]{0,200}?\bP:(?P<value>[^;\n]{4,});")
_NETRC = re.compile(
    r"\b(?:login|user(?:name)?|account)\s+(?!and\s|or\s)\S{1,100}\s+(?:insecure-)?password\s+(?P<value>\S{3,})",
    re.IGNORECASE,
)
_SQL = re.compile(
    r"\b(?:identified\s+(?:with\s+\S{1,40}\s+)?by|(?:with\s+)?(?:encrypted\s+)?password|set\s+password\b[^=]{0,60})"
    r"(?:\s{0,3}[=(]\s{0,3}|\s{1,3})N?\\?['\"](?P<value>[^'\"\\]{3,})",
    re.IGNORECASE,
)
_STRING = r"[bru]?[\"'`](?:\\.|[^\"'`\\]){0,120}[\"'`]"
_LOGIN = re.compile(
    r"(?:log_?[io]n|sign_?in|basic_?auth|authenticate|(?<![a-z])auth|(?:create|add)_?user|change\w{0,4}password|credentials?|(?:wifi|wlan)\.(?:begin|connect)"
    r"|password_?authentication|(?:plain|set|digest|proxy)_?auth)(?:::?\w{1,20})?\s{0,3}(?:\(|[=:]\s{0,3}[\w.]{0,20}[(\[])"
    rf"\s{{0,3}}[^()]{{0,80}}?{_STRING}\s{{0,3}},\s{{0,3}}(?:\(?[\w-]{{1,24}}\s?\(?\s?)?[bru]?"
    r"[\"'`](?P<value>[^\"'`]{4,60})[\"'`]",
    re.IGNORECASE,
)
"""A call, a tuple or a list with a user and a password, neither of which is named."""

_CONNECTED = re.compile(
    rf"(?:connect(?:ion)?|pdo|mysqli|opendb|ftp\.(?:open|new))\(\s{{0,3}}(?:{_STRING}|[$\w.]{{1,40}})\s{{0,3}},(?:\s{{0,3}}\d{{1,5}},)?\s{{0,3}}{_STRING}\s{{0,3}},\s{{0,3}}[bru]?"
    r"[\"'`](?P<value>[^\"'`]{4,60})[\"'`]",
    re.IGNORECASE,
)
"""A call that connects to an address as a user with a password."""

_PLAIN = re.compile(r"\{(?:PLAIN|CLEAR)\}(?P<value>[^\s:]{4,})")
_SIGNED = re.compile(
    r"(?<![a-z])(?:jwt\.)?(?:sign|hmac\w*)\([^()\"'`]{1,40},\s{0,3}[bru]?[\"'`](?P<value>[^\"'`\s]{8,})[\"'`]"
    r"|bearer_?auth\(\s{0,3}[\"'](?P<token>[^\"'\s]{8,})"
    r"|(?:load|keyspec|getkey|protection)\([^()\"]{0,40}\"(?P<chars>[^\"\s]{4,})\"\.tochararray",
    re.I,
)
"""A call that signs something with a key, or identifies itself with one."""

_INSERTED = re.compile(
    r"\binsert\s+into\b[^;(]{0,100}\((?P<columns>[^;()]{0,200}\bpass[^;()]{0,100})\)\s*values\s{0,3}\((?P<values>[^;]*)",
    re.IGNORECASE,
)
_LITERAL = re.compile(r"'([^']{4,60})'")

_CLEAR = (
    *(_WORD, _ORACLE, _PIPED, _NETRC, _SQL, _LOGIN, _CONNECTED, _SIGNED, _PIPED_PAIR, _WIFI, _STATS),
    *(_DEVICE, _PLAIN, _SECURED, _LITERAL_KEY),
)


def has_command_secret(line: str) -> bool:
    """Whether a command, a call that logs in, a line of .netrc or a statement of SQL has a password."""
    if any(is_password(found[found.lastgroup or 0]) for pattern in _CLEAR for found in pattern.finditer(line)):
        return True
    if any(map(_inserts_password, _INSERTED.finditer(line))):
        return True
    return _PROGRAM.search(line) is not None and _has_option(line)


def _has_option(line: str) -> bool:
    if any(is_password(found["value"]) for pattern in (_PAIR, _LONG) for found in pattern.finditer(line)):
        return True
    if any(is_password(found["value"]) for found in _SSHPASS.finditer(line)):
        return True
    return any(is_password(value) and _is_odd(value) for value in _SHORT.findall(line))


def _inserts_password(found: re.Match[str]) -> bool:
    """Whether the value of a column of passwords, in the first row, or one like a password may be one."""
    column = next(at for at, name in enumerate(found["columns"].split(",")) if "pass" in name.lower())
    value = [*found["values"].split(","), ""][: column + 1][-1].strip(" '`\")")
    return is_password(value) or any(map(_is_odd, _LITERAL.findall(found["values"])))


def _is_odd(value: str) -> bool:
    """Whether a value has letters and digits, as a password and no port, file or word."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and ":" not in value.removeprefix("pass:")
