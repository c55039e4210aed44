"""What is said of a signature agrees with its clauses."""

from __future__ import annotations

from pathlib import Path

from triage import pipeline


def test_a_row_that_leaves_the_lines_to_another_signature_says_so(tmp_path: Path) -> None:
    """The row of the table of codes holds, and names the signature that took its lines."""
    log = tmp_path / "dmesg.log"
    log.write_text(
        "Nov 21 10:00:00 node3 kernel: [ 12.3] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.\n"
    )
    explained = pipeline.explain([str(log)], "gpu.xid-79", pipeline.Options())
    assert explained.matched
    assert explained.outcome.startswith("matched, but left to gpu.fallen-off-bus")
    other = pipeline.explain([str(log)], "gpu.xid-48", pipeline.Options())
    assert not other.matched
    assert other.outcome.startswith("not matched")
