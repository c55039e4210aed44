"""The processes of a job as they are compared: what each does, and which stand at the same place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.stacks.callers import CallerFrame, find_differing_callers
from triage.stacks.live.model import Process, State, format_state
from triage.stacks.live.states import WAITING

_MOST_STATES = 5
_FRAME = lazy_re(r"(?P<function>.*) \((?P<file>[^()]*):(?P<line>\d{1,9})\)")


@dataclass(frozen=True, slots=True)
class ComparedProcess:
    """One process of the job and where it stands; `key` is equal for processes at the same place.

    `has_moved`: its last two dumps differ; `is_still`: they are equal, and one log has both. `is_doubtful`: nothing but
    the main thread names it, which others share; its dump may be one of them at another moment. `caller` is the line
    from which it reached its call, where others reached the same call from another line of one function.
    """

    label: str
    rank: int | None
    process: Process
    state: State
    key: tuple[str, ...]
    has_moved: bool = False
    is_still: bool = False
    is_doubtful: bool = False
    caller: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Processes with the same stack; `key` has the innermost frame first."""

    members: tuple[ComparedProcess, ...]
    key: tuple[str, ...]
    state: State
    is_usual: bool = False


def order_of(member: ComparedProcess) -> tuple[bool, int, str]:
    """Return what sorts ranks before processes without a rank."""
    return (member.rank is None, member.rank or 0, member.label)


def group_members(members: Sequence[ComparedProcess]) -> list[Group]:
    """Return the members by where they stand, largest group first; it is the usual one if larger than the next."""
    by_key: dict[tuple[str, ...], list[ComparedProcess]] = defaultdict(list)
    for member in members:
        by_key[comparison_key(member)].append(member)
    ordered = sorted(by_key.items(), key=lambda item: (-len(item[1]), order_of(item[1][0])))
    most = len(ordered[0][1]) if ordered else 0
    has_usual = len(ordered) == 1 or (most > 1 and len(ordered[1][1]) < most)
    return [
        Group(tuple(each), tuple(reversed(key)), each[0].state, has_usual and position == 0)
        for position, (key, each) in enumerate(ordered)
    ]


def comparison_key(member: ComparedProcess) -> tuple[str, ...]:
    """Return the frames that are compared: not those within an import, which change by the millisecond."""
    if member.state.kind != "import":
        return member.key
    place = next((index for index, frame in enumerate(member.key) if "(<frozen importlib" in frame), len(member.key))
    return member.key[:place] or member.key


def name_callers(members: Sequence[ComparedProcess]) -> list[ComparedProcess]:
    """Set the caller of processes that wait in one call, where one function made it at several lines.

    Stacks that part in different functions are left alone: a driver and its workers reach the same call on other ways.
    """
    by_call: dict[tuple[str, str], list[ComparedProcess]] = defaultdict(list)
    for member in members:
        if member.state.kind in WAITING and member.state.op and member.state.place:
            by_call[member.state.op, member.state.place].append(member)
    callers: dict[str, str] = {}
    for each in by_call.values():
        differing = find_differing_callers([[_parse_frame(frame) for frame in member.key] for member in each])
        callers.update(zip((member.label for member in each), differing, strict=False))
    return [replace(member, caller=callers.get(member.label, "")) for member in members]


def _parse_frame(frame: str) -> CallerFrame:
    match = _FRAME.fullmatch(frame)
    return CallerFrame(match["function"], match["file"], match["line"]) if match else CallerFrame(frame, "", "")


def ranks_of(members: Collection[ComparedProcess]) -> tuple[int, ...]:
    """Return the known ranks, ascending."""
    return tuple(sorted({member.rank for member in members if member.rank is not None}))


def name_members(members: Sequence[ComparedProcess]) -> str:
    """Return `ranks 0-1, 3`; processes without a rank are named alone, and else counted."""
    ranks = ranks_of(members)
    others = [member for member in members if member.rank is None]
    parts = [format_ranks(ranks)] if ranks else []
    if others:
        parts.append(f"{len(others)} processes" if len(others) > 1 else others[0].label)
    return " and ".join(parts)


def describe_members(members: Sequence[ComparedProcess]) -> str:
    """Return `ranks 0-1, 3 are in all_reduce at train.py:25`, each state once, at most five."""
    by_state: dict[str, list[ComparedProcess]] = defaultdict(list)
    for member in sorted(members, key=order_of):
        # Descriptors and times differ between ranks: they are only shown for a single process.
        state = member.state if len(members) == 1 else replace(member.state, remark="")
        by_state[format_state(state) + (f" from {member.caller}" if member.caller else "")].append(member)
    parts = [f"{name_members(each)} {be(each)} {state}" for state, each in by_state.items()]
    rest = [f"{len(parts) - _MOST_STATES} other states"] if len(parts) > _MOST_STATES else []
    return " and ".join([*parts[:_MOST_STATES], *rest])


def be(members: Collection[object]) -> str:
    """Return the form of "be" for so many."""
    return "is" if len(members) == 1 else "are"
