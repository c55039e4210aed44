"""Secrets leave the text here, before anything is matched, stored, shown or posted: kinds stay, values never.

Not covered: secrets that look like ordinary words, and what a pattern below does not describe.
"""

from __future__ import annotations

import re

_PATTERNS: tuple[tuple[str, str], ...] = (
    ("private-key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]|-(?!----END))*(?:-----END [A-Z ]*PRIVATE KEY-----)?"),
    ("aws-key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    (
        "token",
        r"\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,}|sk-[A-Za-z0-9_-]{20,})",
    ),
    ("jwt", r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    ("bearer", r"(?<=[Bb]earer )[\w.~+/-]{12,}=*"),
    ("url-password", r"(?<=://)[^\s/:@]{1,64}:[^\s/@]{1,128}(?=@)"),
    (
        "assignment",
        r"(?i)(?<![a-z])(?:[a-z0-9_]*(?:password|passwd|secret|api_?key|access_?key|auth_?token|access_?token)[a-z0-9_]*)[\"']?\s*[=:]\s*[\"']?(?!None\b|null\b|\*)([^\s\"',;]{6,})",
    ),
)
# No pattern can match a text that holds none of these (compared in lower case).
_HINTS: tuple[str, ...] = (
    *(
        "-----begin",
        "akia",
        "asia",
        "hf_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xox",
        "sk-",
        "eyj",
        "earer ",
        "://",
    ),
    *("passw", "secret", "api_key", "apikey", "access_key", "accesskey", "auth_token", "authtoken", "access_token", "accesstoken"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


def redact(text: str) -> str:
    """`text` with every secret replaced by `[redacted <kind>]`."""
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return text
    for kind, pattern in _COMPILED:
        text = pattern.sub(lambda match, kind=kind: _mask(match, kind), text)  # type: ignore[misc]
    return text


def _mask(match: re.Match[str], kind: str) -> str:
    mark = f"[redacted {kind}]"
    if match.lastindex:
        return match.group().replace(match.group(match.lastindex), mark)
    return mark
