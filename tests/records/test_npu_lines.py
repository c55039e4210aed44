"""Tests for triage.records.npu_lines."""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.records.npu_lines import read_npu_process


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[HCCL_TRACE]SetupAgent rankNum[8], rank[3], rootInfo identifier[g], server[10.0.0.1%eth0], logicDevId[1], "
            "phydevId[5], deviceIp[192.168.1.5]",
            ("g", 3, 8, "10.0.0.1", 5, False),
        ),
        (
            "HcclCommInitRootInfo success,take time [9]us, rankNum[4], rank[2],  rootInfo identifier[g], "
            "server[10.0.0.1], device[2]",
            ("g", 2, 4, "10.0.0.1", 2, False),
        ),
        (
            "hcclCommInitInfo:commId[c], rank[1], totalRanks[4], serverId[10.0.0.1], deviceType[4],logicDevId[1], "
            "identifier[g]",
            ("g", 1, 4, "10.0.0.1", 1, False),
        ),
        (
            "[LocalRank Key Info]userRank[6] hostIp[10.0.0.1] devicePhyId[7] server[10.0.0.1]",
            ("", -1, -1, "10.0.0.1", 7, False),
        ),
        (
            "Task run failed, groupRank information is group:[g], user define information[], rankSize[4], rankId[2].",
            ("g", 2, 4, "", -1, True),
        ),
        (
            "createLink para:rank[2]-localUserrank[2]-localIpAddr[10.0.0.1/6], remoteRank[1]-remoteUserrank[1]-"
            "remoteIpAddr[10.0.0.2/7]",
            ("", -1, -1, "10.0.0.1", 6, True),
        ),
    ],
)
def test_what_a_line_says_of_its_process(text: str, expected: tuple[object, ...]) -> None:
    """Number in the communicator, its size, server and physical device; not those of the other end."""
    one = read_npu_process("plog-7_1.log", Origin(pid=7), text)
    assert one is not None
    assert (one.group, one.number, one.size, one.address, one.device, one.is_error) == expected


def test_a_line_without_server_and_size_says_nothing() -> None:
    """A rank alone may be that in any communicator."""
    assert read_npu_process("plog-7_1.log", Origin(pid=7), "HcclCommInitRootInfo failed, rank[3]") is None
