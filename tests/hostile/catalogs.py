"""Hostile contributed signatures: YAML that is a bomb, and patterns that are slow, empty or full of markup."""

from __future__ import annotations

import json
from dataclasses import dataclass

HEAD = "id: own.hostile\nrevision: 1\ntitle: t\nstatus: stable\nrole: cause\nseverity: error\n"


@dataclass(frozen=True, slots=True)
class CatalogCase:
    """A file of a contributed catalog, and a pattern for the remark by which it is refused.

    With "" it is accepted, because it costs little and can do no harm; `silent` says why.
    """

    name: str
    content: bytes
    refused: str
    silent: str = ""


def signature(pattern: str, **more: object) -> bytes:
    """Return a signature with this pattern."""
    return f"{HEAD}match: {json.dumps({'text': pattern, **more})}\n".encode()


def alias_bomb() -> bytes:
    """Return ten lists, each of nine times the one before."""
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return "\n".join(lines).encode()


ANCHORS = "anchors and aliases"
DEEP = "nested too deeply|not YAML"
TAGS = "tags are not supported"
ONCE = "a text is searched once for a pattern, in time linear in its length"
CASES = (
    CatalogCase("yaml: alias bomb", alias_bomb(), ANCHORS),
    CatalogCase("yaml: alias of itself", b"a: &a [*a]\n", ANCHORS),
    CatalogCase("yaml: merge keys", b"a: &a {x: y}\nb: {<<: *a}\n", ANCHORS),
    CatalogCase("yaml: a hundred thousand lists", b"id: " + b"[" * 100_000, DEEP),
    CatalogCase("yaml: deep mappings", b"id: " + b"{a: " * 5000, DEEP),
    CatalogCase("yaml: deep blocks", b"- " * 50_000, DEEP),
    CatalogCase("yaml: too many parts", b"id: [" + b"a," * 60_000 + b"]", "nested too deeply or has too many parts"),
    CatalogCase("yaml: a megabyte", HEAD.encode() + b"meaning: " + b"x" * (1 << 20), "larger than 256 KiB"),
    CatalogCase("yaml: number without end", HEAD.replace("1", "9" * 9999).encode(), "revision"),
    CatalogCase("yaml: keys twice", HEAD.encode() + HEAD.encode(), "occurs twice"),
    CatalogCase("yaml: Python object", b"id: !!python/object/apply:os.system ['touch /tmp/triage-was-here']\n", TAGS),
    CatalogCase("yaml: binary tag", b"id: !!binary aGVsbG8=\n", TAGS),
    CatalogCase("yaml: list as a key", b"? [a, b]\n: c\n", "not a plain text"),
    CatalogCase("yaml: several documents", HEAD.encode() + b"---\na: b\n", "more than one document"),
    CatalogCase("yaml: control characters", b"id: a\0b\x07\n", "not YAML"),
    CatalogCase("yaml: not UTF-8", b"id: \xff\xfe\n", "is not UTF-8"),
    CatalogCase("yaml: unclosed", b'id: "a\nrevision: 1\n', "not YAML"),
    CatalogCase("pattern: nested repeats", signature("(a+)+$ abcd"), "", ONCE),
    CatalogCase(
        "pattern: repeat of a thousand repeats",
        signature("((a{1,1000}){1,1000}) abcd"),
        "RE2 refuses the pattern: invalid repetition",
    ),
    CatalogCase("pattern: huge repeat", signature("abcd x{1,100000}"), "RE2 refuses the pattern: invalid repetition"),
    CatalogCase("pattern: of megabytes", signature("abcd|" * 20_000), "at most 2000 are allowed"),
    CatalogCase("pattern: back-reference", signature(r"(abcd)\1"), "back-reference is not possible in RE2"),
    CatalogCase("pattern: look-around", signature("(?<=abcd).*"), "look-behind .* is not possible in RE2"),
    CatalogCase("pattern: empty", signature(""), "empty"),
    CatalogCase("pattern: everything", signature("."), "no text of four bytes"),
    CatalogCase("pattern: nested groups", signature("(" * 990 + "abcd" + ")" * 990), "recursion depth"),
    CatalogCase("pattern: recursion", signature("(?R)abcd", engine="regex"), "recursion"),
    CatalogCase(
        "pattern: backtracks for years", signature("(x+x+)+y abcd", engine="regex"), "", "each search has a time limit"
    ),
    CatalogCase(
        "markup: script in a title",
        signature("abcd").replace(b": t\n", b": <script>alert(1)</script>\n"),
        "",
        "pages escape it",
    ),
    CatalogCase(
        "markup: title of kilobytes",
        signature("abcd").replace(b": t\n", b": " + b"t" * 99_999 + b"\n"),
        "",
        "`triage catalog check` refuses it, an ingest cuts it",
    ),
    CatalogCase("identifier: a path", signature("abcd").replace(b"own.hostile", b"../../etc/passwd"), "right form"),
    CatalogCase(
        "reference: a script", signature("abcd") + b"references: ['javascript:alert(1)']\n", "right form|address"
    ),
)
