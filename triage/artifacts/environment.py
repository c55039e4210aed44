"""Dumps of settings and versions: `env`, /proc/PID/environ, `pip freeze`, `nvidia-smi`, `npu-smi`, collect_env.

Each dump gives one piece of evidence: kind `environment`, with the settings in `fields`. Rank and host come from the
dump itself (RANK, LOCAL_RANK, SLURM_PROCID, HOSTNAME), else from the name of the file.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

from triage.artifacts.interface import Artifact, ReadResult
from triage.base.lazy_re import lazy_re
from triage.evidence.settings import settings_in_dump
from triage.model.evidence import Evidence, Origin
from triage.ranks.file_names import parse_file_name

# Variables in which launchers put rank and host; the first that is set wins.
_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
_HOST = ("SLURMD_NODENAME", "HOSTNAME")
# The part of a file name that may be a host: a word that ends with a number, between dots and underscores.
_HOST_IN_NAME = lazy_re(
    r"(?<![A-Za-z0-9-])(?:(?:env|pip|freeze|list|smi|nvidia|npu|conda)-)*"
    r"([A-Za-z][A-Za-z-]*\d[\dA-Za-z-]*)(?![A-Za-z0-9-])"
)


class Environment:
    """Reads dumps of settings and versions."""

    max_bytes = 1 << 18

    def read(self, artifacts: Sequence[Artifact]) -> ReadResult:
        """Return one piece of evidence for each dump."""
        return ReadResult(_with_hosts([to_evidence(artifact) for artifact in artifacts]), [])


def _with_hosts(facts: Sequence[Evidence]) -> list[Evidence]:
    """Add the host in the file name, where several names only differ in it: `nvidia-smi.node0.txt`, `pip_gpu-a12.txt`.

    Only dumps without rank and host get one.
    """
    hosts_in = {fact.source: _HOST_IN_NAME.findall(fact.source.rpartition("/")[2]) for fact in facts}
    host_of = {source: hosts[0] for source, hosts in hosts_in.items() if len(hosts) == 1}
    forms = Counter(source.replace(host, "*") for source, host in host_of.items())
    return [
        dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, host=host))
        if fact.origin.rank is None
        and fact.origin.host is None
        and (host := host_of.get(fact.source))
        and forms[fact.source.replace(host, "*")] > 1
        and parse_file_name(fact.source) == Origin()
        else fact
        for fact in facts
    ]


def to_evidence(artifact: Artifact) -> Evidence:
    """Return all settings of one dump; `excerpt` gives the place of each as a line `name offset line`."""
    settings = settings_in_dump(artifact.data)
    values = {name: value for name, (value, _, _) in settings.items()}
    return Evidence(
        kind="environment",
        component="dump" if any(name.isupper() for name in values) else "versions",
        text=f"{len(values)} settings",
        origin=Origin(rank=_number(values, _RANK), local_rank=_number(values, _LOCAL_RANK), host=_first(values, _HOST)),
        source=artifact.source.name,
        offset=0,
        end=len(artifact.data),
        fields=values,
        excerpt="\n".join(f"{name} {offset} {line}" for name, (_, offset, line) in settings.items()),
    )


def _first(values: Mapping[str, str], names: Sequence[str]) -> str | None:
    value = next((values[name] for name in names if values.get(name)), None)
    return value.partition(".")[0] if value else None


def _number(values: Mapping[str, str], names: Sequence[str]) -> int | None:
    value = next(
        (values[name] for name in names if values.get(name, "").isascii() and values.get(name, "").isdigit()), None
    )
    return int(value) if value is not None and len(value) < 8 else None
