"""Values after words like `password` and `api_key`: in assignments, arguments, defaults, attributes and comments."""

import re
from collections.abc import Iterator

from mercury_lsp.documents.secret_text.data import listed
from mercury_lsp.documents.secret_text.values import has_sign, is_dense, is_password, looks_random

CODE_LANGUAGES = frozenset(listed("code languages"))
"""Languages in which a word without quotes is a name. In all others, also unknown ones, it is a value."""

MARKUP_LANGUAGES = frozenset(("html", "htmldjango", "tex", "latex", "plaintex"))
"""Those of them whose text is prose."""

WORDS = listed("words")
"""Parts of the words below in lower case: a line without any of them is not examined here."""

_WORD = re.compile(f"(?={'|'.join(WORDS)})")

_OTHER_PASS = "".join(f"(?<!{each})" for each in listed("other pass"))
"""Words that end in `pass` and are no password: compass, multipass, allPass, renderPass."""

_GRANTS = listed("grants")
_GRANTED = "(?:" + "|".join(rf"(?<={each})|(?<={each}[_-])" for each in _GRANTS) + ")"
_STRONG = (
    rf"(?:(?<!etc/)pass(?:words?|wd|wort|[ _-]?phrase|code)|pwd|secret|(?=pass){_OTHER_PASS}pass(?![a-z])|pw(?![a-z\d])"
    rf"|(?=key|token){_GRANTED}(?:key|token)(?![a-z])"
    r"|(?<![a-z])(?:psk|pin_?code|assword|mnemonic|seed[ _-]?phrase)(?![a-z])|(?<=r[ow])community|(?<=option )key"
    r"|community(?=_string)|authtok(?!\w)|(?<=shared[_-])key|(?<=recovery[ _-])phrase"
    r"|(?<=signing[_-])key|(?<=encryption[_-])key|(?<![a-z])pepper(?![a-z])"
    r"|kennwort|contrase(?:n|\xf1)a|senha|wachtwoord|has\u0142o|l\xf6senord|\u5bc6\u7801"
    rf"|(?-i:(?<=[a-z0-9])P(?:wd|w|sk)(?![a-z]))|(?=pass){_OTHER_PASS}(?-i:(?<=[a-z0-9])Pass(?![a-z])))"
)
"""Words after which almost any value is a secret."""

_OWNERS = (
    *("api", "access", "account", "private", "signing", "encryption", "master", "app", "auth", "client", "consumer"),
    *("deploy", "license", "service", "shared", "storage", "subscription", "function", "host", "project", "admin"),
)
_OWNED = r"(?:(?<![a-z])|" + "|".join(rf"(?<={owner})|(?<={owner}[_-])" for owner in _OWNERS) + ")"
_WEAK = (
    rf"(?:token|bearer|credential|cred(?![a-z])|auth(?:orization)?(?![a-z])"
    rf"|session(?:[_-]?id)?|cookie|signature|salt|{_OWNED}key|(?<![a-z])(?:jwt|pat(?![a-z])|sig(?![a-z])|otp|seed|nonce|dsn|webhook))"
)
"""Words after which only a value that looks random is a secret."""

_NAME = rf"(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK}))(?P<rest>[\w.-]{{0,40}})"

_ABOUT = re.compile(
    r"field|input|label|hint|placeholder|err|exception|type|polic|len|min_|max_|hash|path|file|ur[il]|link|reset|prompt"
    r"|message|msg|title|regex|pattern|valid|column|arn|ref|version|manager|service|class|form|view|change|require|enable"
    r"|strength|match|name|lint|id(?![a-z])|provider|method|mode|algorithm|scheme|encod|decod|salt|prefix|suffix|option"
    r"|config|setting|handler|callback|kind|source|check|expir|history|count|size|grant|basic|post|jwt|encrypt|backend"
    r"|_has\Z|dialog|button|icon|element|selector|xpath|desc|help|info|test|env|_?re\Z",
    re.IGNORECASE,
)
"""The rest of a name that stands for something about a secret: after it only a value that looks random is one."""

