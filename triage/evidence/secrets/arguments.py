"""Secrets that commands take without an option: `vault login …`, `net user NAME …`, `echo … | docker login`."""

from __future__ import annotations

from triage.evidence.secrets.interface import pattern_rule
from triage.evidence.secrets.options import GAP, KIND, TO_VALUE

_VALUE = r"(?!\[redacted|-)[^\s'\"]{3,400}"
_NAME = r"[\w.-]{1,64}"
_READERS = (
    r"--password-stdin|--with-token|\bsudo[ \t]+-\w*S|\bkinit\b|\bchpasswd\b|\bpasswd\b|--passphrase-fd|\bcryptsetup\b"
)
# (hint, form). A space stands for the gap between arguments, V for the secret, NAME for an argument.
_FORMS = (
    (r"login", r"\b(?:vault|cargo|wandb|snyk) login (?:--?[\w-]{1,30} )*(?P<v>(?!-|\[redacted)[\w.-]{12,200})"),
    (r"rclone", r"\brclone obscure (?P<v>V)"),
    (r"net.{1,5}user", r"(?i)\bnet user NAME (?P<v>(?![/*])V)"),
    (r"rabbitmqctl", r"\brabbitmqctl (?:add_user|change_password) NAME (?P<v>V)"),
    (r"htpasswd", r"\bhtpasswd -\w*b\w* \S{1,200} NAME (?P<v>V)"),
    (r"\bmc\b|mcli", r"\bmc(?:li)? (?:alias set|config host add) NAME \S{1,200} (?P<v1>V) (?P<v2>V)"),
    (
        r"(?:sqlplus|rman|expdp|impdp)\W",
        r"\b(?:sqlplus|rman|expdp|impdp) (?:-\w{1,8} )*\w{1,64}/(?P<v>(?!\[redacted)[^\s@'\"]{3,200})",
    ),
    (r"poetry", r"\bpoetry config (?:pypi-token|http-basic)\.\S{1,64} (?P<v>V)"),
    (r"vault", r"\bvault (?:kv (?:put|patch)|write) (?:-\S{1,60} )*\S{1,200} NAME=(?P<v>(?!@)V)"),
)


def _expand(form: str) -> str:
    return form.replace(" ", GAP).replace("NAME", _NAME).replace("V)", f"{_VALUE})")


RULES = (
    *(pattern_rule(KIND, hint, _expand(form)) for hint, form in _FORMS),
    pattern_rule(KIND, "-pass", rf"(?:-pass(?:in|out)?|--passphrase){TO_VALUE}['\"]?pass:(?P<v>{_VALUE})"),
    pattern_rule(KIND, "from-literal", rf"--from-literal{TO_VALUE}['\"]?[\w.-]{{1,100}}=(?P<v>{_VALUE})"),
    pattern_rule(
        KIND,
        "echo|printf",
        rf"\b(?:echo|printf)[ \t]{{1,3}}(?:-n[ \t]{{1,3}}|'%s'[ \t]{{1,3}})?['\"]?(?P<v>(?![$\[])[^\s'\"|]{{3,400}})"
        rf"['\"]?[ \t]{{0,3}}\|[^\n|]{{0,120}}(?:{_READERS})",
    ),
)
