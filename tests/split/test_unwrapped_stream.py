"""triage.split.unwrapped_stream"""

from __future__ import annotations

import pytest

from triage.split.unwrapped_stream import _unwrap_journal


@pytest.mark.parametrize(
    "line",
    [
        b'{"MESSAGE": ' + b"[" * 100_000,
        b'{"MESSAGE": [300]}',
        b'{"MESSAGE": ' + b"9" * 5000 + b"}",
        b"[]",
        b"{}",
        b'{"MESSAGE": null}',
    ],
)
def test_a_record_that_cannot_be_read_stays_as_it_is(line: bytes) -> None:
    """Records of the journal that nest without end, or are of other types, lose nothing."""
    assert _unwrap_journal(line) == line + b"\n"