_TYPE = (
    r"(?:[ \t]?\??:[ \t]?[^=;,\"'`(){}\n]{1,40}?|\[\w{0,10}\]|[ \t](?:as[ \t])?\w{1,20}(?=[ \t]?=)"
    r"|[ \t]?/\*[^*\n]{0,40}\*/|[ \t]?\{[^{}\n]{0,30}\})?"
)
_WRAPPED = (
    r"(?:[\"']\{\{[ \t]?)?(?:(?:new[ \t])?(?:\[\])?[\w.:!-]{0,40}[(\[{][ \t]{0,4}){0,3}(?:[bruflc@$]|br|u8|r\#){0,2}"
)
_QUOTED = re.compile(
    _NAME + r"(?P<close>\\?[\"'`\])>}]{0,3})(?P<gap>(?:"
    rf"(?P<assigned>{_TYPE}[ \t]{{0,30}}(?:=>|:=|\?=|\|\|=|\?\?=|\+=|<-|::|=(?!=)|:))"
    r"|(?P<compared>[\s)\]]{0,4}(?:[!=]==?|~=|=~|<>|\.?equals\w{0,10}\(|\beq\b|\bne\b|\bis\b(?:[ \t]not\b)?|,|\bin\b))"
    r"|(?P<fallback>[^\"'`;\n]{0,12}?(?:\|\||\?\?|\?:|:-|\bor\b|(?<=\))[ \t]\{"
    r"|(?:_or|OrDefault|OrElse|default)\w{0,10}\())"
    r"|(?P<typed>[\"'`\])]{0,4}\.(?:send_?keys|type|fill|press_?sequentially|set_?(?:text|value)|value|input)\()"
    r"|(?P<called>(?=[({]))|(?P<blank>(?=[ \t])))"
    rf"[ \t]{{0,8}}{_WRAPPED})\\?(?P<quote>\"\"\"|'''|``|[\"'`])",
    re.IGNORECASE,
)
"""A name, what gives it a value, and the quote before that value."""

_ASKS = re.compile(
    r"(?:get|fetch|find|read|load|ask|prompt|hash|has|is|require|valid\w*|check|verify|should|forgot|reset|delete|remove"
    r"|need|crypt|code|compare|no|generate|gen|match\w*|invalid|missing|wrong)_?\Z",
    re.IGNORECASE,
)
"""What a function does that gets no new secret, before the secret's name."""

_SETS = re.compile(r"\.(?:set|send_?keys|fill|append|value|text)\w*\Z", re.IGNORECASE)
"""A method that gives a field its text."""

_BARE = re.compile(
    _NAME + r"(?P<close>[\"'`\])}*]{0,3})(?:(?P<sep>[ \t]{0,30}"
    r"(?:=>|:=|\?=|<-|==?|:-?|>|(?:[\w-]{1,20}[ \t]){0,6}\b(?:is|was)\b|\||[\u2013\u2014]|-(?=[ \t]))[ \t]{0,30}"
    r"(?:[|>][+-]?\d?(?=[ \t])|[*_]{1,3}[ \t]{0,4})?)"
    r"|(?P<gap>[ \t]{1,30})(?:\d[ \t]|--\w{1,20}[ \t])?)(?P<text>[^\r\n]+)",
    re.IGNORECASE,
)
"""A name and the rest of its line, which begins with a value without quotes."""

_TOKEN = re.compile(r"[^\s\"'`(){}\[\]<>|]+")
_NEXT_SETTING = re.compile(r"(?<=,)[ \t]+[\w\"'.-]{1,40}[ \t]*[:=]|[ \t]*[}\])]+,?\Z")
_TRAILING = re.compile(r"\s+(?:#|//|;|<!--|--|/\*).*|[\"'`,;]+\s*\Z|\\[rn].*")
_ADJECTIVE = re.compile(r"(?:ed|ing|able|ly|id|ct|ong|ty|not|in)\b(?!-)|\w\s+\w", re.IGNORECASE)
"""What a sentence says about a password."""

_COMMAND = re.compile(
    r"^\W*(?:(?:set(?:env|x)?|export|env|arg|let|var|putenv|d-i \S+|header\w*|proxy_set_header|-\w+)"
    r"\s+(?:-\w+\s+){0,3})?[\w.-]*\Z",
    re.IGNORECASE,
)
"""What stands before a name that a blank alone parts from its value."""

