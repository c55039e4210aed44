"""Reports of NCCL's RAS subsystem as JSON (`ncclras -f json`, since NCCL 2.28) → the same typed parts as the text.

The JSON has all ranks with their raw numbers; a report whose end is missing is read as far as it goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from triage.base.lazy_re import lazy_re
from triage.model import RasDetail
from triage.model.ras import RasCommunicator, RasPart, RasProcess, RasSplit

_COMMUNICATOR = lazy_re(r'"hash"\s*:\s*"0x([0-9a-f]{1,16})"')
_SIZE = lazy_re(r'"size"\s*:\s*(\d{1,7})')
_RANK = lazy_re(
    r'"rank"\s*:\s*(?P<rank>\d{1,7})\s*,\s*"host"\s*:\s*"(?P<host>[^"\n]{0,80})"\s*,\s*"pid"\s*:\s*(?P<pid>-?\d{1,9})\s*,'
    r'\s*"cuda_dev"\s*:\s*(?P<gpu>-?\d{1,4})\s*,\s*"nvml_dev"\s*:\s*-?\d{1,4}\s*,\s*"status"\s*:\s*\{(?P<status>[^{}]{0,400})\}'
    r'(?:\s*,\s*"collective_counts"\s*:\s*\{(?P<counts>[^{}]{0,800})\})?'
)
_FIELD = lazy_re(r'"(\w{1,40})"\s*:\s*(\w{1,20})')
_STAMP = lazy_re(r'"timestamp"\s*:\s*"([^"\n]{1,40})"')
_TIMEOUTS = lazy_re(r'"timeouts_count"\s*:\s*(\d{1,9})')
# ncclResult_t: 0 is success, 7 in progress.
_ERRORS = {"1": "Unhandled CUDA error", "2": "System error", "3": "Internal error", "4": "Invalid argument",
           "5": "Invalid usage", "6": "Remote process error"}  # fmt: skip


def parse_report(text: str) -> RasDetail | None:
    """Return what a report says; None for one that is not JSON."""
    if '"communicators_count"' not in text:
        return None
    starts = [match.start() for match in _COMMUNICATOR.finditer(text)]
    parts = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    dead: dict[object, RasProcess] = {}
    silent: dict[object, RasProcess] = {}
    communicators = tuple(_read_communicator(f"#{number}", part, dead, silent) for number, part in enumerate(parts))
    processes = {member.key for one in communicators for member in one.members}
    timeouts, stamp = _TIMEOUTS.search(text), _STAMP.search(text)
    return RasDetail(
        len({host for host, _, _ in processes}), len({key[:2] for key in processes}), len(processes), communicators,
        tuple(dead.values()), tuple(silent.values()), int(timeouts[1]) if timeouts else 0,
        stamp[1] if stamp else "",
    )  # fmt: skip


def _read_communicator(
    name: str, text: str, dead: dict[object, RasProcess], silent: dict[object, RasProcess]
) -> RasCommunicator:
    """Return a communicator, and add its processes that do not answer."""
    values: dict[str, dict[str, list[RasProcess]]] = defaultdict(lambda: defaultdict(list))
    members, missing = [], []
    for match in _RANK.finditer(text):
        pid = int(match["pid"])
        member = RasProcess(int(match["rank"]), match["host"], pid if pid >= 0 else None, match["gpu"])
        status = dict(_FIELD.findall(match["status"]))
        members.append(member)
        if status.get("unresponsive") == "true":
            missing.append(member)
            (dead if status.get("considered_dead") == "true" else silent)[member.key] = member
            continue
        for subject, value in _values(status, dict(_FIELD.findall(match["counts"] or ""))):
            values[subject][value].append(member)
    splits = [_to_split(subject, parts) for subject, parts in values.items() if subject == "error" or len(parts) > 1]
    size, number = _SIZE.search(text), _COMMUNICATOR.match(text)
    return RasCommunicator(
        name, number[1] if number else "", int(size[1]) if size else 0, tuple(splits), tuple(missing), tuple(members)
    )


def _values(status: Mapping[str, str], counts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (subject, value) of one rank, as the text of NCCL derives them from the same numbers."""
    if "unresponsive" in status:
        yield "status", "NOCOMM"
        return
    if status.get("abort_flag") == "true":
        yield "status", "ABORT"
    elif "true" in (status.get("finalize_called"), status.get("destroy_flag")):
        yield "status", "FINALIZE"
    else:
        yield "status", "RUNNING" if status.get("init_state") == "0" else "INIT"
    yield from counts.items()
    for name in ("init_state", "async_error"):
        if (error := _ERRORS.get(status.get(name, ""))) is not None:
            yield "error", error


def _to_split(subject: str, parts: Mapping[str, list[RasProcess]]) -> RasSplit:
    return RasSplit(subject, tuple(RasPart(value, len(same), tuple(same)) for value, same in parts.items()))
