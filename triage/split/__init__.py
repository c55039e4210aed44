"""Split mixed logs into one file per rank, byte for byte what each rank wrote. `router` decides who wrote a line."""

from __future__ import annotations

from triage.split.output_files import OutputFile
from triage.split.run import Options, Result, split

__all__ = ["Options", "OutputFile", "Result", "split"]
