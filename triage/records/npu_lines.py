"""Read what HCCL says of its own process: number in a communicator, server and device.

Forms of all releases since CANN 6: `SetupAgent rankNum[8], rank[3], … server[…], logicDevId[3], phydevId[3]`,
`HcclCommInitRootInfo success, … rankNum[8], rank[3], … device[3]`, `[LocalRank Key Info]userRank[3] hostIp[…]
devicePhyId[3]`, `hcclCommInitInfo:commId[…], rank[3], totalRanks[8]`, and errors: the group of a failed task, the own
end of a link.
"""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.npu_processes import NpuProcess

# The literals of lines at the start, which may stand behind hundreds of settings.
TRIGGERS = (
    "SetupAgent rankNum[",
    "SetupGroupMember rankNum[",
    "HcclCommInitRootInfo success",
    "totalRanks[",
    "]userRank[",
)
FAILED = "HcclCommInitRootInfo failed"
HINTS = (*TRIGGERS, FAILED, "groupRank information", "localUserrank[", "localInfo{server[", "]local rank [")
_COUNT = lazy_re(r"\b(?:rankNum|totalRanks)\[(\d{1,7})\]")
_NUMBER = lazy_re(r"(?<![\w.])rank\[(\d{1,7})\]")
_GROUP = lazy_re(r"\bidentifier\[([^\]\n]{1,300})\]")
_SERVER = lazy_re(r"\b(?:server|serverId|hostIp)\[([\w.:-]{1,64})(?:%[^\]\n]{0,40})?\]")
_DEVICES = tuple(lazy_re(rf"\b{name}\[(\d{{1,4}})\]") for name in ("phydevId", "devicePhyId", "logicDevId", "device"))
_OWN_END = lazy_re(
    r"-localIpAddr\[([^/\]\n]{1,64})/(\d{1,4})\]|\]local rank ?\[([^/\]\n]{1,64})/(\d{1,4})\]"
    r"|localInfo\{server\[([^\]\n]{1,64})\],deviceId\[(\d{1,4})\]"
)
_FAILED = lazy_re(
    r"groupRank information is group:\[([^\]\n]{1,300})\][^\n]{0,200}?rankSize\[(\d{1,7})\], ?rankId\[(\d{1,7})\]"
)
_LONGEST_TEXT = 2000


def read_npu_process(source: str, origin: Origin, text: str) -> NpuProcess | None:
    """Return what a line with one of HINTS says of its writer; None: nothing."""
    text = text[:_LONGEST_TEXT]
    writer = Origin(host=origin.host, pid=origin.pid)
    if (failed := _FAILED.search(text)) is not None:
        return NpuProcess(source, writer, failed[1], int(failed[3]), int(failed[2]), is_error=True)
    if (own := _OWN_END.search(text)) is not None:
        address, device = (part for part in own.groups() if part is not None)
        return NpuProcess(source, writer, address=address, device=int(device), is_error=True)
    count, number, group, server = (pattern.search(text) for pattern in (_COUNT, _NUMBER, _GROUP, _SERVER))
    device = next((int(match[1]) for pattern in _DEVICES if (match := pattern.search(text))), -1)
    if count is None and server is None:
        return None
    return NpuProcess(
        source,
        writer,
        group[1] if group else "",
        int(number[1]) if number and count else -1,
        int(count[1]) if count else -1,
        server[1] if server else "",
        device,
    )
