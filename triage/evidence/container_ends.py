"""When a container of a pod ended, from the lines around its status: `Exit Code: 137` above `Finished: …`.

`kubectl describe pod` and `get pod -o yaml` print the containers of a pod in the order of their names. The one that
ended first may have ended the others: a proxy that is killed half a minute after the training failed caused nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from triage.base.lazy_dataclass import dataclass, replace
from triage.base.lazy_re import lazy_re
from triage.evidence.described_pods import ENDED_LATER
from triage.model import Evidence
from triage.records.described_pods import REACH

_FEWEST_SECONDS = 1.0  # kubelets note whole seconds
_BETWEEN = 3  # lines between the exit code and the time of a container, and from the status to its exit code
_CODE = lazy_re(r"^\s*\"?(?:Exit Code|exitCode)\"?: +(\d{1,3}),?\s*$")
_TIME = lazy_re(r"^\s*\"?(?:Finished|finishedAt)\"?: +\"?([^\"\n]{10,40}?)\"?,?\s*$")
# A pod's head in a description, its document in YAML or JSON.
_POD = lazy_re(r"^(?:Name: +\S|- apiVersion: |apiVersion: |---|\s{0,8}\"?kind\"?: \"?Pod\b)")


@dataclass(frozen=True, slots=True)
class _End:
    """A container that ended: the number of its line with the code, the code, and the time in seconds."""

    line: int
    code: int
    time: float


def with_end(fact: Evidence, read: Callable[[int, int], bytes], size: int) -> Evidence:
    """Return the status of a container with the time of its end, and ENDED_LATER if another failed before."""
    start = max(0, fact.offset - REACH)
    data = read(start, min(size, fact.end + REACH) - start)
    lines = data.decode("utf-8", "replace").split("\n")
    at = data[: fact.offset - start].count(b"\n")
    ends = _read_ends(lines, *_find_pod(lines, at))
    own = min((end for end in ends if abs(end.line - at) <= _BETWEEN), key=lambda end: abs(end.line - at), default=None)
    if own is None:
        return fact
    fact = replace(fact, origin=replace(fact.origin, time=own.time), inherits_time=False)
    is_later = any(end.code and end.time <= own.time - _FEWEST_SECONDS for end in ends)
    return replace(fact, fields={**fact.fields, ENDED_LATER: "yes"}) if is_later and own.code else fact


def _find_pod(lines: Sequence[str], at: int) -> tuple[int, int]:
    """Return the numbers of the lines of the pod that has a line."""
    heads = [number for number, line in enumerate(lines) if _POD.match(line)]
    begin = max((number for number in heads if number <= at), default=0)
    return begin, min((number for number in heads if number > at), default=len(lines))


def _read_ends(lines: Sequence[str], begin: int, end: int) -> list[_End]:
    ends = []
    for number in range(begin, end):
        if (code := _CODE.match(lines[number])) is not None:
            time = _first_time(lines[number + 1 : number + 1 + _BETWEEN])
            ends += [_End(number, int(code[1]), time)] if time is not None else []
    return ends


def _first_time(lines: Iterable[str]) -> float | None:
    from email.utils import parsedate_to_datetime  # few jobs need it

    text = next((match[1] for match in map(_TIME.match, lines) if match is not None), "")
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            when = parse(text)
            return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
        except ValueError:
            continue
    return None
