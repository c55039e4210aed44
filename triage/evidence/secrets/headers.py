"""Secrets in HTTP headers and cookies. Headers such as `X-Api-Key` have names that mean a secret: see assignments."""

from __future__ import annotations

from triage.evidence.secrets.interface import pattern_rule
from triage.evidence.secrets.values import looks_random

_AUTHORIZATION = r"(?i)(?:\b|\\[rn])authorization\\{0,3}[\"']?\s{0,3}(?:[:=,]|=>)\s{0,3}b?\\{0,3}[\"']?"
_LISTS = r"digest|oauth|signature|hmac|aws4-hmac-sha256"  # schemes with several named values
_SCHEMES = r"basic|token|key|api-?key|negotiate|ntlm|ssws|splunk|genie-?key|bot|bearer"

RULES = (
    pattern_rule("bearer", "bearer ", r"(?i)\bbearer (?P<v>[\w.~+/-]{12,}=*)"),
    pattern_rule(
        "basic-auth", "authorization", rf"{_AUTHORIZATION}(?:{_LISTS}) (?P<v>(?!\[redacted)[^'\n\\]{{8,4000}})"
    ),
    pattern_rule("basic-auth", "authorization", rf"{_AUTHORIZATION}(?:{_SCHEMES}) (?P<v>[\w.~+/=:%-]{{8,4000}})"),
    pattern_rule(
        "basic-auth", "authorization", rf"{_AUTHORIZATION}(?P<v>(?!\[redacted)[\w.~+/=-]{{16,4000}})", looks_random
    ),
    pattern_rule("cookie", "cookie", r"(?i)\b(?:set-)?cookie[\"']?: ?[\"']?(?P<v>(?!\[redacted)[^\s\"'][^\n\"']{7,})"),
    pattern_rule(
        "cookie",
        "sess|csrf|xsrf|connect.sid",
        r"(?i)(?<![A-Za-z0-9])(?:[jp](?:hp)?sess(?:ion)?id|asp\.net_sessionid|connect\.sid|_?\w{1,32}_session|sessionid|(?:csrf|xsrf)[_-]?token)"
        r"=(?P<v>[\w.%+/-]{16,512}=*)",
        looks_random,
    ),
)
