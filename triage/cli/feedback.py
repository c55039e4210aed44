"""`triage feedback` and `triage retriage`: feedback on diagnoses, and new diagnoses of stored incidents."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer

from triage.base.errors import OptionError
from triage.cli import options, progress, streams

Incident = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="The incident; without it, list all feedback.", show_default=False)
]
JudgementArgument = Annotated[
    Literal["agree", "wrong"] | None,
    typer.Argument(metavar="[agree|wrong]", help="Is the diagnosis right?", show_default=False),
]
Because = Annotated[
    str, typer.Option("--because", "-b", metavar="TEXT", help="The reason; what was done.", show_default=False)
]
RightSignature = Annotated[
    str | None,
    typer.Option(
        "--signature",
        "-s",
        metavar="ID",
        help="The right signature.",
        autocompletion=options.complete_signature_ids,
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="WHEN", help="Only failures since: 7d, 2025-11-21.", show_default=False),
]
ChangedSignature = Annotated[
    str | None,
    typer.Option(
        "--signature",
        "-s",
        metavar="ID",
        help="Only incidents that this signature changes.",
        autocompletion=options.complete_signature_ids,
        show_default=False,
    ),
]


def feedback(
    id: Incident = None,  # noqa: A002
    verdict: JudgementArgument = None,
    because: Because = "",
    signature: RightSignature = None,
    by: options.By = None,
    format: options.PlainFormat = "text",  # noqa: A002
    store: options.StoreFile = None,
) -> None:
    """Mark a diagnosis as right or wrong, or list all feedback.

    Feedback stays with the incident for ever, is shown with similar failures, and is counted by `triage catalog rate
    --store`.

    \b
    Examples:
      triage feedback i-4f2a9c agree --because "cable of node17 replaced"
      triage feedback i-4f2a9c wrong -b "full disk" -s host.no-space
      triage feedback --format json
    """
    from triage.render import incidents

    streams.check_output(None)
    if (id is None) != (verdict is None):
        raise OptionError(
            "give both an incident and a verdict, or neither", hint="triage feedback ID agree|wrong --because TEXT"
        )
    with options.open_store(store) as opened:
        if id is None or verdict is None:
            rows = opened.feedback.list_feedback()
        elif verdict == "wrong" and not because:
            raise OptionError(
                "a wrong diagnosis needs a reason", hint='--because "what it really was, and how you know"'
            )
        else:
            actor = options.actor_name(by)
            rows = [opened.feedback.add(id, verdict, actor=actor, because=because, signature=signature)]
    streams.write_format(
        format,
        None,
        json=lambda: incidents.feedback_as_json(rows),
        text=lambda: incidents.feedback(rows, **streams.text_style(None, "auto", None)),
    )


def retriage(
    since: Since = None,
    signature: ChangedSignature = None,
    dry_run: options.DryRun = False,
    catalog: options.Catalogs = None,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
    quiet: options.Quiet = False,
    store: options.StoreFile = None,
) -> None:
    """Diagnose all stored incidents again with a changed catalog.

    Uses the stored lines, not the logs. The earlier diagnosis of an incident stays in its history. Changes are put into
    the outbox for everyone who was notified of the earlier diagnosis.

    \b
    Examples:
      triage retriage --dry-run --catalog my-signatures/
      triage retriage --since 30d --signature storage.mount-gone
    """
    from triage.catalog.load import load
    from triage.render import incidents
    from triage.store.retriage import retriage as retriage_store

    streams.check_output(output)
    loaded = load(tuple(catalog or ()), strict=bool(catalog))
    start = options.parse_time(since, time.time()) if since is not None else None
    with options.open_store(store) as opened, progress.counter(quiet, "incident", every=100) as count:
        result = retriage_store(
            opened.connections,
            opened.incidents,
            loaded,
            since=start,
            signature=signature,
            dry_run=dry_run,
            progress=count,
        )
    streams.write_format(
        format,
        output,
        json=lambda: incidents.retriaged_as_json(result, dry_run),
        text=lambda: incidents.retriaged(result, dry_run, **streams.text_style(width, color, output)),
    )
