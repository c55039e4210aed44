"""Write a log as launchers, schedulers and containers write it: each function takes lines and returns lines."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from triage.testing.log_wrappers import WRAPPERS, Record, Wrap, wrap_cri, wrap_docker_json

CUT_WIDTH = 240  # where runtimes cut lines, smaller than theirs
START = 1_795_230_465  # 2026-11-21 03:07:45 UTC


@dataclass(frozen=True, slots=True)
class Place:
    """Where the lines come from, as far as launchers know it."""

    host: str = "node1"
    pod: str = "node1"
    rank: int | None = None


WrapLines = Callable[[Sequence[bytes], Place], list[bytes]]


def stamp(index: int, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    """Return the timestamp of a line, at a hundred lines per second."""
    moment = datetime.datetime.fromtimestamp(START + index // 100, datetime.UTC)
    return moment.strftime(form)


def prefix_each(form: Callable[[int, Place], str]) -> WrapLines:
    """Return a function that puts a prefix before every line."""

    def wrap(lines: Sequence[bytes], place: Place) -> list[bytes]:
        return [form(index, place).encode() + line for index, line in enumerate(lines)]

    return wrap


def wrap_each(wrap: Wrap) -> WrapLines:
    """Return a function that wraps lines at a hundred lines per second."""

    def wrap_lines(lines: Sequence[bytes], place: Place) -> list[bytes]:
        records = [
            Record(line.decode("utf-8", "surrogateescape"), START * 1_000_000 + index * 10_000, place.host, place.pod)
            for index, line in enumerate(lines)
        ]
        return [line.encode("utf-8", "surrogateescape") for line in wrap(records)]

    return wrap_lines


LAYOUTS: dict[str, WrapLines] = {
    **{name: wrap_each(wrap) for name, wrap in WRAPPERS.items()},
    "docker json-file, cut": wrap_each(partial(wrap_docker_json, width=CUT_WIDTH)),
    "CRI, cut": wrap_each(partial(wrap_cri, width=CUT_WIDTH)),
    "CI line counter": prefix_each(lambda index, place: f"[{80_000 + index}] "),
    "Kaggle": prefix_each(lambda index, place: f"{704 + index / 10:.1f}s\t{index}\t"),
    "torchx": prefix_each(lambda index, place: "i.pretrain/0 "),
    "milabench": prefix_each(lambda index, place: "bert.node1.D0 [stderr] "),
}
LAYOUTS_WITH_RANK: dict[str, WrapLines] = {
    "srun --label": prefix_each(lambda index, place: f"{place.rank:2d}: "),
    "Open MPI": prefix_each(lambda index, place: f"[1,{place.rank}]<stderr>:"),
    "Open MPI with time": prefix_each(
        lambda index, place: f"{stamp(index, '%a %b %d %H:%M:%S %Y')}[1,{place.rank}]<stderr>:"
    ),
    "SageMaker": prefix_each(lambda index, place: f"[1,mpirank:{place.rank},algo-1]<stderr>:"),
    "PRRTE": prefix_each(lambda index, place: f"[prterun-node1-7@1,{place.rank}]<stderr>: "),
    "PRRTE, number": prefix_each(lambda index, place: f"[1,{place.rank}]<stderr>: "),
    "PRRTE rank": prefix_each(lambda index, place: f"[{place.rank}]<stderr>: "),
    "PRRTE detailed": prefix_each(lambda index, place: f"[1,{place.rank}][node1:{400 + (place.rank or 0)}]<stderr>: "),
    "PALS": prefix_each(lambda index, place: f"x3005c0s13b0n0 {place.rank}: "),
    "torchrun template": prefix_each(lambda index, place: f"[{place.rank}]:"),
    "MPICH": prefix_each(lambda index, place: f"[{place.rank}] "),
    "Ray": prefix_each(lambda index, place: f"\x1b[36m(Trainer pid={900 + (place.rank or 0)})\x1b[0m "),
    "vLLM": prefix_each(lambda index, place: f"(VllmWorker rank={place.rank} pid={900 + (place.rank or 0)}) "),
    "words": prefix_each(lambda index, place: f"Rank {place.rank}: "),
}
