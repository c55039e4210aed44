"""Secrets behind the short options of known programs: `curl -u user:secret`, `mysql -psecret`, `sshpass -p secret`.

A command is read as a shell line (`docker login -p …`) and as a list of arguments (`['docker', 'login', '-p', '…']`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.evidence.secrets.interface import spans_rule
from triage.evidence.secrets.options import GAP, KIND, TO_VALUE
from triage.evidence.secrets.values import is_statement

REACH = 500  # characters of a command that are read: a long line may hold many programs
# (programs, options whose next argument is a secret, options with the secret attached, options with `user:secret`).
_PROGRAMS = (
    (r"curl", "--pass --oauth2-bearer -b --cookie", "", "-u --user -U --proxy-user -E --cert"),
    (r"(?:mysql|mariadb)(?:dump|admin|import|check|show|slap)?", "", "-p", ""),
    (r"sshpass", "-p", "-p", ""),
    (r"7z[ar]?z?", "", "-p", ""),
    (r"redis-cli|valkey-cli", "-a --pass", "", ""),
    (r"mongo(?:sh|dump|restore|export|import|stat|top)?|cqlsh|rabbitmqadmin", "-p", "", ""),
    (
        rf"(?:docker|podman|nerdctl|helm|oras|crane|buildah|skopeo|az|oc|acr|registry){GAP}(?:[\w-]{{1,16}}{GAP})?login",
        "-p",
        "-p",
        "",
    ),
    (rf"twine{GAP}upload|poetry{GAP}publish", "-p", "", ""),
    (r"skopeo|buildah|podman|crane|ctr|nerdctl", "", "", "--creds --src-creds --dest-creds -u"),
    (r"ldap(?:search|modify|add|delete|whoami|passwd|compare)", "-w", "-w", ""),
    (r"ipmitool|sqlcmd|bcp|tsql|zip|unzip|zipcloak|mosquitto_(?:pub|sub|rr)", "-P", "-P", ""),
    (r"influx", "-password", "", ""),
    (r"snmp(?:walk|get|set|bulkwalk|table|getnext)", "-A -X -c", "", ""),
    (r"ssh-keygen", "-N -P", "", ""),
    (r"keytool|jarsigner", "-storepass -keypass -srcstorepass -deststorepass", "", ""),
    (r"smbclient|rpcclient|smbget|smbmap", "", "", "-U"),
    (r"lftp|ncftp", "", "", "-u"),
    (r"https?|xh|ab", "", "", "-a -A --auth"),
    (rf"(?:dotnet{GAP})?nuget{GAP}push", "-k -ApiKey", "", ""),
    (r"[xw]?freerdp[23]?", "", "/p:", ""),
    (r"clickhouse(?:-client)?", "--password", "", ""),
)
_PROGRAM = lazy_re(
    r"(?<![\w.=@:-])(?:/[\w./-]{1,100}/)?(?:"
    + "|".join(f"(?P<p{n}>{p[0]})" for n, p in enumerate(_PROGRAMS))
    + r")(?=['\"]?,?[ \t])"
)
_END = lazy_re(r"\n|[ \t](?:\|\|?|&&|;)[ \t]")


def find_program_options(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of secrets behind the short options of known programs."""
    end = 0
    for program in _PROGRAM.finditer(text):
        if program.start() < end:
            continue
        reach = min(len(text), program.end() + REACH)
        stop = _END.search(text, program.end(), reach)
        last = stop.start() if stop is not None else reach
        _, *options = _PROGRAMS[int((program.lastgroup or "p0")[1:])]
        for span in sorted(_spans_of_options(text, program.end(), last, *options)):
            if span[0] >= end:
                end = span[1]
                yield span


def _spans_of_options(
    text: str, first: int, last: int, following: str, attached: str, pairs: str
) -> Iterator[tuple[int, int]]:
    for options, between, behind in (
        (following, TO_VALUE, ""),
        (attached, "['\"]?", ""),
        (pairs, rf"(?:{TO_VALUE})?", r"[^\s:%,'\"]{0,64}[:%,]"),
    ):
        for option in options.split():
            match = _compile_option(option, between, behind).search(text, first, last)
            if match is not None and not is_statement(match["v"]) and (not behind or not match["v"].isdigit()):
                yield match.span("v")


@functools.cache
def _compile_option(option: str, between: str, behind: str) -> re.Pattern[str]:
    value = r"(?P<v>(?!-)(?:(?<=['\"])[^'\"\n]{3,400}(?=['\"])|[^\s'\",;\]]{3,400}))"
    return re.compile(rf"(?<=[\s'\"]){re.escape(option)}{between}['\"]?{behind}{value}")


_HINT = rf"\b(?:{'|'.join(program[0] for program in _PROGRAMS)})\b[^\n]*[ \t'\"][-/]"
RULES = (spans_rule(KIND, _HINT, find_program_options),)
