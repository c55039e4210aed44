"""`python -m triage` does what the command `triage` does."""

from __future__ import annotations

import sys

from triage.cli import main

if __name__ == "__main__":
    sys.exit(main())
