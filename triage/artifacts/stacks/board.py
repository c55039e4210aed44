"""All ranks side by side: grouped by stack, the usual group and those that stand elsewhere, and what follows from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from triage.artifacts.stacks.model import Board, Conclusion, Group, Member
from triage.stacks.live.kernel import TELLING
from triage.stacks.live.model import KERNEL_TOOLS, PYTHON_TOOLS, Process, State, phrase
from triage.stacks.live.states import HELPERS, STUCK, WAITING, joined, key_of, state_of

STARTUP_S = 120
"""As long as that after it began, a process may import modules; how long it really takes depends on the file system."""
Told = tuple[Process, State, tuple[str, ...]]
"""A dump, what it says, and its key."""


def board(processes: Sequence[Process]) -> Board:
    """What the dumps say together."""
    return assemble([(process, state_of(process), key_of(process)) for process in processes])


def assemble(dumps: Sequence[Told]) -> Board:
    """Groups and conclusions. Several dumps of one process are one member; if they differ, it moved meanwhile."""
    by_label: dict[str, list[Told]] = defaultdict(list)
    # Sorting is stable: dumps of one file stay in the order in which they stand there.
    for told in sorted(_with_ranks(dumps), key=lambda each: (each[0].source, each[0].pid or 0)):
        by_label[label_of(told[0])].append(told)
    members = [_member(label, each) for label, each in by_label.items()]
    helpers = [member for member in members if member.state.kind in HELPERS and member.rank is None]
    ranks = sorted((member for member in members if member not in helpers), key=_order)
    notes = [
        f"{member.label} moved between two dumps, so it is slow rather than stuck" for member in ranks if member.moved
    ]
    young = [member for member in ranks if _starts(member)]
    if young:
        known = [member.rank for member in young if member.rank is not None]
        who = say(known) if known else f"{len(young)} processes" if len(young) > 1 else young[0].label
        notes.append(
            f"the job was starting when this was taken: {who} still imported modules, so nobody is said to keep others waiting"
        )
    found = conclusions(ranks) if not young else []
    return Board(tuple(_groups(ranks)), tuple(sorted(helpers, key=_order)), tuple(found), tuple(notes))


def _starts(member: Member) -> bool:
    """A young process that imports is on its way; an old one is stuck in an import."""
    return member.state.kind == "import" and member.process.age is not None and member.process.age < STARTUP_S


def _with_ranks(dumps: Sequence[Told]) -> list[Told]:
    """A dump that does not know its rank has that of another dump of the same process."""
    known: dict[tuple[str | None, int], set[int]] = defaultdict(set)
    for process, _, _ in dumps:
        if process.rank is not None and process.pid is not None:
            known[process.host, process.pid].add(process.rank)
    out = []
    for process, state, key in dumps:
        ranks = known.get((process.host, process.pid), set()) if process.pid is not None else set()
        if process.rank is None and len(ranks) == 1 and state.kind not in HELPERS:
            process = replace(process, rank=next(iter(ranks)))
        out.append((process, state, key))
    return out


def label_of(process: Process) -> str:
    """`rank 3`, or where no rank is known `pid 123` with its host."""
    if process.rank is not None:
        return f"rank {process.rank}"
    where = f" on {process.host}" if process.host else ""
    return f"pid {process.pid}{where}" if process.pid is not None else process.source


_UNTOLD = ("idle", "running", "unknown", "backward")


def _member(label: str, dumps: Sequence[Told]) -> Member:
    """The dump that has most to say; one with native frames knows more than one without, and the kernel adds the file
    or the device.
    """
    stacks = _latest([told for told in dumps if told[0].tool not in KERNEL_TOOLS])
    below = [told for told in dumps if told[0].tool in KERNEL_TOOLS]
    chosen = stacks or below
    dump, state, key = max(
        chosen,
        key=lambda each: (each[1].kind not in _UNTOLD, bool(each[2]), each[0].tool in PYTHON_TOOLS, each[0].source),
    )
    if not state.place:
        state = replace(state, place=next((other.place for _, other, _ in chosen if other.place), ""))
    if dump.tool not in PYTHON_TOOLS:  # ranks are compared by the frames that all dumps of them are most likely to have
        key = next((other for process, _, other in chosen if process.tool in PYTHON_TOOLS and other), key)
    moved = len({other for process, _, other in chosen if other and process.tool == dump.tool}) > 1
    if stacks and below:
        state = joined(state, max(below, key=lambda each: (bool(each[1].detail), each[0].source))[1])
    age = next((process.age for process, _, _ in reversed(dumps) if process.age is not None), None)
    return Member(label, dump.rank, replace(dump, age=age), state, key or (state.words,), moved)


def _latest(dumps: Sequence[Told]) -> list[Told]:
    """Of a log in which a process dumped itself again and again, the last two: only whether it still moves at the end
    counts.
    """
    by_source: dict[tuple[str, str], list[Told]] = defaultdict(list)
    for told in dumps:
        by_source[told[0].source, told[0].tool].append(told)
    return [told for each in by_source.values() for told in each[-2:]]


def _order(member: Member) -> tuple[bool, int, str]:
    return (member.rank is None, member.rank or 0, member.label)


def _groups(members: Sequence[Member]) -> list[Group]:
    found: dict[tuple[str, ...], list[Member]] = defaultdict(list)
    for member in members:
        found[_standing(member)].append(member)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), _order(item[1][0])))
    most = len(ordered[0][1]) if ordered else 0
    clear = len(ordered) == 1 or (bool(ordered) and len(ordered[1][1]) < most)
    return [
        Group(
            tuple(each), tuple(reversed(key)), each[0].state, clear and place == 0 and (most > 1 or len(ordered) == 1)
        )
        for place, (key, each) in enumerate(ordered)
    ]


def _standing(member: Member) -> tuple[str, ...]:
    """Where it stands, for comparison: where exactly in its imports a process is changes by the millisecond."""
    if member.state.kind != "import":
        return member.key
    place = next((index for index, frame in enumerate(member.key) if "(<frozen importlib" in frame), len(member.key))
    return member.key[:place] or member.key


def conclusions(members: Sequence[Member]) -> list[Conclusion]:
    """For the catalog; only ranks that are known by number are blamed, nobody on the word of one dump (but for threads
    that hold each other's
    locks), and nobody of whom the kernel alone tells that it sleeps: so does everybody who waits.
    """
    ranks = {member.rank: member.state for member in members if member.rank is not None and not member.moved}
    waiting = {rank: state for rank, state in ranks.items() if state.kind in WAITING}
    mute = {
        member.rank for member in members if member.process.tool in KERNEL_TOOLS and member.state.kind not in TELLING
    }
    absent = {rank: state for rank, state in ranks.items() if state.kind not in WAITING and rank not in mute}
    proven = {rank: state for rank, state in ranks.items() if state.op == "cycle"}
    if proven and (len(ranks) < 2 or not waiting):
        return [Conclusion("thread-deadlock", tuple(sorted(proven)), _told(proven))]
    if len(ranks) < 2:
        return []
    if not waiting:
        return _odd(members)
    found = [_blocked(waiting, absent)]
    if absent and len(absent) <= max(1, len(waiting)):
        found = [*_absent(absent, waiting), *found]
    elif not absent:
        found = [*_divergent(waiting), *found]
    return found


def _blocked(waiting: dict[int, State], absent: dict[int, State]) -> Conclusion:
    rest = f"; {say(absent)} {_is(absent)} not" if absent else ""
    return Conclusion("blocked-in-collective", tuple(sorted(waiting)), f"{_told(waiting)}{rest}")


_CAUSES = {"dataloader": "blocked-in-dataloader", "deadlock": "thread-deadlock", "exit": "left-early"}


def _absent(absent: dict[int, State], waiting: dict[int, State]) -> list[Conclusion]:
    """Why they are absent is the cause where the stack tells; else that they are."""
    by_rule: dict[str, dict[int, State]] = defaultdict(dict)
    for rank, state in absent.items():
        by_rule[_CAUSES.get(state.kind, "never-joined")][rank] = state
    return [
        Conclusion(rule, tuple(sorted(states)), f"{_told(states)}, while {_told(waiting)}")
        for rule, states in sorted(by_rule.items())
    ]


def _divergent(waiting: dict[int, State]) -> list[Conclusion]:
    """All wait, but a few in another call: they took another way through the program."""
    by_call: dict[tuple[str, str], dict[int, State]] = defaultdict(dict)
    for rank, state in waiting.items():
        by_call[(state.op, state.place)][rank] = state
    (_, usual), *others = sorted(by_call.items(), key=lambda item: -len(item[1]))
    if (
        not others
        or len(usual) * 2 <= len(waiting)
        or any(state.op.endswith(("send", "recv")) for state in waiting.values())
    ):
        return []
    odd = {rank: state for _, states in others for rank, state in states.items()}
    return [Conclusion("divergent-call", tuple(sorted(odd)), f"all ranks wait, but {_told(odd)}, while {_told(usual)}")]


def _odd(members: Sequence[Member]) -> list[Conclusion]:
    """Collectives of a device do not show on the stack. If most ranks stand at one line and a few are stuck elsewhere,
    those are missing.
    """
    ranked = [member for member in members if member.rank is not None]
    (usual, *_) = _groups(ranked)
    odd = {m.rank: m.state for m in ranked if _standing(m) != usual.key[::-1] and m.rank is not None}
    if not usual.usual or not odd or len(odd) * 2 >= len(ranked) or usual.state.kind in STUCK:
        return []
    if not all(state.kind in STUCK for state in odd.values()):
        return []
    return _absent(odd, {m.rank: m.state for m in usual.members if m.rank is not None})


def _told(states: dict[int, State]) -> str:
    """`ranks 0, 1, 3 are in all_reduce at train.py:25`, each state once."""
    grouped: dict[str, list[int]] = defaultdict(list)
    for rank, state in sorted(states.items()):
        # Descriptors and times are each rank's own: they are told of a rank alone.
        grouped[phrase(state if len(states) == 1 else replace(state, detail=""))].append(rank)
    return " and ".join(f"{say(ranks)} {_is(ranks)} {words}" for words, ranks in grouped.items())


def say(ranks: object) -> str:
    """`rank 3`, `ranks 0, 1, 3-7`."""
    numbers = sorted(ranks)  # type: ignore[call-overload]
    parts: list[list[int]] = []
    for rank in numbers:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    text = ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(map(str, part)) for part in parts)
    return f"rank {text}" if len(numbers) == 1 else f"ranks {text}"


def _is(ranks: object) -> str:
    return "is" if len(ranks) == 1 else "are"  # type: ignore[arg-type]
