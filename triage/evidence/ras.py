"""Reports of NCCL's RAS subsystem (`ncclras`, since NCCL 2.24), as text → one fact with typed parts.

Format: src/ras/client_support.cc of NCCL 2.24 to 2.29 and the user guide. 2.24 and 2.25 count the operations of all
kinds together, list missing ranks in one line, and say UNKNOWN where later versions say NOCOMM.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.evidence import ras_json
from triage.evidence.extractor import make_evidence
from triage.model import Block, Evidence, RasDetail
from triage.model.ras import RasCommunicator, RasPart, RasProcess, RasSplit
from triage.records.ras_lines import FORM

_PROCESS = (
    r"(?:GPU (?P<gpu>[\d,]{1,200})(?: \(NVML [\d,]{1,200}\))? managed by process (?P<pid>\d{1,9})"
    r" on node (?P<host>\S{1,80})|\[process)"
)
_VALUE = (
    r"(?:(?:have|has) launched up to operation (?P<count>\d{1,19})"
    r"|(?P<none>(?:have|has) not launched any operations)"
    r"|(?:have|has) status (?P<status>[A-Z]{2,12})|reported (?P<error>[A-Z][\w ]{2,60}?))"
)
_COMMUNICATOR = lazy_re(r"#(?P<group>\d{1,6})-(?P<index>\d{1,6}) \((?P<hash>[0-9a-f]{1,16})\) [A-Z]")
_ROW = lazy_re(
    r"\s*(?P<group>\d{1,6}) +\d{1,7} +\d{1,7} +[\d-]{1,15} +(?P<size>\d{1,7}) +\d{1,7} +[A-Z]{2,12} +[A-Z,]{2,30}"
)
_TOTALS = lazy_re(r"\s*(\d{1,7})(?: +\d{1,7} +\d{1,7})? +(\d{1,7}) +(\d{1,7})\s*$")
_SPLIT = lazy_re(r"\s*Communicator ranks have different (?:(?P<status>status)|(?P<name>\w{1,40}) operation counts)")
_ERRORS = lazy_re(r"\s*(?:Initialization|Asynchronous) errors? on ")
_PART = lazy_re(rf"\s*(?P<size>\d{{1,7}}) ranks {_VALUE}\s*$")
_SINGLE = lazy_re(rf"\s*Rank (?P<rank>\d{{1,7}}) {_VALUE}(?:\s*$| -- {_PROCESS})")
_LISTED = lazy_re(rf"\s*Rank (?P<rank>\d{{1,7}}) -- {_PROCESS}")
_RANKS = lazy_re(r"\s*The (?P<kind>missing|unknown) ranks?: (?P<ranks>\d[\d, ]{0,2000})")
_WHOLE = lazy_re(r".{0,60}?Process (?P<pid>\d{1,9}) on node (?P<host>\S{1,80}) managing GPUs? (?P<gpu>[\d,]{1,200})")
_ELAPSED = lazy_re(r"Communicators\.\.\. \((\d{1,6}\.\d{1,3}s)\)")
_TIMEOUTS = lazy_re(r"\s*Encountered (\d{1,9}) communication timeout")


def extract(block: Block) -> list[Evidence]:
    """Return the report as one fact."""
    if block.form != FORM:
        return []
    detail = ras_json.parse_report("\n".join(block.lines)) or _parse(block.lines)
    return [make_evidence(block, "ras", "NCCL", describe(detail), detail)]


def describe(detail: RasDetail) -> str:
    """Return what a report shows; reports with other counts have another text."""
    parts = [f"{len(detail.dead)} processes are dead"] if detail.dead else []
    parts += [f"{len(detail.silent)} processes gave no answer"] if detail.silent else []
    parts += [f"{detail.timeouts} timeouts while gathering data"] if detail.timeouts else []
    for one in detail.communicators:
        for split in one.splits:
            values = ", ".join(f"{part.value} on {part.size}" for part in split.parts)
            parts.append(f"{split.subject} in {one.label}: {values}")
    stamp = f" ({detail.stamp})" if detail.stamp else ""
    return f"NCCL's RAS report{stamp}: {'; '.join(parts) or 'all communicators agree'}"


def without_report_lines(endings: Iterable[Evidence], facts: Iterable[Evidence]) -> list[Evidence]:
    """Return the endings without those that are lines of a report: they say nothing of the end of their writer."""
    reports = [fact for fact in facts if isinstance(fact.detail, RasDetail)]
    return [one for one in endings if not any(report.offset <= one.offset <= report.end for report in reports)]


@dataclass(slots=True)
class _Part:
    value: str
    size: int
    members: list[RasProcess] = field(default_factory=list)


@dataclass(slots=True)
class _Communicator:
    name: str
    hash: str
    splits: list[tuple[str, list[_Part]]] = field(default_factory=list)
    missing: list[RasProcess] = field(default_factory=list)


class _Reader:
    """Reads the lines in their order; the last heading says what a line of a rank or a process is about."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.totals: tuple[int, int, int] | None = None
        self.communicators: dict[str, _Communicator] = {}
        self.dead: list[RasProcess] = []
        self.silent: list[RasProcess] = []
        self.timeouts = 0
        self.stamp = ""
        self._current = _Communicator("", "")
        self._is_dead = self._follows_totals = False

    def read(self, line: str) -> None:
        """Take one line."""
        if self._read_heading(line) or self._read_part(line):
            return
        if row := _ROW.match(line):
            self.sizes[row["group"]] = int(row["size"])
        elif ranks := _RANKS.match(line):
            self._add_ranks(ranks["kind"], [int(rank) for rank in ranks["ranks"].replace(",", " ").split()])
        elif process := _WHOLE.match(line):
            one = RasProcess(None, process["host"], int(process["pid"]), process["gpu"])
            (self.dead if self._is_dead or "PEER_DEAD" in line else self.silent).append(one)
        elif self._follows_totals and (totals := _TOTALS.match(line)):
            self.totals = int(totals[1]), int(totals[2]), int(totals[3])
        elif timeouts := _TIMEOUTS.match(line):
            self.timeouts = int(timeouts[1])
        elif elapsed := _ELAPSED.match(line):
            self.stamp = elapsed[1]
        self._follows_totals = "(total)" in line

    def _read_heading(self, line: str) -> bool:
        if communicator := _COMMUNICATOR.match(line):
            name = f"#{communicator['group']}-{communicator['index']}"
            self._current = self.communicators.setdefault(name, _Communicator(name, communicator["hash"]))
        elif split := _SPLIT.match(line):
            self._current.splits.append((split["status"] or split["name"], []))
            self.communicators.setdefault(self._current.name, self._current)
        elif _ERRORS.match(line):
            self._current.splits.append(("error", []))
        else:
            self._is_dead = line.strip() == "DEAD" or (self._is_dead and line.strip() != "INCOMPLETE")
            return False
        return True

    def _read_part(self, line: str) -> bool:
        match = _PART.match(line) or _SINGLE.match(line) or _LISTED.match(line)
        if match is None:
            return False
        groups = match.groupdict()
        parts = self._current.splits[-1][1] if self._current.splits else None
        member = [_to_process(groups)] if groups.get("rank") else []
        if "count" in groups:
            value = "0" if groups["none"] else groups["count"] or groups["status"] or groups["error"]
            if parts is not None:
                parts.append(_Part(value, int(groups.get("size") or 1), member))
        elif parts and len(parts[-1].members) < parts[-1].size:
            parts[-1].members += member
        else:
            self._current.missing += member
        return True

    def _add_ranks(self, kind: str, ranks: Iterable[int]) -> None:
        members = [RasProcess(rank) for rank in ranks]
        if kind == "missing" or not self._current.splits:
            self._current.missing += members
        else:
            self._current.splits[-1][1][-1].members += members

    def finish(self) -> RasDetail:
        """Return what was read."""
        nodes, processes, gpus = self.totals or (0, 0, 0)
        communicators = tuple(self._finish(one) for one in self.communicators.values())
        return RasDetail(
            nodes, processes, gpus, communicators, tuple(self.dead), tuple(self.silent), self.timeouts, self.stamp
        )

    def _finish(self, one: _Communicator) -> RasCommunicator:
        splits = [
            RasSplit(subject, tuple(RasPart(part.value, part.size, tuple(part.members)) for part in parts))
            for subject, parts in one.splits
        ]
        members = {member.rank: member for split in splits for part in split.parts for member in part.members}
        members.update({member.rank: member for member in one.missing})
        size = self.sizes.get(one.name[1:].partition("-")[0], 0)
        size = size or max((sum(part.size for part in split.parts) for split in splits if split.is_count), default=0)
        return RasCommunicator(one.name, one.hash, size, tuple(splits), tuple(one.missing), tuple(members.values()))


def _to_process(groups: dict[str, str | None]) -> RasProcess:
    pid = groups.get("pid")
    return RasProcess(
        int(groups["rank"] or 0), groups.get("host") or "", int(pid) if pid else None, groups.get("gpu") or ""
    )


def _parse(lines: Iterable[str]) -> RasDetail:
    reader = _Reader()
    for line in lines:
        reader.read(line)
    return reader.finish()
