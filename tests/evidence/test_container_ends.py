"""triage.evidence.container_ends"""

from __future__ import annotations

import pytest

from triage.evidence.container_ends import with_end
from triage.evidence.described_pods import ENDED_LATER
from triage.model import Evidence, Origin

DESCRIBED = """Name:             train-3
Node:             gpu-17/10.0.3.17
Containers:
  train:
    State:          Terminated
      Reason:       Error
      Exit Code:    {code}
      Started:      Sat, 21 Nov 2026 03:00:00 +0000
      Finished:     Sat, 21 Nov 2026 {train} +0000
  proxy:
    State:          Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Sat, 21 Nov 2026 03:00:00 +0000
      Finished:     Sat, 21 Nov 2026 {proxy} +0000
"""
YAML = """apiVersion: v1
kind: Pod
status:
  containerStatuses:
  - name: proxy
    state:
      terminated:
        exitCode: 137
        finishedAt: "2026-11-21T{proxy}Z"
        reason: OOMKilled
  - name: train
    state:
      terminated:
        exitCode: {code}
        finishedAt: "2026-11-21T{train}Z"
        reason: Error
"""
JSON = """{{
    "kind": "Pod",
    "status": {{"containerStatuses": [{{
        "state": {{"terminated": {{
            "exitCode": 137,
            "finishedAt": "2026-11-21T{proxy}Z",
            "reason": "OOMKilled"
        }}}}}}, {{
        "state": {{"terminated": {{
            "exitCode": {code},
            "finishedAt": "2026-11-21T{train}Z",
            "reason": "Error"
        }}}}}}]}}
}}
"""


def killed(text: str) -> Evidence:
    """Return the fact of the line with `OOMKilled`, as it is after its container was looked at."""
    data = text.encode()
    offset = data.rfind(b"\n", 0, data.index(b"OOMKilled")) + 1
    end = data.index(b"\n", offset)
    line = data[offset:end].decode()
    fact = Evidence("message", "app", line, Origin(), "pod.txt", offset, end, {}, line)
    return with_end(fact, lambda start, length: data[start : start + length], len(data))


@pytest.mark.parametrize("form", [DESCRIBED, YAML, JSON])
@pytest.mark.parametrize(
    ("train", "code", "is_later"),
    [
        ("03:07:45", 1, True),
        ("03:08:14", 1, True),
        ("03:08:15", 1, False),
        ("03:09:00", 1, False),
        ("03:07:45", 0, False),
    ],
)
def test_a_status_has_the_time_of_its_container(form: str, train: str, code: int, is_later: bool) -> None:
    """It is marked where another container of the pod failed a second or more before."""
    fact = killed(form.format(train=train, code=code, proxy="03:08:15"))
    assert fact.origin.time == 1795230495.0
    assert (ENDED_LATER in fact.fields) == is_later


def test_other_pods_and_statuses_without_a_time() -> None:
    """The containers of another pod do not count, and what has no time stays as it is."""
    other = DESCRIBED.format(train="03:00:01", code=1, proxy="03:00:02").replace("OOMKilled", "Error")
    own = DESCRIBED.format(train="03:09:00", code=1, proxy="03:08:15")
    assert ENDED_LATER not in killed(other + own).fields
    untimed = killed("Name:   train-3\n    Last State:  Terminated\n      Reason:    OOMKilled\n      Exit Code: 137\n")
    assert (untimed.origin.time, untimed.fields) == (None, {})


def test_a_time_that_is_none_is_passed_over() -> None:
    """A damaged description is read as far as it goes."""
    text = DESCRIBED.format(train="03:07:45", code=1, proxy="03:08:15").replace(
        "21 Nov 2026 03:08:15", "99 Nov 2026 xx"
    )
    assert killed(text).origin.time is None