_PIN = re.compile(
    r"\bPIN\b[^:=\n]{0,30}[:=]\s?\d{4,8}\b|(?i:salt|pepper|secret|key)\s*=\s*b[\"'](?:[^\"']*\\x[\da-f]{2}){3}"
)
"""A number that unlocks something, and bytes in an escaped form."""

_ALONE = re.compile(r"(?:export )?[\w.-]+=[^\s\"'`(){}\[\];,]+\s*\Z")
_DOCUMENTED = re.compile(r"\s*[\w -]{0,30}: +(?=\S*\d)[a-z!@#%^&+-][^\s\"'`(){}\[\];,]{5,}\s*\Z")
"""An assignment as in files of settings, which is no code in any style, and one as in documentation."""

_SETTING = re.compile(
    _STRONG + r"(?P<rest>[\w.-]{0,40})[^\n]{0,120}?(?<![\w-])"
    r"(?:(?:default|value|val|content|equals|example)\w{0,8}\\?[\"'`]?\s{0,8}(?:=>|[:=])|send(?:line)?[ (])"
    r"\s{0,8}(?:\\?(?P<quote>[\"'`])|(?P<value>[^\s\"'`{}\[\],]{4,}))",
    re.IGNORECASE,
)
"""A secret's name, and further on its value under a name of its own, as in attributes and lists of settings."""

_SUBSTITUTED = re.compile(r"\{[\w.]{0,40}?" + _STRONG + r"[\w.]{0,40}:[-=]?(?P<value>[^\s{}\"'`]{4,})\}", re.IGNORECASE)
"""A reference to a setting with a default, as `${db.password:value}`."""

_ELEMENT = re.compile(
    _STRONG + r"[\w.-]{0,40}[\"']?[^<>\n]{0,40}(?:(?:</\w{1,20})?>\s*<\w{1,20})?>(?P<value>[^<>]{4,80})</",
    re.IGNORECASE,
)
"""An element of markup whose name or attribute is a secret's."""

NAMED_AT_END = (
    _NAME
    + r"\\?[\"'`\])>]{0,3}(?:[^\"'`;#\n]{0,60}?(?:=>?|:=?|->|\(|\||>-?|,|\?\?|\|\||\+)-?)[ \t]{0,8}(?:[(\[]|[\"']{3})?"
)
"""The end of a line that names a secret, before a value on the next one."""

NAMED_ALONE = re.compile(
    _STRONG + r"(?P<rest>[\w.-]{0,20})(?:\\?[\"'`]?:?\\?[\"'`]?[,;)]{0,2}[ \t]{0,4}\{?|(?:</\w{1,20})?>)[ \t]*\Z",
    re.IGNORECASE,
)
"""The end of a line that names a secret and gives no value."""

_NAMES = re.compile(r"(?:[:=][ \t]*|[\"'`<>]|--)[\w.-]*\Z")
_MAPS = re.compile(r"\s*(?:-[ \t]+)?[\w.-]+:\Z")

_LOOKED_UP = re.compile(
    r"(?:get\w*|env\w*|read\w*|load\w*|open|find\w*|fetch\w*|lookup\w*|ask\w*|prompt\w*|input|query\w*|select\w*|require\w*"
    r"|import|translate|gettext|label|print\w*|log\w*|warn\w*|\w*error|\w*exception|raise|throw|format|assert\w*|config"
    r"|settings?|params?|args?|option|fields|column|header|request|form|data|props|attr\w*|match\w*|test|search|split"
    r"|replace|join|has\w*|contains|pop|startswith|endswith|includes|encode|decode|strip|len|strlen|var|\bt|_)"
    r"\s{0,4}[\[(]\s{0,4}[bfru]?\Z",
    re.IGNORECASE,
)
"""The end of a gap before a string that names a value or speaks to the user."""

_SUBSCRIPT = re.compile(r"\w\[[ \t]{0,4}\Z")
_WRAPPERS = re.compile(
    r"(?:str\w*|\w*string|some|just|\w*bytes?|secret\w*|trim\w*|from|of|buffer|text\w*|password|c_str|quote|literal|value"
    r"|box|arc|concat\w*|mkstring|securestring|join|sensitive\w*|raw|decode|env"
    r"|str\w?cpy|field)!?[ \t]?[(\[{][ \t]{0,4}(?:[bruflc@$]|br|u8|r\#){0,2}\Z",
    re.IGNORECASE,
)
"""Functions whose argument is a value as it is."""

