"""Lines of programs that are no part of a training job: services of the host, desktops, trackers of experiments."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.model import Evidence

_KINDS = frozenset(("message", "kernel", "native", "ending"))
_SERVICES = (
    r"redis(?:-server)?|mysqld|mariadbd|postgres(?:ql)?|mongod|memcached|nginx|httpd|apache2|haproxy|sshd|crond?|CRON|"
    r"postfix|rsyslogd|filebeat|metricbeat|fluent-bit|fluentd|logstash|promtail|telegraf|collectd|prometheus|"
    r"node_exporter|grafana(?:-server|-agent)?|zabbix_agentd|snmpd|chronyd|ntpd|cupsd|snapd|packagekitd|fwupd|"
    r"gdm3?|gnome-[\w-]+|gsd-[\w-]+|plasmashell|kwin_\w+|Xorg|Xwayland|firefox(?:-bin)?|chrome|chromium|code-server"
)
# `redis[77]: …` of syslog; `gnome-shell[2210]: segfault at` and `traps: Xorg[812] general protection` of the kernel.
_TAGGED = lazy_re(rf"^[^\n]{{0,80}}?(?<![\w.-])({_SERVICES})\[\d{{1,8}}\](?::| general protection| trap )")
# The kernel names the file that crashed, or who used the GPU: `segfault at 0 … in firefox-bin[`, `Xid …, name=Xorg,`.
_NAMED = lazy_re(
    rf"\bsegfault at [^\n]{{1,200}} in (?P<file>{_SERVICES})\[|\bXid [^\n]{{1,80}}, name=(?P<user>{_SERVICES}),"
)
_TRACKER = lazy_re(
    r"^(?:\[[\w: -]{1,30}\]:? ?)?(wandb|COMET|swanlab|clearml|neptune|mlflow): ?(?:ERROR|WARNING|INFO|W |E )"
)


def name_other_program(fact: Evidence) -> str:
    """Return the program that wrote a line, or that a line of the kernel names, if it is no part of a job; else ""."""
    if fact.kind not in _KINDS:
        return ""
    line = fact.text.split("\n", 1)[0]
    match = _TAGGED.match(line) or _TRACKER.match(line) or _NAMED.search(line)
    return next(filter(None, match.groups())) if match is not None else ""
