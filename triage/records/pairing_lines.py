"""Learn which process, local rank and node belong to a rank, from lines that name two of them.

`(ip=10.0.0.11, pid=2395) world_rank=1, local_rank=1` of Ray, `[pid 412] rank 2 ready`, `rank 3 … localRank 3` of NCCL,
`--local_rank=3` in a list of processes, `process 412 spawned with command …` of DeepSpeed, `--node_rank 1`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from triage.base.digit_masks import ask_lines, ask_masked, ask_masked_text
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import MaskedPattern, masked_re
from triage.model.evidence import Origin
from triage.ranks.identity import CommunicatorMember, JobMap
from triage.ranks.stated_ranks import numbers_members, read_stated_ranks, remove_peers
from triage.records import launcher_worlds
from triage.records.introductions import LONGEST, may_introduce_in_text, names_other_host, read_introduction
from triage.records.text import Text
from triage.records.tracebacks import HEADER

# The literals of such lines that can stand in the middle of a large file.
TRIGGERS = (
    ") world_rank=",
    "global_rank_mapping=",
    "--world_info",
    "WORLD INFO DICT: ",
    " spawned with command: [",
)
_HINTS = (
    *launcher_worlds.HINTS,
    b"group_world",
    b"SetupAgent",
    b"rank",
    b"Rank",
    b"RANK",
    b"nproc",
    b"num_local_procs",
    b"NNODES",
    b"nnodes",
    b"num_machines",
    b"SLURM_NODEID",
    b"LOCAL_WORLD_SIZE",
    b"ostname",
    b"HOSTNAME",
    b"NODENAME",
    b"MPI startup(): ",
    b" RUNNING AT ",
)
_JOINED = (
    b"pid",
    b"process",
    b"local",
    b"node",
    b"machine",
    b"nproc",
    b"num_local_procs",
    b"setupagent",
    b"comm 0x",
    b"world_info",
    b"group_rank",
    b"group_world",
    b"world info",
)
_PLACED = lazy_re(
    rb"(?i)host|startup\(\):|rank[ :=#]{0,2}\d{1,6}\b.{0,80}?(?: on | at |@| bound )|: (?:global )?rank \d"
)
_PLACES = (b"host", b"startup():", b" on ", b" at ", b"@", b" bound ", b": rank", b": global rank")
# The local rank in a launcher's prefix, and a rank behind it: `[default1]:… [rank 9] INFO`.
_TAGGED = lazy_re(rb"\[(?!(?i:rank))[A-Za-z_.-]+\d{1,3}\]:.{0,80}?(?i:rank)[ _=:\[]")
# The grammar whose pid is that of a worker, not that of a collector.
_WORKER_LAYER = "Ray and vLLM workers"
_OF_WORLD = masked_re(r"(?i)\bworld[_ ]?size\b|\brank[ :=]{0,2}\d{1,6} ?(?:of|/) ?\d")
# MindSpore: `This node 1 rank id: 1`
_OF_ITSELF = masked_re(r"(?i)\bthis (?:node|process|worker)\b")
_MOST = 64  # lines of a kind at the start, and as many at the end
_LONGEST = 2000
_PID = masked_re(
    r"(?i)\b(?:pid|process[_ ]id)[ :=]{1,3}(\d{2,7})\b(?! (?:has|uses) \d)"
    r"|\bprocess (\d{2,7})(?= (?:is|has|as|=|spawned)\b(?! \d))"
)
# The pid is that of another process than the rank, or may be.
_ABOUT_ANOTHER = masked_re(
    r"(?i)\b(?:kill|died|dies|dying|dead|exit|terminat|abort|signal|peer|remote|parent|child|helper|lost|crash|zombie|"
    r"stale|hold|held|using|used by|data ?loader|prefetch|wait|join|stop|clos|other)"
)
_LOCAL = masked_re(r"(?i)(?<![a-z])local[_ -]?rank['\"]?[\s:=\[]{1,3}['\"]?(\d{1,3})\b")
_NODE = masked_re(
    r"(?i)(?<![a-z])(?:(?:node|machine)[_-]?rank|group_rank|SLURM_NODEID)['\"]?[\s:=]{1,3}['\"]?(\d{1,4})\b"
)
_NODE_SIZE = masked_re(
    r"(?i)\b(?:nproc[_-]per[_-]node|num_local_procs|local_world_size|localRanks|SLURM_NTASKS_PER_NODE|ntasks-per-node)"
    r"['\"]?[\s:=]{1,3}['\"]?(\d{1,3})\b"
)
_NODES = masked_re(
    r"(?i)(?<![a-z_])(?:nnodes|num_nodes|num_machines|SLURM_NNODES|group_world_size)['\"]?[\s:=]{1,3}['\"]?"
    r"(\d{1,4})\b(?!:)"
)
# Looser than in a text: the line names a process or a local rank too.
_RANK = masked_re(r"(?i)(?<![a-z_-])(?:(?:global|world)[ _-])?rank(?:[_ ]?id)?['\"]?[\s:=#\[]{1,3}(\d{1,6})\b(?!\.\d)")
# Each communicator of HCCL numbers its own members.
_AGENT = masked_re(r"(?i)SetupAgent.{0,200}?\b(?:(?:user|my|self)_?)?rank(?:_?id)?[\[: =]{1,2}(\d{1,6})\b")
_AGENT_SIZE = masked_re(
    r"(?i)SetupAgent.{0,200}?\b(?:rank_?(?:size|num|len)|n?ranks|world_?size)[\[: =]{1,2}(\d{1,6})\b"
)
_HOST = masked_re(r"(?i)\b(?:host|hostname|node)[=:]\s?'?([a-z][\w-]*\d[\w.-]*)")
_LISTED = lazy_re(r"^\s*(?:[\w+-]+\s+)?(\d{2,7})\s.*?\s--local[_-]rank[= ](\d{1,3})\b")


@dataclass(frozen=True, slots=True)
class Pairing:
    """What one line joins: the parts of `origin`, and the node of its writer. -1: not said.

    `members`: the rank is that in a communicator of so many. `is_other`: another process lists it, as `ps` does.
    `writer_host`: the host in the prefix of the line.
    """

    origin: Origin
    node: int = -1
    node_size: int = -1
    nodes: int = -1
    members: int = -1
    is_other: bool = False
    writer_host: str = ""


def find_pairings(text: Text, head: bytes, tail: bytes, tail_offset: int) -> tuple[Pairing, ...]:
    """Return what the first and last lines of a source join, each once."""
    pairings: dict[Pairing, None] = {}
    for data, offset in ((head[: max(0, tail_offset)], 0), (tail, tail_offset)):
        for start, end in _hinted_lines(data):
            for line in text.parse_line(data[start:end], offset + start):
                parsed = line.parsed
                is_of_worker = _WORKER_LAYER in parsed.layers
                pairings.update(dict.fromkeys(read_pairings(parsed.origin, parsed.text, is_of_worker=is_of_worker)))
    return tuple(pairings)


def read_pairings(origin: Origin, text: str, *, is_of_worker: bool = False) -> Iterator[Pairing]:
    """Yield what a line joins whose prefix gave `origin`. `is_of_worker`: the prefix has the pid of a worker."""
    if (world := launcher_worlds.read_launcher_world(text)) is not None:
        yield from map(Pairing, world)
        if "--world_info" not in text:  # a command has more arguments
            return
    text = text[:_LONGEST]
    if HEADER in text:  # a rank behind it is that of a traceback that the writer quotes
        return
    if origin.pid is None and origin.local_rank is None and not _names_part(text):
        return
    listed = _LISTED.match(text)
    pids = {int(match[1] or match[2]) for match in _PID.finditer(text)}
    pids |= {int(listed[1])} if listed else set()
    locals_ = {int(match[1]) for match in _LOCAL.finditer(text)}
    locals_ |= {int(listed[2])} if listed else set()
    agent, size = _AGENT.search(text), _AGENT_SIZE.search(text)
    if agent is not None and size is not None:
        yield Pairing(Origin(rank=int(agent[1]), pid=origin.pid, host=origin.host), members=int(size[1]))
        return
    introduced = read_introduction(origin, text)
    if introduced.rank is not None or introduced.pid is not None:
        yield Pairing(Origin(rank=introduced.rank, pid=introduced.pid, host=introduced.host or None))
        return
    is_of_itself = _OF_ITSELF.search(text) is not None
    rank, is_own = _rank_of(origin, text, is_joined=bool(pids or locals_ or introduced.host) or is_of_itself)
    # A tag names the writer; other words may be about a process that another one names. So may the pid of a prefix,
    # unless it is a worker's, who says its local rank or the number of ranks too.
    introduces_itself = is_of_worker and (bool(locals_) or _OF_WORLD.search(text) is not None)
    is_own = is_own or ((introduces_itself or is_of_itself) and not _ABOUT_ANOTHER.search(text))
    pid = pids.pop() if len(pids) == 1 else origin.pid if not pids and is_own else None
    pid = pid if pid == origin.pid or not _ABOUT_ANOTHER.search(text) else None
    local = locals_.pop() if len(locals_) == 1 else origin.local_rank if not locals_ else None
    named = _HOST.search(text) if not names_other_host(text) else None
    host = introduced.host or (named[1] if named else None)
    joined = Origin(rank=rank, local_rank=local, pid=pid, host=origin.host or host)
    has_two = sum(part is not None for part in (rank, local, pid, introduced.host or None)) > 1
    node, node_size, nodes = (_only_number(pattern, text) for pattern in (_NODE, _NODE_SIZE, _NODES))
    if has_two or (node, node_size, nodes) != (-1, -1, -1):
        yield Pairing(
            joined if has_two else Origin(host=joined.host),
            node,
            node_size,
            nodes,
            is_other=rank is None,
            writer_host=origin.host or "",
        )


@ask_masked_text
def _names_part(text: str) -> bool:
    """Quick check: does a line name a process, a local rank, a node or a host, besides what its prefix says?"""
    patterns = (_PID, _LOCAL, _LISTED, _AGENT, _NODE, _NODE_SIZE, _NODES)
    return may_introduce_in_text(text[:LONGEST]) or any(pattern.search(text) for pattern in patterns)


def learn_pairing(job: JobMap, source: str, pairing: Pairing) -> None:
    """Add to the map what a line joins."""
    origin = pairing.origin
    if pairing.members > 0 and origin.rank is not None:
        process = Origin(host=origin.host, pid=origin.pid)
        job.learn_member(CommunicatorMember(source, process, origin.rank, pairing.members))
        return
    if pairing.is_other and origin.local_rank is not None:
        job.learn_process(source, origin)
    elif origin != Origin(host=origin.host):
        job.learn(source, origin)
        if origin.local_rank is not None and not pairing.writer_host:
            job.learn(source, dataclasses.replace(origin, host=None))  # other lines do not say their host
        job.learn_writer(source, pairing.writer_host, origin.pid, origin.rank)
    job.learn_node(source, pairing.origin.host, pairing.node, pairing.node_size, pairing.nodes)


def _rank_of(origin: Origin, text: str, *, is_joined: bool) -> tuple[int | None, bool]:
    """Return the rank of a line, and whether its own tag says so. `is_joined`: the line has a pid or a local rank."""
    if origin.rank is not None:
        return origin.rank, False
    stated = read_stated_ranks(text)
    if stated.is_tag and stated.part == "rank" and len(stated.numbers) == 1:
        return stated.numbers[0], True
    return next(iter(_ranks_in(text)), None) if is_joined and not numbers_members(text) else None, False


def _ranks_in(text: str) -> set[int]:
    """Return the rank in a line that names a process or a local rank too; nothing if it names two."""
    ranks = {int(match[1]) for match in _RANK.finditer(_LOCAL.sub(" ", remove_peers(text)))}
    return ranks if len(ranks) == 1 else set()


def _only_number(pattern: MaskedPattern, text: str) -> int:
    numbers = {int(match[1]) for match in pattern.finditer(text)}
    return numbers.pop() if len(numbers) == 1 else -1


@ask_masked
def _joins(line: bytes) -> str:
    """Return what a line may join with a rank: a `process` or its number on a node, or a `place`; "" for neither."""
    if not any(hint in line for hint in _HINTS):
        return ""
    lower = line.lower()
    if any(part in lower for part in _JOINED):
        return "process"
    if b"]:" in line and _TAGGED.search(line):
        return "place"
    return "place" if any(part in lower for part in _PLACES) and _PLACED.search(line) else ""


def _hinted_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of lines that may join two things: the first and the last ones with a hint."""
    lines: dict[str, list[tuple[int, int]]] = {"process": [], "place": []}
    for start, end, kind in ask_lines(_joins, data):
        lines[kind].append((start, end))
    chosen = [_first_and_last(lines[kind]) for kind in ("process", "place")]
    yield from sorted(itertools.chain(*chosen))


def _first_and_last(lines: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return lines if len(lines) <= 2 * _MOST else [*lines[:_MOST], *lines[-_MOST:]]
