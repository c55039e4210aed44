"""`triage fetch`: get the logs of a job from log stores, Kubernetes, Slurm or W&B."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.base.errors import InputError, OptionError
from triage.cli import options, values

Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="Where the logs are.", show_default=False)]
Directory = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="The directory to write to.", show_default=False)
]
Since = Annotated[str, typer.Option("--since", metavar="TIME", help="Age or time of the first lines.")]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Age or time of the last lines.", show_default=False)
]
Limit = Annotated[str, typer.Option("--limit", metavar="BYTES", help="Most bytes to fetch, with K, M or G.")]


def fetch(address: Address, output: Directory, since: Since = "1d", until: Until = None, limit: Limit = "1G") -> None:
    """Get the logs of a job from a log store, Kubernetes, Slurm or W&B into files.

    Each stream, container or output is a file, which all other commands read. Passwords and tokens come from the
    environment, never from the address.

    \b
    Examples:
      triage fetch 'loki://loki.example/?query={job="train"}' -o logs/
      triage fetch 'elasticsearch://es.example:9200/logs-*?q=job:42' -o logs/
      triage fetch kubectl://ml/job/train-42 -o logs/
      triage fetch slurm://1234567 -o logs/
      triage fetch https://wandb.ai/ENTITY/PROJECT/runs/RUN -o logs/
      triage ingest logs/

    Exit status: 0 something was fetched; 2 unusable address or options, or nothing there.
    """
    import time

    from triage.cli.streams import write_stderr
    from triage.fetch import SOURCES, find_source, save
    from triage.fetch.interface import parse_query
    from triage.render.phrases import format_bytes, format_count

    now, most = time.time(), values.parse_size(limit, "--limit")
    span = options.parse_time(since, now), options.parse_time(until, now) if until else now
    query = parse_query(address, *span)
    source = find_source(query.scheme)
    if source is None:
        schemes = ", ".join(f"{scheme}://" for scheme, _ in SOURCES)
        raise OptionError(f"{query.scheme or address} is no source of logs", hint=f"use one of {schemes}")
    fetched = save(source(query), output, most)
    for problem in fetched.problems:
        write_stderr(f"not fetched: {problem}\n")
    if not fetched.size:
        raise InputError(
            f"{query.scheme}://{query.host} has no such lines", hint="check the query, and the span with --since"
        )
    cut = f", cut at --limit {limit}" if fetched.is_cut else ""
    write_stderr(f"{output}: {format_count(len(fetched.names), 'file')}, {format_bytes(fetched.size)}{cut}\n")
    write_stderr(f"  try: triage ingest {output}\n")
