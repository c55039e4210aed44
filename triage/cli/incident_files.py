"""`triage bundle` and `triage delete`: take one incident out of the store, as an archive or for good."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.base.errors import OptionError
from triage.cli import options, streams

Incident = Annotated[str, typer.Argument(metavar="ID", help="The incident.", show_default=False)]
Archive = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The archive. Default: triage-ID.zip here.", show_default=False
    ),
]
Reason = Annotated[
    str, typer.Option("--because", "-b", metavar="TEXT", help="Who asked for it, and why.", show_default=False)
]


def bundle(id: Incident, output: Archive = None, store: options.StoreFile = None) -> None:  # noqa: A002
    """Write one incident as a zip archive: its report, the quoted lines, feedback and documents.

    \b
    Examples:
      triage bundle i-4f2a9c
      triage bundle i-4f2a9c -o ticket-17.zip
    """
    from triage.render.bundle import make_bundle

    streams.check_output(output)
    with options.open_store(store) as opened:
        stored = opened.incidents.get(id)
        archive = make_bundle(stored, opened.service_data.list_documents(opened.incidents.find_number(id)))
    path = output or Path(f"triage-{stored.incident.id}.zip")
    try:
        path.write_bytes(archive)
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror}", hint="give another file with -o") from None
    streams.write_output(f"{path}\n")


def delete(
    id: Incident,  # noqa: A002
    because: Reason = "",
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Delete one incident for good. The audit log says who, when, why and which id; nothing of the content stays.

    \b
    Example:
      triage delete i-4f2a9c --because "the owner asked for it, ticket 17"
    """
    from triage.store.deletion import delete_incident

    with options.open_store(store) as opened:
        deleted = delete_incident(
            opened.connections, opened.incidents, id, actor=options.actor_name(by), because=because
        )
    streams.write_output(f"{deleted.id} deleted\n")
