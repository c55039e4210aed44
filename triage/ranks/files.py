"""What the name of a file tells of its writer."""

from __future__ import annotations

import re

from triage.model import Origin

_ELASTIC = re.compile(r"attempt_(?P<attempt>\d+)/(?P<local_rank>\d+)/(?P<stream>stdout|stderr|error)")
_LOCAL = re.compile(r"local[_-]?rank[_-]?(?P<local_rank>\d+)", re.I)
_RANK = re.compile(r"(?<![a-zA-Z])(?<!local_)(?<!local-)(?:global[_-])?rank[_-]?(?P<rank>\d+)(?![\d.]*x)", re.I)
_HOST = re.compile(r"(?:^|/|!/)(?P<host>(?:node|host|worker|gpu|nid|compute|n)[-_]?\d[\w-]*)(?=/|\.[a-z]{1,4}$|$)", re.I)
_ATTEMPT = re.compile(r"attempt[_-]?(?P<attempt>\d+)")


def origin_of(name: str) -> Origin:
    """Rank, local rank, host, stream and attempt as far as a path such as `node3/attempt_0/2/stderr.log` or `rank_12.log` says.

    Layouts: torch.distributed.elastic log directories (`<run>/attempt_<n>/<local rank>/stderr.log`), DeepSpeed
    `<prefix>_rank<R>.log`, and the habit of naming files or folders after ranks and nodes.
    """
    elastic = _ELASTIC.search(name)
    host = _HOST.search(name)
    rank = _last(_RANK, name)
    local = _last(_LOCAL, name)
    attempt = _ATTEMPT.search(name)
    return Origin(
        rank=int(rank["rank"]) if rank else None,
        local_rank=int(elastic["local_rank"]) if elastic else int(local["local_rank"]) if local else None,
        host=host["host"] if host else None,
        stream=elastic["stream"].replace("error", "stderr") if elastic and elastic["stream"] != "error" else None,
        attempt=int(attempt["attempt"]) if attempt else 0,
    )


def _last(pattern: re.Pattern[str], name: str) -> re.Match[str] | None:
    found = list(pattern.finditer(name))
    return found[-1] if found else None
