"""Learn ranks from what programs print about themselves.

Communicators of NCCL and HCCL, torchelastic's list of workers, environment variables, and the world size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from triage.base.digit_masks import ask_masked_text
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.model.evidence import Origin
from triage.ranks.identity import CommunicatorMember, JobMap
from triage.ranks.layouts import Layout
from triage.ranks.process_numbers import numbers_itself, read_process_numbers
from triage.records.blocks import build_blocks
from triage.records.text import Text

# The literals of such lines. All but the last stand in single lines of one process.
TRIGGERS = (" - Init START", " - Init COMPLETE", "Entry-HcclCommInitRootInfo", "Rendezvous complete for")
_RENDEZVOUS = TRIGGERS[-1]
_NCCL_INIT = lazy_re(
    r"comm 0x\w+ rank (\d{1,18}) nranks (\d{1,18}) cudaDev \d+.*?busId ([0-9a-fA-F]+)"
    r"(?:.*?commId (0x\w+))?(?:.*?Init (COMPLETE))?"
)
_HCCL_INIT = lazy_re(r"Entry-HcclCommInitRootInfo\w*:ranks\[(\d{1,18})\], rank\[(\d{1,18})\]")
_WORLD_OF_WORKERS = lazy_re(r"\bglobal_world_sizes=\[(\d{1,7})\b")
_WORKERS = lazy_re(
    r"Rendezvous complete.*?restart_count=(\d{1,18}).*?\blocal_ranks=\[([\d, ]+)\]\s.*?\bglobal_ranks=\[([\d, ]+)\]",
    re.S,
)
# Launchers and scripts print the environment of a process.
_ENVIRONMENT = masked_re(
    r"(?<!LOCAL_)(?:\bRANK|SLURM_PROCID)[=:] ?(\d{1,18})\b.{0,80}?(?:\bLOCAL_RANK|SLURM_LOCALID)[=:] ?(\d{1,18})\b"
)
# Not the last name of a formula: `micro_batch * world_size 128 != 4 * 6`.
WORLD_SIZE = masked_re(
    r"(?i)(?<![*/+%] )\b(?:world[_ ]?size[ =:]+|world[=:] ?)(\d{1,7})\b(?! ?(?:!=|==|[*%]))"
    r"|\bnranks[ =](\d{1,7})\b|\b\d+/(\d{1,18}) clients joined"
)
# `rank 3 of 12`, behind no word that makes it the rank in a group or on a node.
RANK_OF_WORLD = masked_re(
    r"(?im)(?:^|[:|,\]] ?|\b(?:process|worker|from|is|i am|global|world|as|info|initiali[sz]ed|started|mpi) )"
    r"rank[ :=]{0,2}(\d{1,6})(?: ?/ ?| out of | of )(\d{1,7})\b(?! ?%)"
)
# The service of JAX and TensorFlow numbers the tasks of a job from 0 on, and says when each is there.
_CONNECTED_TASK = lazy_re(r"/job:\w{1,40}/replica:0/task:(\d{1,6}) has connected to coordination service")
_HINTS = (
    "has connected to coordination",
    "world",
    "nranks",
    "rank ",
    "clients joined",
    "rank=",
    "rank:",
    "slurm_procid",
)
_HEAD = 1 << 13
_MOST_LINES = 1 << 14


def learn_from_line(job: JobMap, source: str, origin: Origin, text: str) -> str | None:
    """Learn from a line or block with one of TRIGGERS.

    Returns the name of the event if all hosts see it at the same moment, else None.
    """
    process = Origin(host=origin.host, pid=origin.pid, local_rank=origin.local_rank)
    if (nccl := _NCCL_INIT.search(text)) is not None:
        job.learn_member(CommunicatorMember(source, process, int(nccl[1]), int(nccl[2]), nccl[3]))
        return f"communicator {nccl[4]}" if nccl[4] and nccl[5] else None
    if (hccl := _HCCL_INIT.search(text)) is not None:
        job.learn_member(CommunicatorMember(source, process, int(hccl[2]), int(hccl[1])))
    elif (workers := _WORKERS.search(text)) is not None:
        for local, rank in zip(workers[2].split(","), workers[3].split(","), strict=False):
            job.learn(source, Origin(rank=int(rank), local_rank=int(local), host=origin.host))
        if (world := _WORLD_OF_WORKERS.search(text)) is not None:
            job.sizes.add(int(world[1]))
        return f"rendezvous {workers[1]}"
    return None


def learn_from_text(job: JobMap, source: str, text: str) -> None:
    """Learn the world size, and the ranks of processes that print their environment or number themselves."""
    tasks = {int(number) for number in _CONNECTED_TASK.findall(text)}
    if len(tasks) > 1 and tasks == set(range(len(tasks))):
        job.sizes.add(len(tasks))
    for line in filter(may_identify, text.split("\n")):
        job.process_numbers[source].update(read_process_numbers(line))
        for match in WORLD_SIZE.finditer(line):
            job.sizes.add(int(match[1] or match[2] or match[3]))
        for match in RANK_OF_WORLD.finditer(line):
            if int(match[1]) < int(match[2]):
                job.sizes.add(int(match[2]))
        for match in _ENVIRONMENT.finditer(line):
            job.learn(source, Origin(rank=int(match[1]), local_rank=int(match[2])))


@ask_masked_text
def may_identify(line: str) -> bool:
    """Quick check whether `learn_from_text` may learn from a line: the patterns are slow."""
    lower = line.lower()
    return any(hint in lower for hint in _HINTS) or numbers_itself(line)


def learn_from_head(job: JobMap, source: str, data: bytes, layout: Layout) -> None:
    """Learn everything that the first bytes of a source state."""
    learn_from_text(job, source, data[:_HEAD].decode("utf-8", "replace"))
    text = Text(source, lambda offset, length: data[offset : offset + length], len(data), 1970, layout)
    for start, end, trigger in _trigger_lines(data):
        if trigger == _RENDEZVOUS:
            for block, _ in build_blocks(text, [(start, end, (trigger,), 0)]):
                learn_from_line(job, source, block.origin, "\n".join(block.lines))
        else:
            for line in text.lines_at(start, end):
                learn_from_line(job, source, line.parsed.origin, line.parsed.text)


def _trigger_lines(data: bytes) -> Iterator[tuple[int, int, str]]:
    for trigger in TRIGGERS:
        at = -1
        for _ in range(_MOST_LINES):
            at = data.find(trigger.encode(), at + 1)
            if at < 0:
                break
            end = data.find(b"\n", at)
            yield data.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(data), trigger
