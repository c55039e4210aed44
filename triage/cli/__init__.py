"""The command `triage`."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: of this process) and return its exit status; raises nothing."""
    from triage.cli import failure

    try:
        from triage.cli import app

        return app.run(argv)
    except BaseException as error:
        return failure.report(error)
