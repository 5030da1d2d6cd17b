"""UTF-16 code units, in which the protocol counts columns; characters beyond U+FFFF take two."""


def utf16_length(text: str) -> int:
    """Number of UTF-16 units; a lone surrogate is one."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def chars_within(text: str, units: int) -> int:
    """Number of leading characters that lie wholly within this many UTF-16 units."""
    if text.isascii():
        return min(units, len(text))
    for index, character in enumerate(text):
        units -= 2 if character > "\uffff" else 1
        if units < 0:
            return index
    return len(text)
