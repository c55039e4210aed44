"""The forms of secrets. The group `v` of a pattern is the secret; without it the whole match is.

Each pattern is applied only to texts of limited length, and only where the text, in lower case, has one of its hints:
without one of them it cannot match.
"""

from __future__ import annotations

_NAME = (
    r"(?:passw(?:or)?d|passphrase|passcode|secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|encryption[_-]?key|signing[_-]?key"
    r"|client[_-]?key[_-]?data|(?:auth|access|refresh|session|bearer|security|api|bot|hub|hf|id)[_-]?token|credentials?)"
)
# Values that are no secret: nothing, a placeholder, redacted text, and a name whose value comes next.
_NEXT = rf"[\w.\[(-]{{0,64}}?{_NAME}\w{{0,32}}[\"']?\s{{0,3}}(?:[=:]|=>)"
_NOT = rf"(?!None\b|null\b|nil\b|true\b|false\b|True\b|False\b|\*|<|\[redacted|\$\{{?\w+|{_NEXT})"
_SUFFIX = r"(?![a-z0-9_]{0,32}(?:error|exception|warning)\b)[a-z0-9_]{0,32}"
_VALUE = rf"(?:\"(?P<v1>{_NOT}[^\"\n]{{4,}})\"|'(?P<v2>{_NOT}[^'\n]{{4,}})'|(?P<v3>{_NOT}[^\s\"',;&]{{6,}}))"

_KEY_LINE = 64
# The beginnings of _NAME, spelled out.
_KEYS = ("api", "access", "account", "private", "encryption", "signing", "client")
_TOKENS = ("auth", "access", "refresh", "session", "bearer", "security", "api", "bot", "hub", "hf", "id")
_NAMES = (
    *("passwd", "password", "passphrase", "passcode", "secret", "credential"),
    *(f"{name}{sign}key" for name in _KEYS for sign in ("", "_", "-")),
    *(f"{name}{sign}token" for name in _TOKENS for sign in ("", "_", "-")),
)

# (kind, hints, pattern)
PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "private-key",
        ("-----begin",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----END))*"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    ("private-key", ("-----end",), r"[A-Za-z0-9+/=\s]{0,200}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    ("aws-key", ("akia", "asia", "abia", "acca"), r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    (
        "google-key",
        ("aiza", "ya29.", "gocspx-"),
        r"\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{20,}",
    ),
    (
        "azure-key",
        ("accountkey", "sharedaccesskey"),
        r"(?i)\b(?:AccountKey|SharedAccessKey)=(?P<v>[A-Za-z0-9+/]{20,}={0,2})",
    ),
    (
        "cloud-key",
        ("ltai", "akid", "dop_v1_", "dapi"),
        r"\bLTAI[0-9A-Za-z]{12,24}\b|\bAKID[0-9A-Za-z]{32}\b|\bdop_v1_[0-9a-f]{40,}|\bdapi[0-9a-f]{32}\b",
    ),
    (
        "token",
        (
            "hf_",
            "api_org_",
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "ghr_",
            "github_pat_",
            "glpat-",
            "glrt-",
            "gldt-",
            "glsoat-",
            "glcbt-",
        ),
        r"\b(?:hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|gl(?:pat|rt|dt|soat|cbt)-[\w.-]{20,})",
    ),
    (
        "token",
        (
            "xox",
            "xapp-",
            "sk-",
            "sk_",
            "rk_",
            "npm_",
            "pypi-",
            "dckr_",
            "nvapi-",
            "hvs.",
            "hvb.",
            "hvr.",
            "glsa_",
            "sg.",
            "triage_",
            "trg_",
        ),
        r"\b(?:xox[abeprs]-[\w-]{10,}|xapp-[\w-]{10,}|sk-[A-Za-z0-9_-]{20,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}"
        r"|pypi-[A-Za-z0-9_-]{30,}|dckr_(?:pat|oat)_[\w-]{20,}|nvapi-[\w-]{20,}|hv[sbr]\.[\w-]{20,}|glsa_\w{20,}|SG\.[\w-]{16,}\.[\w-]{16,}"
        r"|triage_[A-Za-z0-9_-]{30,}|trg_[A-Za-z0-9]{40,})",
    ),
    (
        "webhook",
        ("hooks.slack", "webhooks/"),
        r"(?<=hooks\.slack\.com/services/)[\w/]{20,}|(?<=discord\.com/api/webhooks/)\d+/[\w-]{20,}",
    ),
    ("jwt", ("eyj",), r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    ("bearer", ("bearer ",), r"(?i)\bbearer (?P<v>[\w.~+/-]{12,}=*)"),
    (
        "basic-auth",
        ("authorization",),
        r"(?i)\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|digest|token) (?P<v>[\w+/.~-]{8,}=*)",
    ),
    ("cookie", ("cookie",), r"(?i)\b(?:set-)?cookie[\"']?: ?[\"']?(?P<v>(?!\[redacted)[^\s\"'][^\n\"']{7,})"),
    ("url-password", ("://",), r"(?<=://)[^\s/:@\[]{1,64}:[^\s/@]{1,128}(?=@)"),
    ("url-password", ("://",), r"(?<=://)[A-Za-z0-9_~.-]{20,128}(?=@)"),
    (
        "url-parameter",
        ("?", "&"),
        r"(?i)[?&](?:x-amz-(?:signature|security-token|credential)|x-goog-signature|sig|signature|token|key|api_?key|access_token|password|auth)"
        r"=(?P<v>[^\s&\"'#\[]{6,})",
    ),
    ("wandb-key", ("wandb",), r"(?i)\bwandb[: ](?:login|key)\b[^\n]{0,20}?(?P<v>\b[0-9a-f]{40}\b)"),
    (
        "option",
        tuple(f"{sign}{name}" for name in (*_NAMES, "token") for sign in "-_"),
        rf"(?i)(?<!\S)--?(?:[a-z0-9_-]{{0,64}}[_-])?(?:{_NAME}|token)[ =]"
        rf"(?P<v>(?!-|None\b|\*|<|\[redacted)[^\s\"',;&]{{6,}})",
    ),
    ("netrc", ("machine ",), r"(?i)\bmachine \S{1,200} login \S{1,200} password (?P<v>(?!\[redacted)\S+)"),
    ("assignment", _NAMES, rf"(?i){_NAME}{_SUFFIX}[\"']?\s{{0,3}}(?:[=:]|=>)\s{{0,3}}{_VALUE}"),
    (
        "assignment",
        ("_token", "_pass", "_pwd"),
        rf"(?<=[A-Z0-9])_(?:TOKEN|PASS|PWD)[\"']?\s{{0,3}}[=:]\s{{0,3}}{_VALUE}",
    ),
    (  # `token` is a common word here: only values that are long and have letters and digits
        "assignment",
        ("token",),
        r"(?i)(?<![a-z_])token[\"']?\s{0,3}[=:]\s{0,3}[\"']?(?P<v>(?=[^\s\"',;&]{0,80}[0-9])(?=[^\s\"',;&]{0,80}[a-z])[\w.~+/-]{12,}=*)",
    ),
)
# The lines of a private key whose first line stands elsewhere.
KEY_LINE = r"(?<!\S)(?=\S{0,63}[a-z])(?=\S{0,63}[A-Z])(?=\S{0,63}[0-9])[A-Za-z0-9+/]{64}(?!\S)"
EMAIL = r"\b[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"


def has_key_line(text: str) -> bool:
    """Whether the text may hold a line of a private key."""
    return len(text) >= _KEY_LINE and any(len(part) == _KEY_LINE for part in text.split())
