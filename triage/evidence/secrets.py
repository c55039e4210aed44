"""The forms that secrets have. What a pattern calls `v` is the secret; without it the whole match is.

Each pattern is applied only to texts of limited length and runs in time near linear in them: no repetition inside a repetition.
"""

from __future__ import annotations

_NAME = (
    r"(?:passw(?:or)?d|passphrase|passcode|secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|encryption[_-]?key|signing[_-]?key"
    r"|client[_-]?key[_-]?data|(?:auth|access|refresh|session|bearer|security|api|bot|hub|hf|id)[_-]?token|credentials?)"
)
# Values that are no secret: nothing, a placeholder, what is redacted already.
_NOT = r"(?!None\b|null\b|nil\b|true\b|false\b|True\b|False\b|\*|<|\[redacted|\$\{?\w+)"
_VALUE = rf"(?:\"(?P<v1>{_NOT}[^\"\n]{{4,}})\"|'(?P<v2>{_NOT}[^'\n]{{4,}})'|(?P<v3>{_NOT}[^\s\"',;&]{{6,}}))"

PATTERNS: tuple[tuple[str, str], ...] = (
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----END))*(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    # The lines of a key whose first line stands elsewhere.
    ("private-key", r"(?m)^(?=[^\n]{0,63}[a-z])(?=[^\n]{0,63}[A-Z])(?=[^\n]{0,63}[0-9])[A-Za-z0-9+/]{64}$"),
    ("private-key", r"[A-Za-z0-9+/=\s]{0,200}-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"),
    ("aws-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    ("google-key", r"\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{20,}"),
    ("azure-key", r"(?i)\b(?:AccountKey|SharedAccessKey)=(?P<v>[A-Za-z0-9+/]{20,}={0,2})"),
    ("cloud-key", r"\bLTAI[0-9A-Za-z]{12,24}\b|\bAKID[0-9A-Za-z]{32}\b|\bdop_v1_[0-9a-f]{40,}|\bdapi[0-9a-f]{32}\b"),
    (
        "token",
        r"\b(?:hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|gl(?:pat|rt|dt|soat|cbt)-[\w.-]{20,}"
        r"|xox[abeprs]-[\w-]{10,}|xapp-[\w-]{10,}|sk-[A-Za-z0-9_-]{20,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}"
        r"|pypi-[A-Za-z0-9_-]{30,}|dckr_(?:pat|oat)_[\w-]{20,}|nvapi-[\w-]{20,}|hv[sbr]\.[\w-]{20,}|glsa_\w{20,}|SG\.[\w-]{16,}\.[\w-]{16,}"
        r"|triage_[A-Za-z0-9_-]{30,})",
    ),
    ("webhook", r"(?<=hooks\.slack\.com/services/)[\w/]{20,}|(?<=discord\.com/api/webhooks/)\d+/[\w-]{20,}"),
    ("jwt", r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    ("bearer", r"(?i)\bbearer (?P<v>[\w.~+/-]{12,}=*)"),
    ("basic-auth", r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|digest|token) (?P<v>[\w+/.~-]{8,}=*)"),
    ("cookie", r"(?i)\b(?:set-)?cookie[\"']?: ?[\"']?(?P<v>(?!\[redacted)[^\s\"'][^\n\"']{7,})"),
    ("url-password", r"(?<=://)[^\s/:@\[]{1,64}:[^\s/@]{1,128}(?=@)"),
    ("url-password", r"(?<=://)[A-Za-z0-9_~.-]{20,128}(?=@)"),
    (
        "url-parameter",
        r"(?i)[?&](?:x-amz-(?:signature|security-token|credential)|x-goog-signature|sig|signature|token|key|api_?key|access_token|password|auth)"
        r"=(?P<v>[^\s&\"'#\[]{6,})",
    ),
    ("wandb-key", r"(?i)\bwandb[: ](?:login|key)\b[^\n]{0,20}?(?P<v>\b[0-9a-f]{40}\b)"),
    ("option", rf"(?i)(?<!\S)--?(?:[a-z0-9]+[_-])*(?:{_NAME}|token)[ =](?P<v>(?!-|None\b|\*|<|\[redacted)[^\s\"',;&]{{6,}})"),
    ("netrc", r"(?i)\bmachine \S+ login \S+ password (?P<v>(?!\[redacted)\S+)"),
    ("assignment", rf"(?i)(?<![a-z])(?:[a-z0-9_.-]{{0,64}}{_NAME}[a-z0-9_]{{0,32}})[\"']?\s{{0,3}}(?:[=:]|=>)\s{{0,3}}{_VALUE}"),
    ("assignment", rf"\b[A-Z0-9_]{{0,64}}_(?:TOKEN|PASS|PWD)[\"']?\s{{0,3}}[=:]\s{{0,3}}{_VALUE}"),
)
EMAIL = r"\b[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"
_PAIRS = ("passw", "passphrase", "passcode", "secret", "token", "credential", "cookie", "authorization", "earer ", "wandb", "login")
# No pattern can match a text that holds none of these (compared in lower case); the lines of a bare key are looked for by their length.
_HINTS = (
    *(
        "-----begin",
        "-----end",
        "akia",
        "asia",
        "abia",
        "acca",
        "aiza",
        "ya29.",
        "gocspx-",
        "accountkey",
        "sharedaccesskey",
        "ltai",
        "akid",
    ),
    *(
        "dop_v1_",
        "dapi",
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
    *(
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
        "hooks.slack",
    ),
    *("webhooks/", "eyj", "://", "sig=", "signature=", "key", "auth=", "_pass", "_pwd", *_PAIRS),
)
_KEY_LINE = 64


def possible(text: str) -> bool:
    """May there be a secret in it? Quick, and never wrong when it says no."""
    lowered = text.lower()
    return any(hint in lowered for hint in _HINTS) or (len(text) >= _KEY_LINE and _has_key_line(text))


def _has_key_line(text: str) -> bool:
    return any(len(line) == _KEY_LINE and " " not in line for line in text.split("\n"))
