"""Dumps of settings and versions: `env` and its kin, /proc/PID/environ, `pip freeze`, `nvidia-smi`, `npu-smi`,
collect_env.

One fact a dump: kind `environment`, the names in `fields`. Whom it is about is told by the dump itself (RANK,
LOCAL_RANK, SLURM_PROCID,
HOSTNAME), else by the name of the file.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

from triage.artifacts.interface import Artifact, Facts
from triage.base.lazy_re import lazy_re
from triage.evidence.settings import of_dump
from triage.model.evidence import Evidence, Origin, SourceKind
from triage.ranks.files import origin_of

# What launchers call a process, in the order in which they are believed.
_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_LOCAL = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
_HOST = ("SLURMD_NODENAME", "HOSTNAME")
# What of a file's name may be a host: a word with a number behind it, between dots and underscores.
_HOSTS = lazy_re(
    r"(?<![A-Za-z0-9-])(?:(?:env|pip|freeze|list|smi|nvidia|npu|conda)-)*([A-Za-z][A-Za-z-]*\d[\dA-Za-z-]*)(?![A-Za-z0-9-])"
)


class Environment:
    kind: SourceKind = "environment"
    max_bytes = 1 << 18

    def read(self, artifacts: Sequence[Artifact]) -> Facts:
        return Facts(_by_name([fact(artifact) for artifact in artifacts]), [])


def _by_name(facts: Sequence[Evidence]) -> list[Evidence]:
    """Dumps that do not say whose they are, and whose names differ only in what may be a host: `nvidia-smi.node0.txt`,
    `pip_gpu-a12.txt`.
    """
    named = {
        fact.source: found[0] for fact in facts if len(found := _HOSTS.findall(fact.source.rpartition("/")[2])) == 1
    }
    forms = Counter(source.replace(host, "*") for source, host in named.items())
    return [
        dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, host=host))
        if fact.origin.rank is None
        and fact.origin.host is None
        and (host := named.get(fact.source))
        and forms[fact.source.replace(host, "*")] > 1
        and origin_of(fact.source) == Origin()
        else fact
        for fact in facts
    ]


def fact(artifact: Artifact) -> Evidence:
    """Everything that one dump says. `excerpt` gives the place of each name: `name offset line`, one a line."""
    found = of_dump(artifact.data)
    values = {name: value for name, (value, _, _) in found.items()}
    origin = Origin(rank=_number(values, _RANK), local_rank=_number(values, _LOCAL), host=_first(values, _HOST))
    form = "dump" if any(name.isupper() for name in values) else "versions"
    return Evidence(
        kind="environment",
        component=form,
        text=f"{len(values)} settings",
        origin=origin,
        source=artifact.source.name,
        offset=0,
        end=len(artifact.data),
        fields=values,
        excerpt="\n".join(f"{name} {offset} {line}" for name, (_, offset, line) in found.items()),
    )


def _first(values: Mapping[str, str], names: Sequence[str]) -> str | None:
    value = next((values[name] for name in names if values.get(name)), None)
    return value.partition(".")[0] if value else None


def _number(values: Mapping[str, str], names: Sequence[str]) -> int | None:
    value = next(
        (values[name] for name in names if values.get(name, "").isascii() and values.get(name, "").isdigit()), None
    )
    return int(value) if value is not None and len(value) < 8 else None
