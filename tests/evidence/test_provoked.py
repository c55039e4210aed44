"""triage.evidence.provoked"""

from __future__ import annotations

import pytest

from tests.records.factories import text_of
from triage.evidence.provoked import PROVOKED, mark_provoked
from triage.model import Evidence, Origin

XID = "NVRM: Xid (PCI:0000:3b:00): 13, pid=4402, name=xidtest, Graphics Exception: ESR 0x504648=0x10e0001"
ANNOUNCED, PASSED = "stage fault-inject: expecting one Xid 13\n", "stage fault-inject: PASS (xid 13 seen)\n"
STEPS = "step 1\nstep 2\nstep 3\n"


@pytest.mark.parametrize(
    ("before", "behind", "is_provoked"),
    [
        (ANNOUNCED, PASSED, True),
        ("# error injection in CI\n", "reader: EIO seen as expected\n", True),
        ("--- FAIL-INJECT fixtures/xid.txt\n", "+++ parser returned Xid(13): ok\n", True),
        ("chaos: injecting an Xid failure on rank 3\n", "Traceback (most recent call last):\n", False),
        ("dependency injection of the loader\n", PASSED, False),
        ("step 1\n", PASSED, False),
        (ANNOUNCED + STEPS, PASSED, False),
        (ANNOUNCED, STEPS + PASSED, False),
    ],
)
def test_a_fault_is_provoked_when_it_is_announced_and_passed(before: str, behind: str, is_provoked: bool) -> None:
    """Both within three lines: an injected fault that ends a job is its cause."""
    data = f"{before}{XID}\n{behind}".encode()
    fact = Evidence("kernel", "kernel", XID, Origin(), "job.log", len(before))
    (marked,) = mark_provoked([fact], text_of(data), data)
    assert (PROVOKED in marked.fields) is is_provoked


def test_an_exception_is_not_provoked() -> None:
    """It left its program."""
    data = f"{ANNOUNCED}{XID}\n{PASSED}".encode()
    fact = Evidence("exception", "Python", XID, Origin(), "job.log", len(ANNOUNCED))
    assert mark_provoked([fact], text_of(data), data) == [fact]
