"""What programs print of who they are: communicators of NCCL and HCCL, torchelastic's list of workers, environments,
the size of the world.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.blocks import build
from triage.ranks.identity import JobMap, Member
from triage.ranks.layouts import Layout
from triage.ranks.text import Text

# Lines that hold one of these say it. The first two and the third are one line each, of a process.
TRIGGERS = (" - Init START", " - Init COMPLETE", "Entry-HcclCommInitRootInfo", "Rendezvous complete for")
_AGENTS = TRIGGERS[-1]
_INIT = lazy_re(
    r"comm 0x\w+ rank (\d+) nranks (\d+) cudaDev \d+.*?busId ([0-9a-fA-F]+)(?:.*?commId (0x\w+))?(?:.*?Init (COMPLETE))?"
)
_HCCL = lazy_re(r"Entry-HcclCommInitRootInfo\w*:ranks\[(\d+)\], rank\[(\d+)\]")
_AGENT = lazy_re(
    r"Rendezvous complete.*?restart_count=(\d+).*?\blocal_ranks=\[([\d, ]+)\]\s.*?\bglobal_ranks=\[([\d, ]+)\]", re.S
)
# What launchers and scripts print of a process: its environment.
_STATED = lazy_re(r"(?<!LOCAL_)(?:\bRANK|SLURM_PROCID)[=:] ?(\d+)\b.{0,80}?(?:\bLOCAL_RANK|SLURM_LOCALID)[=:] ?(\d+)\b")
_WORLD = lazy_re(r"(?i)\bworld[_ ]?size[ =:]+(\d{1,7})\b|\bnranks[ =](\d{1,7})\b|\b\d+/(\d+) clients joined")
_QUICK = ("world", "nranks", "clients joined", "rank=", "rank:", "slurm_procid")
_HEAD = 1 << 13
_MOST = 1 << 14


def take(job: JobMap, source: str, origin: Origin, text: str) -> str | None:
    """Learn from a line or block with one of TRIGGERS. The name of the event, if it is one that all hosts see at the
    same moment.
    """
    process = Origin(host=origin.host, pid=origin.pid, local_rank=origin.local_rank)
    if (init := _INIT.search(text)) is not None:
        job.learn_member(Member(source, process, int(init[1]), int(init[2]), init[3]))
        return f"communicator {init[4]}" if init[4] and init[5] else None
    if (hccl := _HCCL.search(text)) is not None:
        job.learn_member(Member(source, process, int(hccl[2]), int(hccl[1])))
    elif (agent := _AGENT.search(text)) is not None:
        for local, rank in zip(agent[2].split(","), agent[3].split(","), strict=False):
            job.learn(source, Origin(rank=int(rank), local_rank=int(local), host=origin.host))
        return f"rendezvous {agent[1]}"
    return None


def take_text(job: JobMap, source: str, text: str) -> None:
    """Learn the size of the world, and the ranks of processes that print their environment."""
    # The patterns are slow on lines that say nothing of it.
    lines = [
        line
        for line, lower in zip(text.split("\n"), text.lower().split("\n"), strict=True)
        if any(word in lower for word in _QUICK)
    ]
    said = "\n".join(lines)
    for match in _WORLD.finditer(said):
        job.sizes.add(int(match[1] or match[2] or match[3]))
    for match in _STATED.finditer(said):
        job.learn(source, Origin(rank=int(match[1]), local_rank=int(match[2])))


def take_head(job: JobMap, source: str, data: bytes, layout: Layout) -> None:
    """Learn all that the first bytes of a source say."""
    take_text(job, source, data[:_HEAD].decode("utf-8", "replace"))
    text = Text(source, lambda offset, length: data[offset : offset + length], len(data), 1970, layout)
    for start, end, trigger in _found(data):
        if trigger == _AGENTS:
            for block, _ in build(text, [(start, end, (trigger,), 0)]):
                take(job, source, block.origin, "\n".join(block.lines))
        else:
            for line in text.at(start, end):
                take(job, source, line.parsed.origin, line.parsed.text)


def _found(data: bytes) -> Iterator[tuple[int, int, str]]:
    for trigger in TRIGGERS:
        at = -1
        for _ in range(_MOST):
            at = data.find(trigger.encode(), at + 1)
            if at < 0:
                break
            end = data.find(b"\n", at)
            yield data.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(data), trigger
