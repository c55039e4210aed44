"""`triage compare`: a stored failed job beside a healthy one."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.base.errors import NotFoundError
from triage.cli import options, streams

Failed = Annotated[str, typer.Argument(metavar="ID", help="The incident of the failed job.", show_default=False)]
Healthy = Annotated[
    str | None,
    typer.Argument(
        metavar="HEALTHY",
        help="The incident of a healthy job. Default: the last one of the same model, project or user.",
        show_default=False,
    ),
]


def compare(
    failed: Failed,
    healthy: Healthy = None,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """Compare a stored failed job with a healthy one: settings, versions, facts, size, pace, losses.

    Healthy jobs are those that were ingested with the verdict clean. A name that only one of the jobs states is listed,
    but is no difference.

    \b
    Examples:
      triage compare i-4f2a9c
      triage compare i-4f2a9c i-77b01d
    """
    from triage.render import job_comparison
    from triage.store.healthy_jobs import compare_stored

    streams.check_output(output)
    with options.open_store(store) as opened:
        pair = compare_stored(opened, failed, healthy)
    if pair.healthy is None or pair.comparison is None:
        raise NotFoundError(
            f"no healthy job with the model, project, user or name of {pair.failed.id} is stored",
            hint="ingest one that ended well (`triage ingest DIR --label project=…`), or name one: "
            f"triage compare {pair.failed.id} ID",
        )
    one, other, comparison = pair.failed, pair.healthy, pair.comparison
    streams.write_format(
        format,
        output,
        json=lambda: job_comparison.as_json(one, other, pair.common_facts, comparison),
        text=lambda: job_comparison.as_text(one, other, comparison, **streams.text_style(width, color, output)),
    )
