"""Secrets that have a form of their own: most begin with letters that name their service.

The forms are those that the services document, and that the lists of gitleaks, trufflehog and detect-secrets name.
"""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re
from triage.evidence.secrets.interface import Rule, pattern_rule
from triage.evidence.secrets.values import is_mixed, looks_random

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# (kind, least number of characters behind it, beginnings that nothing else has).
_BEGINNINGS = (
    (
        "token",
        10,
        "xoxa- xoxb- xoxc- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp- sk_live_ sk_test_ sk_prod_ rk_live_ "
        "rk_test_ rk_prod_ rzp_live_ rzp_test_ NRJS- AVNS_",
    ),
    (
        "token",
        16,
        "sm_pat_ sm_aat_ sm_sat_ whsec_ shpat_ shpca_ shppa_ shpss_ sq0atp- sq0csp- sq0idp- NRII- NRAK- p8e- SCW ico-",
    ),
    (
        "token",
        20,
        "hf_ api_org_ glpat- glrt- gldt- glsoat- glcbt- glagent- glffct- glft- glimt- gloas- glptt- "
        "GR1348941 dckr_pat_ dckr_oat_ nvapi- hvs. hvb. hvr. glsa_ glc_ gsk_ pplx- xai- figd_ figu_ pcsk_ "
        "lsv2_pt_ lsv2_sk_ lin_api_ lin_oauth_ tskey- dp.pt. dp.ct. dp.st. dp.sa. dp.scim. dp.audit. pul- "
        "dt0c01. duffel_live_ duffel_test_ fio-u- FLWSECK- FLWSECK_TEST- pscale_pw_ pscale_tkn_ "
        "pscale_oauth_ PMAK- rdme_ rubygems_ r8_ sntryu_ sntrys_ shippo_live_ shippo_test_ sbp_ sgp_ squ_ "
        "sqp_ sqa_ tfp_ tgp_v1_ xkeysib- xsmtpsib- ATATT3 ATCTT3 AGE-SECRET-KEY- ops_eyJ HRKU- EZAK EZTK "
        "CCIPAT_ CLOJARS_ bkua_ dnkey- tk-us- llx- wandb_v1_ zpka_ jina_ fo1_ fm1_ fm2_ fm1a_ fm1r_ sk- "
        "ant- sk-proj- sk-or-v1- sk-lf- sk-svcacct- sk-admin- nfp_ phx_ pnu_ ntn_ napi_ rnd_ essu_ ABSK "
        "bedrock-api-key- csk- packagist_out_ s-s4t2ud- s-s4t2af- esecret_ AQVN sk.eyJ eyJrIjoi LLM| "
        "sha256~ access_token$production$ ramp_sec_ AKCp cmVmd",
    ),
    (
        "token",
        30,
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ npm_ pypi- triage_",
    ),
    (
        "token",
        40,
        "trg_ EAAA EAAM EAAC oy2",
    ),
    ("google-key", 20, "AIza ya29. GOCSPX- 1//0"),
    ("cloud-key", 20, "dop_v1_ doo_v1_ dor_v1_ dapi"),
)
# Beginnings that other words have too: only with random text behind them.
_AMBIGUOUS = "sk- sk_ pk_ pk- ak_ pa- fw_ rpa_ key- secret_ live_ cnvca s. sn-"
_CHARACTERS = r"[\w+/~.|$-]"
_START = r"(?<![A-Za-z0-9])"
# (kind, hint, form).
_FORMS = (
    ("aws-key", "akia|asia|abia|acca|a3t", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[0-9A-Z]{16}\b"),
    ("cloud-key", "ltai|akid", r"LTAI[0-9A-Za-z]{12,24}\b|AKID[0-9A-Za-z]{32}\b"),
    ("token", r"a3-\w{6}-", r"A3-[A-Z0-9]{6}-[A-Z0-9]{6,11}(?:-[A-Z0-9]{5}){3,4}\b"),
    ("token", r"sg\.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("token", r"api-\w{26}", r"API-[A-Z0-9]{26}\b"),
    ("token", r"sk[0-9a-f]{32}", r"SK[0-9a-fA-F]{32}\b"),
    (
        "token",
        r"(?:pat-\w\w\d|sdk|mob|access-\w{7,12}|sn)-[0-9a-f]{8}-",
        rf"(?:pat-[a-z]{{2}}\d|sdk|mob|access-(?:sandbox|development|production)|sn)-{_UUID}",
    ),
    ("token", r"pat\w{14}\.[0-9a-f]{8}", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("token", r"[0-9a-f]{8}-us\d", r"[0-9a-f]{32}-us\d{1,2}\b"),
    ("token", r"-[0-9a-f]{8}-[0-9a-f]{8}", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b"),
    ("token", r"[0-9a-f]nral", r"[0-9a-f]{36}NRAL\b"),
    ("token", r"v1\.0-[0-9a-f]{24}", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"),
    ("token", "q~", r"[\w~.-]{3}\dQ~[\w~.-]{31,34}"),
    ("token", r"\.atlasv1\.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}"),
    ("token", r"fw_\w{24}", r"fw_[A-Za-z0-9]{24}\b"),
    ("token", r"cio\w{32}", r"cio[A-Za-z0-9]{32}\b"),
    ("token", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b"),
    ("token", "jqqj99", r"[A-Za-z0-9]{44,52}JQQJ99[A-Za-z0-9]{8,40}"),
    ("token", r"\d{8}:aa", r"\d{8,10}:AA[\w-]{33}(?![\w-])"),
    ("token", ":apa91b", r"AAAA[\w-]{7}:APA91b[\w-]{100,}"),
    ("token", r"1/\d{16}:", r"1/\d{16}:[0-9a-f]{32}\b"),
    ("token", r"\.[\w-]{6}\.", r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}"),
    (
        "token",
        r"\.acc[_-]",
        r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30,}",
    ),
    ("token", r"00d\w{12,15}!", r"00D[A-Za-z0-9]{12,15}![\w.]{60,}"),
    ("token", r"ver:\d-hint:", r"ver:\d-hint:\d{4,12}-[\w+/=-]{20,}"),
    ("token", r"t1\.[\w-]{20}", r"t1\.[\w-]{20,}={0,2}\.[\w-]{60,}={0,2}"),
    ("token", r"[ps]at\.[\w-]{22}\.", r"[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    (
        "jwt",
        "eyj",
        r"eyJ[\w-]{10,}\.(?:eyJ[\w-]{10,}\.[\w-]{10,}|[\w-]*\.[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,})",
    ),
)
# `hf_offline_model_all_ranks`, `sk-learn-pipeline-run-12/train.log`: names that begin as tokens do.
_READABLE_NAME = lazy_re(r"(?:[a-z]{1,14}\d{0,3}|\d{1,3})(?:[_/.-](?:[a-z]{1,14}\d{0,3}|\d{1,4})){2,40}")
# Short words in small letters, each with a sign, and behind them random text in one piece.
_SHAPE = r"(?<![\w./-])(?:[a-z][a-z0-9]{0,11}[_-]){1,3}[A-Za-z0-9]{20,200}(?:[_-][A-Za-z0-9]{8,100})?(?!\w)"
_SHAPE_HINT = r"[a-z][_-][a-z0-9]{20}"


def _with_beginnings(kind: str, shortest: int, names: str) -> Rule:
    either = "|".join(map(re.escape, names.split()))
    hint = "|".join(name.replace(".", r"\.").replace("$", r"\$").replace("|", r"\|") for name in names.split())
    tail = rf"{_CHARACTERS}{{{shortest - 1},600}}[\w+/-]={{0,3}}"
    hint = rf"(?:{hint}){_CHARACTERS}{{{shortest}}}"
    return pattern_rule(
        kind, hint, rf"{_START}(?:{either}){tail}", lambda token: _READABLE_NAME.fullmatch(token) is None
    )


def _is_random_behind_words(token: str) -> bool:
    """Whether the last part is random base62: `gsk_4fT…`, but not `cache_0f1e…` or `sm90_xmma_gemm`."""
    tail = max(re.split("[_-]", token), key=len)
    return is_mixed(tail)


def _with_ambiguous_beginnings() -> Rule:
    either = "|".join(map(re.escape, _AMBIGUOUS.split()))
    return pattern_rule(
        "token",
        rf"(?:{either})[\w-]{{20}}",
        rf"{_START}(?:{either})(?P<v>[\w-]{{20,300}}(?:\.[\w-]{{20,100}})?)",
        lambda value: looks_random(value, 20),
    )


RULES = (
    pattern_rule(
        "azure-key", "accountkey|accesskey", r"(?i)\b(?:AccountKey|SharedAccessKey)=(?P<v>[A-Za-z0-9+/]{20,}={0,2})"
    ),
    pattern_rule("wandb-key", "wandb", r"(?i)\bwandb[: ](?:login|key)\b[^\n]{0,20}?(?P<v>\b[0-9a-f]{40}\b)"),
    *(_with_beginnings(*group) for group in _BEGINNINGS),
    *(pattern_rule(kind, hint, f"{_START}(?:{form})") for kind, hint, form in _FORMS),
    _with_ambiguous_beginnings(),
    pattern_rule("token", _SHAPE_HINT, _SHAPE, _is_random_behind_words),
)
