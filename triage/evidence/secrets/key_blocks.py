"""Keys in blocks: PEM and PGP on several lines or one, cut or behind prefixes, PuTTY, JSON web keys, hashes."""

from __future__ import annotations

from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.evidence.secrets.interface import pattern_rule, spans_rule

KIND = "private-key"
_BEGIN = lazy_re(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: ?\d{1,4}")
_END = lazy_re(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# On one line: base64 with spaces or escaped line breaks between its parts.
_INLINE = lazy_re(
    r"(?:\\{1,4}[nr]|[ \t])*(?:[A-Za-z0-9+/=]{16,}(?:\\{1,4}[nr]|[ \t])*)+(?:[A-Za-z0-9+/=]{1,15}(?=\\|[ \t]?-))?"
)
# A line of a key: base64 at its end, behind the prefix of a launcher.
_BODY = lazy_re(r"(?P<prefix>[^\n]{0,200}?[\s:|>]|)(?P<v>[A-Za-z0-9+/=]{4,})[ \t]*\r?$")
_HEADER = lazy_re(r"[^\n]{0,200}?(?:Proc-Type|DEK-Info|Version|Comment|Subject|Hash):[^\n]*$|\s*$")
_LONE = 64
_LENGTHS = (64, 70)
# Lines of a private key whose first line stands elsewhere; the lengths are those of PEM and OpenSSH.
_KEY_LINE = lazy_re(
    r"(?<!\S)(?=\S{0,63}[a-z])(?=\S{0,63}[A-Z])(?=\S{0,63}[0-9])(?:[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70})(?!\S)"
)


def find_key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the lines of keys between BEGIN and END, of each line apart, so that no line break is lost."""
    end = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < end:
            continue
        inline = _INLINE.match(text, begin.end())
        if inline is not None:
            end = inline.end()
            yield begin.end(), end
            continue
        for span in _find_body(text, begin.end()):
            end = span[1]
            yield span


def _find_body(text: str, place: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of the lines after a BEGIN, until a line that is none of a key."""
    place = text.find("\n", place) + 1
    while place:
        stop = text.find("\n", place)
        line = text[place : stop if stop >= 0 else len(text)]
        body = _BODY.match(line)
        if body is not None:
            yield place + body.start("v"), place + body.end("v")
        elif _HEADER.match(line) is None:
            return
        place = stop + 1


def _find_before_end(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the lines before an END whose BEGIN was cut off."""
    for end in _END.finditer(text):
        spans: list[tuple[int, int]] = []
        stop = text.rfind("\n", 0, end.start())
        while stop >= 0:
            start = text.rfind("\n", 0, stop) + 1
            body = _BODY.match(text[start:stop])
            if body is None:
                break
            spans.append((start + body.start("v"), start + body.end("v")))
            stop = start - 1
        yield from reversed(spans)


def has_key_line(text: str) -> bool:
    """Whether the text may hold a line of a private key."""
    return len(text) >= _LONE and any(len(part) in _LENGTHS for part in text.split())


def _find_key_lines(text: str) -> Iterator[tuple[int, int]]:
    if has_key_line(text):
        for match in _KEY_LINE.finditer(text):
            yield match.span()


RULES = (
    spans_rule(KIND, "-----begin|private-lines", find_key_blocks),
    spans_rule(KIND, "-----end", _find_before_end),
    spans_rule(KIND, r"[a-z0-9+/]{64}", _find_key_lines),
    # Base64 of `-----BEGIN`, except of certificates.
    pattern_rule(KIND, "ls0tls1crudjti", r"LS0tLS1CRUdJTi(?!BDRVJU)[A-Za-z0-9+/]{20,}={0,2}"),
    pattern_rule(KIND, "private-mac", r"Private-MAC: ?(?P<v>[0-9a-f]{40,64})"),
    pattern_rule(KIND, "privatekey", r"\bPrivateKey ?= ?(?P<v>[A-Za-z0-9+/]{42,43}=)"),
    pattern_rule(KIND, "kty", r"[\"'](?:d|p|q|dp|dq|qi|k)[\"']: ?[\"'](?P<v>[\w-]{20,800})[\"']"),
    pattern_rule(
        "password-hash",
        r"\$(?:apr1|2[aby]|[156y]|argon2)",
        r"\$(?:apr1|2[aby]|[156y]|argon2(?:id?|d))\$(?P<v>[\w./=,$+-]{20,200})",
    ),
    pattern_rule(
        "netrc",
        r"machine ",
        r"(?i)\bmachine \S{1,200}\s{1,8}login \S{1,200}\s{1,8}password (?P<v>(?!\[redacted)\S+)",
    ),
    # .pgpass: host:port:database:user:password
    pattern_rule(
        "netrc",
        r":\d{4,5}:",
        r"(?m)^[\w.*-]{1,100}:\d{4,5}:[\w*-]{1,64}:[\w*-]{1,64}:(?P<v>(?!\[redacted)[^\s:]{6,100})$",
    ),
)
