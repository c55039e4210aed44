"""The command `triage`."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: the process's own) and give its exit status; no exception leaves it."""
    from triage.cli import failure

    try:
        from triage.cli import app

        return app.run(argv)
    except BaseException as error:
        return failure.report(error)
