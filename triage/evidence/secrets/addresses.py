"""Secrets in addresses: user and password, parameters, and the path of a webhook."""

from __future__ import annotations

from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.evidence.secrets.interface import pattern_rule, spans_rule
from triage.evidence.secrets.names import Strength, judge_name
from triage.evidence.secrets.values import looks_random

_PARAMETERS = frozenset(("sig", "signature", "token", "key", "auth", "code", "pass", "appid"))
_SURE = frozenset(
    ("x-amz-signature", "x-goog-signature", "x-amz-security-token", "x-amz-credential", "x-goog-credential", "hapikey")
)
_PARAMETER = lazy_re(r"[?&;](?P<name>[A-Za-z][\w.-]{0,60})=(?P<v>[^\s&\"'#\[;<>]{6,4000})")
_TAIL = r"(?P<v>(?=[^\s\"'<>\\]{0,200}\d)[\w/@:.%+-]{12,600})"
_PASSWORD = r"[^\s:@/\"'\[\]]{6,128}"
_DOMAIN = r"(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}"
# Hosts whose paths are secrets, and paths that say that they lead to a hook.
_WEBHOOKS = (
    r"hooks\.slack\.com/(?:services|workflows|triggers)/"
    r"|discord(?:app)?\.com/api/webhooks/"
    r"|webhook\.office\.com/webhookb2/"
    r"|api\.telegram\.org/(?:file/)?bot"
    r"|//(?:webhook\.site|hc-ping\.com|(?:web)?hooks?\.[\w.-]{1,80})/(?:hooks/catch/)?"
    r"|/with/key/|logic\.azure\.com(?::\d{1,5})?/workflows/"
    r"|/(?:web-?)?hooks?/(?:[a-z]{1,16}/){0,2}"
)


def _find_parameters(text: str) -> Iterator[tuple[int, int]]:
    for match in _PARAMETER.finditer(text):
        name = match["name"].lower()
        sure = name in _SURE or judge_name(match["name"]) is Strength.ANY
        if sure or (name in _PARAMETERS and looks_random(match["v"])):
            yield match.span("v")


RULES = (
    pattern_rule(
        "webhook", r"hooks?[./]|webhook|hc-ping|telegram\.org|with/key|logic\.azure", rf"(?i)(?:{_WEBHOOKS}){_TAIL}"
    ),
    # Up to the last @ before the path: a password may hold one.
    pattern_rule("url-password", "://", r"(?<=://)[^\s/:@\[?#\"'<>]{0,64}:[^\s/\"'<>]{1,256}(?=@[\w.\[-])"),
    pattern_rule("url-password", "://", r"(?<=://)[A-Za-z0-9_~.-]{20,128}(?=@)"),
    pattern_rule("url-password", r"thin:", r"(?<=thin:)\w{1,64}/[^\s/@]{1,128}(?=@)"),
    # Without a scheme: only before a domain, and with a digit in the password or a path behind it.
    pattern_rule(
        "url-password",
        r":[^\s/@]+@[\w-]+\.",
        rf"(?<![\w/.@:-])[\w.-]{{1,64}}:(?:(?=[^\s@]{{0,128}}\d)(?P<v1>{_PASSWORD})(?=@{_DOMAIN}\b)"
        rf"|(?P<v2>{_PASSWORD})(?=@{_DOMAIN}[/:]))",
    ),
    spans_rule("url-parameter", r"[?&;][a-z][\w.-]*=", _find_parameters),
)