_COMPARES = re.compile(
    r"(?:cmp|cpy|define|equals?|eq|compare\w*|verify|match\w*)\(\s{0,4}[\w.>-]*\Z|\{\s{0,4}:?[\w.]*\Z", re.IGNORECASE
)
"""What stands before a name whose value is the next argument, or the next element of a pair."""

_LONG_STRING = re.compile(r"\[\[(\w[^\[\]\n]*)\]\]")
"""A string of Lua."""

_COMMENT = re.compile(r"(?://|#|--|/\*|<!--|;|^\s*\*|\"\"\"|''')(?P<text>.*)")

MIN_COMPARED_CHARS = 6
"""Shortest word without digits that is a password if a password is compared with it."""

MIN_FREE_TEXT_CHARS = 8
"""Shortest string that may hold the name of a secret and its value."""


def has_secret_value(line: str, language_id: str) -> bool:
    """Whether a line names a secret and gives its value."""
    if "'static" in line:
        line = line.replace("'static", "")
    if "[[" in line:
        line = _LONG_STRING.sub(r'["\1"]', line)
    is_code = language_id in CODE_LANGUAGES
    if _PIN.search(line) or _has_quoted(line, is_code) or _has_bare(line, language_id):
        return True
    for found in _named(_SETTING, line):
        if found["value"] and is_code:
            continue
        value = found["value"] or _until(line, found.end(), found["quote"])
        if not _ABOUT.search(found["rest"]) and is_password(value):
            return True
    if "</" in line and any(is_password(found["value"]) for found in _named(_ELEMENT, line)):
        return True
    return any(is_password(found["value"]) for found in _SUBSTITUTED.finditer(line))


def has_named_alone(line: str) -> bool:
    """Whether a line ends in the name of a secret and gives no value."""
    line = line.rstrip()
    is_map, ends = _MAPS.match(line), _named(NAMED_ALONE, line)
    return any((is_map or _NAMES.search(line[: found.start()])) and not _ABOUT.search(found["rest"]) for found in ends)


