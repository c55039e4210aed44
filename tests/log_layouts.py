"""Write a log as launchers, schedulers and containers write it: each function takes lines and returns lines."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


def docker_json(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """Write moby's json-file, which escapes the special characters of HTML."""
    wrapped = []
    for index, line in enumerate(lines):
        text = json.dumps(line.decode("utf-8", "replace") + "\n", ensure_ascii=False)
        for letter, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
            text = text.replace(letter, code)
        wrapped.append(f'{{"log":{text},"stream":"stderr","time":"{stamp(index)}.{index % 100:02d}1234567Z"}}'.encode())
    return wrapped


def journald_json(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """Write journalctl -o json: text with control characters is a list of bytes."""
    wrapped = []
    for index, line in enumerate(lines):
        text = line.decode("utf-8", "replace")
        is_plain = all(letter >= " " or letter == "\t" for letter in text) and "\ufffd" not in text
        record = {
            "__CURSOR": f"s=1;i={index:x}",
            "__REALTIME_TIMESTAMP": str((START + index // 100) * 1_000_000),
            "_HOSTNAME": place.host,
            "_COMM": "python3",
            "MESSAGE": text if is_plain else list(line),
            "SYSLOG_IDENTIFIER": "train",
        }
        wrapped.append(json.dumps(record).encode())
    return wrapped


def journald_export(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """Write journalctl -o export: one field per line, and an empty line behind each record."""
    wrapped: list[bytes] = []
    for index, line in enumerate(lines):
        wrapped += [
            f"__CURSOR=s=1;i={index:x}".encode(),
            f"__REALTIME_TIMESTAMP={(START + index // 100) * 1_000_000}".encode(),
        ]
        wrapped += [b"_TRANSPORT=stdout", f"_HOSTNAME={place.host}".encode(), b"MESSAGE=" + line, b"_COMM=python3", b""]
    return wrapped


def cut_cri(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """Write Kubernetes' files with long lines in pieces, shorter than its 16 KiB."""
    wrapped = []
    for index, line in enumerate(lines):
        pieces = [line[at : at + CUT_WIDTH] for at in range(0, len(line), CUT_WIDTH)] or [b""]
        for number, piece in enumerate(pieces):
            flag = "F" if number + 1 == len(pieces) else "P"
            wrapped.append(f"{stamp(index)}.{index % 100:02d}2001123Z stderr {flag} ".encode() + piece)
    return wrapped


def cut_docker(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """Write Docker's files with long lines in pieces, shorter than its 16 KiB."""
    wrapped = []
    for index, line in enumerate(lines):
        text = line.decode("utf-8", "replace")
        pieces = [text[at : at + CUT_WIDTH] for at in range(0, len(text), CUT_WIDTH)] or [""]
        for number, piece in enumerate(pieces):
            end = "\n" if number + 1 == len(pieces) else ""
            record = {"log": piece + end, "stream": "stderr", "time": f"{stamp(index)}.123456789Z"}
            wrapped.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode())
    return wrapped


def cloudwatch(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """Write the console's export: the timestamp is on the next line."""
    return [part for index, line in enumerate(lines) for part in (line, f"{stamp(index)}.123Z".encode())]


def fluent_bit(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """Write what a log shipper stores."""
    return [
        json.dumps(
            {"date": START, "log": line.decode("utf-8", "replace"), "kubernetes": {"pod_name": place.pod}}
        ).encode()
        for line in lines
    ]


def aws_json(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """Write the output of aws logs get-log-events --output json."""
    events = [
        {"timestamp": (START + n // 100) * 1000, "message": line.decode("utf-8", "replace")}
        for n, line in enumerate(lines)
    ]
    return json.dumps({"events": events}, indent=4).encode().split(b"\n")


LAYOUTS: dict[str, WrapLines] = {
    "aws logs get-log-events": aws_json,
    "docker json-file": docker_json,
    "docker json-file, cut": cut_docker,
    "docker compose": prefix_each(lambda index, place: "trainer-1  | "),
    "docker logs -t": prefix_each(lambda index, place: f"{stamp(index)}.{index % 100:02d}2001123Z "),
    "GitHub Actions": prefix_each(lambda index, place: f"{stamp(index)}.{index % 100:02d}20011Z "),
    "GitLab": prefix_each(lambda index, place: f"{stamp(index)}.{index % 100:02d}2001Z 01O "),
    "Jenkins": prefix_each(lambda index, place: f"[{stamp(index)}.{index % 100:02d}2Z] "),
    "CI line counter": prefix_each(lambda index, place: f"[{80_000 + index}] "),
    "Kaggle": prefix_each(lambda index, place: f"{704 + index / 10:.1f}s\t{index}\t"),
    "CRI": prefix_each(lambda index, place: f"{stamp(index)}.{index % 100:02d}2001123Z stderr F "),
    "CRI, cut": cut_cri,
    "kubectl --prefix": prefix_each(lambda index, place: f"[pod/{place.pod}/pytorch] "),
    "stern": prefix_each(lambda index, place: f"{place.pod} pytorch "),
    "Fluent Bit": fluent_bit,
    "journald JSON": journald_json,
    "journald export": journald_export,
    "journalctl -o short-iso": prefix_each(lambda index, place: f"{stamp(index)}+0000 {place.host} train[77]: "),
    "syslog": prefix_each(lambda index, place: f"{stamp(index, '%b %d %H:%M:%S')} {place.host} train[77]: "),
    "moreutils ts": prefix_each(lambda index, place: f"{stamp(index, '%b %d %H:%M:%S')} "),
    "ISO ts": prefix_each(lambda index, place: f"{stamp(index, '%Y-%m-%d %H:%M:%S')} "),
    "PAI DLC": prefix_each(lambda index, place: f"{stamp(index, '%Y-%m-%d %H:%M:%S')}.169312 {place.host} >> "),
    "CloudWatch export": cloudwatch,
    "aws logs tail": prefix_each(lambda index, place: f"{stamp(index)}.372000+00:00 train/algo-1 "),
    "pdsh": prefix_each(lambda index, place: f"{place.host}: "),
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
