"""triage.evidence.described_pods"""

from __future__ import annotations

import pytest

from tests.records.factories import text_of
from triage.evidence.described_pods import place_pods
from triage.model import Evidence, Origin

HEAD = "Name:         train-1\nNode:         gpu-7/10.0.0.7\nContainers:\n  trainer:\n"


@pytest.mark.parametrize(
    ("before", "text", "host"),
    [
        (HEAD, "      Reason:       OOMKilled", "gpu-7"),
        (HEAD, "ValueError: boom", "login1"),
        ("step 3\n", "      Reason:       OOMKilled", "login1"),
        (f"{HEAD}step 3\n", "      Reason:       OOMKilled", "login1"),
    ],
)
def test_a_status_is_on_the_node_of_its_pod(before: str, text: str, host: str) -> None:
    """Whoever printed the description, and on whatever host."""
    data = (before + text).encode()
    fact = Evidence("scheduler", "kubernetes", text, Origin(host="login1"), "events.txt", len(before))
    (placed,) = place_pods([fact], text_of(data), lambda at, length: data[at : at + length], len(data))
    assert placed.origin.host == host
    assert placed.fields.get("pod") == ("train-1" if host == "gpu-7" else None)
