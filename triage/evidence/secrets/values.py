"""Which values can be secrets: not a placeholder, not prose, not a path; and which look random."""

from __future__ import annotations

from itertools import pairwise

from triage.base.lazy_re import lazy_re
from triage.evidence.secrets.vocabulary import load_vocabulary

SHORTEST_RANDOM = 12
SHORTEST_UNUSUAL = 8
LONG_WITHOUT_DIGITS = 20
_PLACEHOLDER = lazy_re(
    r"[\W_]*$|\*|<|\[redacted|\$\{?\w|%[({\w]+%?$|\{\{|\.\.\.|…|[^\n]{0,200}(?:…|\.\.\.)$|(?i:x{4,}$)|(?i:your[_-])"
)
_CODE = lazy_re(
    r"[A-Za-z_][\w.]{0,80}[(\[]|(?:os\.)?(?:environ|getenv|getpass)\b"
    r"|(?:self|cls|this|args|config|cfg|settings|options|kwargs|request|process|env|secrets?|var|data)\.\w"
)
# Absolute, or in small letters, or with the suffix of a file: base64 has slashes too.
_PATH = lazy_re(
    r"(?:\.{0,2}|~)/[\w./@=-]{0,400}$|[a-z0-9_.-]{1,64}(?:/[a-z0-9_.=-]{1,64}){1,16}$"
    r"|[\w./-]{1,200}\.(?:pem|json|ya?ml|toml|txt|key|crt|py)$"
)
_RANDOM = lazy_re(r"[\w+/=.:~%!$-]+$")
_IDENTIFIER = lazy_re(r"[A-Za-z_][A-Za-z0-9_.]*$")
_UUID = lazy_re(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")


def is_statement(value: str) -> bool:
    """Whether the value is a word such as `None`, `required` or a placeholder such as `***` or `${VAR}`."""
    return value.rstrip(".!:)]}").lower() in load_vocabulary()["statements"] or _PLACEHOLDER.match(value) is not None


def is_code(value: str) -> bool:
    """Whether an unquoted value is an expression: `os.environ['X']`, `get_secret(name)`."""
    return _CODE.match(value) is not None and not looks_random(value)


def is_path(value: str) -> bool:
    """Whether the value is the path of a file and not random text with slashes."""
    return _PATH.match(value) is not None and not any(looks_random(part) for part in value.split("/"))


def looks_random(value: str, shortest: int = SHORTEST_RANDOM) -> bool:
    """Whether the value looks like a generated secret: long, of letters and digits that change often.

    A hash looks the same: only the name next to the value tells them apart.
    """
    if len(value) < shortest or "://" in value or _RANDOM.match(value) is None:
        return False
    if _UUID.match(value) is not None:
        return True
    digits = sum(character.isdigit() for character in value)
    if digits < 2 or not any(map(str.isalpha, value)):
        return len(value) >= (shortest if digits else LONG_WITHOUT_DIGITS) and value.isalnum() and is_mixed(value)
    return _share_of_changes(value) >= 0.09


def is_unusual(value: str) -> bool:
    """Whether the value is not an identifier such as `module.sort_key`, or is a long one of both cases in one piece."""
    if len(value) < SHORTEST_UNUSUAL:
        return False
    is_long = len(value) >= LONG_WITHOUT_DIGITS and value.isalnum() and not (value.islower() or value.isupper())
    return is_long or _IDENTIFIER.match(value) is None or looks_random(value)


def is_mixed(value: str) -> bool:
    """Whether the value is random text of capitals, small letters and mostly digits: neither a hash nor CamelCase."""
    digits = sum(character.isdigit() for character in value)
    capitals = sum(character.isupper() for character in value)
    small = sum(character.islower() for character in value)
    return min(capitals, small) >= 3 and _share_of_changes(value) >= (0.4 if digits >= 2 else 0.5)


def _share_of_changes(value: str) -> float:
    """Return how often the class changes from one character to the next: of random base62, six times in ten."""
    classes = [0 if c.isdigit() else 1 if c.islower() else 2 if c.isupper() else 3 for c in value]
    return sum(first != second for first, second in pairwise(classes)) / (len(value) - 1)