def _named(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern that begins with the name of a secret; it is tried at parts of such names only."""
    low = text.lower()
    for word in _WORD.finditer(low if len(low) == len(text) else text):
        if found := pattern.match(text, word.start()):
            yield found


def _has_quoted(line: str, is_code: bool) -> bool:
    for found in _named(_QUOTED, line):
        if _LOOKED_UP.search(found["gap"]) or _SUBSCRIPT.search(found["gap"]):
            continue
        value = _until(line, found.end(), found["quote"])
        after = line[found.end() + len(value) + 1 :]
        if not after and line.count(found["quote"][0], 0, found.end() - 1) % 2:
            continue  # the quote ends the text with the name
        if re.match(r"\s{0,4}(?::(?!:)|=>)", after) and found["gap"].rstrip("bruf").endswith(("{", "(", "[", ",")):
            continue  # it is a key itself
        if _is_secret_value(line, found, value, is_code):
            return True
    return False


def _is_secret_value(line: str, found: re.Match[str], value: str, is_code: bool) -> bool:
    """Whether a quoted value is a secret, by the name before it and by what gives it to that name."""
    if looks_random(value) or is_dense(value):
        return True
    name = _strong_name(found, is_code)
    if not is_code and found["weak"] and found["weak"].lower() == "auth" and re.match(r"[\w.-]+:\w", value):
        return is_password(value.partition(":")[2])
    if name is None or not is_password(value):
        return False
    rest, before = found["rest"], line[: found.start()]
    is_verb = name == "pass" and not re.search(r"\w\Z", before)
    if _ABOUT.search(rest) or value.lower() == name + rest.lower():
        return False
    if name == "pass" and rest.strip("_0123456789"):
        return False
    if found["compared"] is not None:
        if found["compared"].strip() != ",":
            return has_sign(value) or (len(value) >= MIN_COMPARED_CHARS and "=" in found["compared"])
        if found["close"] not in ("'", '"', "`"):
            return _COMPARES.search(before) is not None
        return has_sign(value) or _is_passed(before, line[found.end() + len(value) + 1 :])
    if "." in rest and found["called"] is not None:
        return _SETS.search(rest) is not None or (".equal" in rest and has_sign(value))
    if found["typed"] is not None:
        return True
    if found["called"] is not None:
        return not is_verb and not _ASKS.search(before)
    if found["blank"] is not None:
        return not is_verb and not found["gap"].strip(" \t(\"'")
    if re.search(r"\w!?[ \t]?\([^()]*\Z", found["gap"]) and not _WRAPPERS.search(found["gap"]) and not has_sign(value):
        return False
    return not (is_verb and found["fallback"] is not None) and ("." not in rest or "(" not in found["gap"])


def _strong_name(found: re.Match[str], is_code: bool) -> str | None:
    """The name, in lower case, if almost any value of it is a secret; `token` alone is one in settings only."""
    name = found["strong"] or ("" if is_code or found["rest"] else found["weak"])
    return name.lower() if found["strong"] or name.lower() == "token" else None


def _is_passed(before: str, after: str) -> bool:
    """Whether a quoted name and the value after it are arguments of a call, an option and its value, or a pair."""
    if re.search(r"[\"'`]--?[\w-]*\Z", before):
        return True
    is_pair = re.search(r"[\[({]\s{0,4}[\"'`][\w.#=@\[-]*\Z", before) and after.lstrip()[:1] in ("]", ")", "}")
    return (
        bool(is_pair) or re.search(r"[\w!]\s?\([^()\[\]{}]*[\"'`][\w.#=@\[-]*\Z|\[\"set\", *\"\Z", before) is not None
    )


def _until(line: str, start: int, quote: str) -> str:
    """The text up to the quote that closes it, or to the end of the line."""
    if line[start - 2 : start - 1] == "\\":  # the string is inside of another one
        end = line.find("\\", start)
        return line[start:end] if end >= 0 else line[start:]
    end = start
    while end < len(line) and line[end] not in (quote[0], "\n", "\r"):
        end += 2 if line[end] == "\\" else 1
    return line[start:end]


def _has_bare(line: str, language_id: str) -> bool:
    """Values without quotes: anywhere in texts that are no code, else in comments and in strings."""
    if language_id not in CODE_LANGUAGES:
        return any(_is_bare_secret(found, is_code=False) for found in _named(_BARE, line))
    for found in _named(_BARE, line) if _ALONE.match(line) or _DOCUMENTED.match(line) else ():
        if found["strong"] and _is_bare_secret(found, is_code=False):
            return True
    texts = (line,) if language_id in MARKUP_LANGUAGES else _free_texts(line)
    return any(_is_bare_secret(found, is_code=True) for text in texts for found in _named(_BARE, text))


def _is_bare_secret(found: re.Match[str], is_code: bool) -> bool:
    """Whether a name's line goes on with a value; the prose in code and sentences have words that are none."""
    prose = re.search(r"\||is|was", found["sep"] or "")
    is_free = is_code or (prose is not None and (prose[0] == "|" or _ADJECTIVE.search(found["text"]) is not None))
    text, sep = _TRAILING.sub("", found["text"]).strip(), found["sep"]
    text = re.sub(r"^\{([^{}:\s]+)\}$", r"\1", text)
    token = _TOKEN.match(text)
    if token is None or text[token.end() :][:1] in ("(", "[") or text[-1] == ":":
        return False
    value = token[0].rstrip(".,:;!?*/")
    if value[:1] == "&" and token.end() == len(text):
        return False  # an anchor
    if looks_random(value):
        return True
    if _strong_name(found, is_code or sep is None) is None or _ABOUT.search(found["rest"]):
        return False
    if sep is None:
        if is_free or token.end() != len(text) or not is_password(value):
            return False
        return has_sign(value) or len(found["gap"]) > 1 or _COMMAND.match(found.string[: found.start()]) is not None
    is_whole = token.end() == len(text) or _NEXT_SETTING.match(text, token.end()) is not None
    if is_password(value) and (has_sign(value) or sep == "=" or (is_whole and not is_free)):
        return True
    return not is_free and is_password(text)


def _free_texts(line: str) -> Iterator[str]:
    """The parts of a line of code that may be prose or settings: its comment and its strings."""
    if found := _COMMENT.search(line):
        yield found["text"]
    for quote in "\"'`":
        yield from (part for part in line.split(quote)[1::2] if len(part) > MIN_FREE_TEXT_CHARS)
