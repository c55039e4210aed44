"""The command `triage`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: of this process) and return its exit status; raises nothing."""
    from triage.cli import failure

    try:
        from triage.cli.plain_arguments import parse_ingest

        arguments = sys.argv[1:] if argv is None else list(argv)
        plain = parse_ingest(arguments)
        if plain is not None:
            from triage.cli.ingest_job import ingest_job

            return ingest_job(**plain)
        from triage.cli import app

        return app.run(arguments)
    except BaseException as error:
        return failure.report(error)
