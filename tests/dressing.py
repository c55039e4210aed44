"""Puts a log into the clothes of launchers, schedulers and containers: each function takes lines and gives lines."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

CUT = 240  # where runtimes cut lines, smaller than theirs
START = 1_795_230_465  # 2026-11-21 03:07:45 UTC


@dataclass(frozen=True, slots=True)
class Place:
    """Where the lines come from: what launchers would know."""

    host: str = "node1"
    pod: str = "node1"
    rank: int | None = None


Dress = Callable[[Sequence[bytes], Place], list[bytes]]


def stamp(index: int, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    """A hundred lines a second."""
    moment = datetime.datetime.fromtimestamp(START + index // 100, datetime.UTC)
    return moment.strftime(form)


def each(form: Callable[[int, Place], str]) -> Dress:
    """A prefix before every line."""

    def dress(lines: Sequence[bytes], place: Place) -> list[bytes]:
        return [form(index, place).encode() + line for index, line in enumerate(lines)]

    return dress


def docker_json(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """moby's json-file, which also escapes what HTML could take for its own."""
    dressed = []
    for index, line in enumerate(lines):
        text = json.dumps(line.decode("utf-8", "replace") + "\n", ensure_ascii=False)
        for letter, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
            text = text.replace(letter, code)
        dressed.append(f'{{"log":{text},"stream":"stderr","time":"{stamp(index)}.{index % 100:02d}1234567Z"}}'.encode())
    return dressed


def journald_json(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """journalctl -o json: what holds control characters is a list of bytes."""
    dressed = []
    for index, line in enumerate(lines):
        text = line.decode("utf-8", "replace")
        plain = all(letter >= " " or letter == "\t" for letter in text) and "\ufffd" not in text
        record = {
            "__CURSOR": f"s=1;i={index:x}",
            "__REALTIME_TIMESTAMP": str((START + index // 100) * 1_000_000),
            "_HOSTNAME": place.host,
            "_COMM": "python3",
            "MESSAGE": text if plain else list(line),
            "SYSLOG_IDENTIFIER": "train",
        }
        dressed.append(json.dumps(record).encode())
    return dressed


def journald_export(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """journalctl -o export: a field a line, an empty line behind each record."""
    dressed: list[bytes] = []
    for index, line in enumerate(lines):
        dressed += [
            f"__CURSOR=s=1;i={index:x}".encode(),
            f"__REALTIME_TIMESTAMP={(START + index // 100) * 1_000_000}".encode(),
        ]
        dressed += [b"_TRANSPORT=stdout", f"_HOSTNAME={place.host}".encode(), b"MESSAGE=" + line, b"_COMM=python3", b""]
    return dressed


def cut_cri(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """Kubernetes' files, long lines in pieces (of 16 KiB, there)."""
    dressed = []
    for index, line in enumerate(lines):
        pieces = [line[at : at + CUT] for at in range(0, len(line), CUT)] or [b""]
        for number, piece in enumerate(pieces):
            flag = "F" if number + 1 == len(pieces) else "P"
            dressed.append(f"{stamp(index)}.{index % 100:02d}2001123Z stderr {flag} ".encode() + piece)
    return dressed


def cut_docker(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """Docker cuts at 16 KiB, here earlier."""
    dressed = []
    for index, line in enumerate(lines):
        text = line.decode("utf-8", "replace")
        pieces = [text[at : at + CUT] for at in range(0, len(text), CUT)] or [""]
        for number, piece in enumerate(pieces):
            end = "\n" if number + 1 == len(pieces) else ""
            record = {"log": piece + end, "stream": "stderr", "time": f"{stamp(index)}.123456789Z"}
            dressed.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode())
    return dressed


def cloudwatch(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """The console's export: the stamp on the next line."""
    return [part for index, line in enumerate(lines) for part in (line, f"{stamp(index)}.123Z".encode())]


def fluent_bit(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """What a log shipper makes of it."""
    return [
        json.dumps(
            {"date": START, "log": line.decode("utf-8", "replace"), "kubernetes": {"pod_name": place.pod}}
        ).encode()
        for line in lines
    ]


def aws_json(lines: Sequence[bytes], place: Place) -> list[bytes]:
    """aws logs get-log-events --output json."""
    events = [
        {"timestamp": (START + n // 100) * 1000, "message": line.decode("utf-8", "replace")}
        for n, line in enumerate(lines)
    ]
    return json.dumps({"events": events}, indent=4).encode().split(b"\n")


LAYOUTS: dict[str, Dress] = {
    "aws logs get-log-events": aws_json,
    "docker json-file": docker_json,
    "docker json-file, cut": cut_docker,
    "docker compose": each(lambda index, place: "trainer-1  | "),
    "docker logs -t": each(lambda index, place: f"{stamp(index)}.{index % 100:02d}2001123Z "),
    "GitHub Actions": each(lambda index, place: f"{stamp(index)}.{index % 100:02d}20011Z "),
    "GitLab": each(lambda index, place: f"{stamp(index)}.{index % 100:02d}2001Z 01O "),
    "Jenkins": each(lambda index, place: f"[{stamp(index)}.{index % 100:02d}2Z] "),
    "CI line counter": each(lambda index, place: f"[{80_000 + index}] "),
    "Kaggle": each(lambda index, place: f"{704 + index / 10:.1f}s\t{index}\t"),
    "CRI": each(lambda index, place: f"{stamp(index)}.{index % 100:02d}2001123Z stderr F "),
    "CRI, cut": cut_cri,
    "kubectl --prefix": each(lambda index, place: f"[pod/{place.pod}/pytorch] "),
    "stern": each(lambda index, place: f"{place.pod} pytorch "),
    "Fluent Bit": fluent_bit,
    "journald JSON": journald_json,
    "journald export": journald_export,
    "journalctl -o short-iso": each(lambda index, place: f"{stamp(index)}+0000 {place.host} train[77]: "),
    "syslog": each(lambda index, place: f"{stamp(index, '%b %d %H:%M:%S')} {place.host} train[77]: "),
    "moreutils ts": each(lambda index, place: f"{stamp(index, '%b %d %H:%M:%S')} "),
    "ISO ts": each(lambda index, place: f"{stamp(index, '%Y-%m-%d %H:%M:%S')} "),
    "PAI DLC": each(lambda index, place: f"{stamp(index, '%Y-%m-%d %H:%M:%S')}.169312 {place.host} >> "),
    "CloudWatch export": cloudwatch,
    "aws logs tail": each(lambda index, place: f"{stamp(index)}.372000+00:00 train/algo-1 "),
    "pdsh": each(lambda index, place: f"{place.host}: "),
    "torchx": each(lambda index, place: "i.pretrain/0 "),
    "milabench": each(lambda index, place: "bert.node1.D0 [stderr] "),
}
RANKED: dict[str, Dress] = {
    "srun --label": each(lambda index, place: f"{place.rank:2d}: "),
    "Open MPI": each(lambda index, place: f"[1,{place.rank}]<stderr>:"),
    "Open MPI with time": each(lambda index, place: f"{stamp(index, '%a %b %d %H:%M:%S %Y')}[1,{place.rank}]<stderr>:"),
    "SageMaker": each(lambda index, place: f"[1,mpirank:{place.rank},algo-1]<stderr>:"),
    "PRRTE": each(lambda index, place: f"[prterun-node1-7@1,{place.rank}]<stderr>: "),
    "PRRTE, number": each(lambda index, place: f"[1,{place.rank}]<stderr>: "),
    "PRRTE rank": each(lambda index, place: f"[{place.rank}]<stderr>: "),
    "PRRTE detailed": each(lambda index, place: f"[1,{place.rank}][node1:{400 + (place.rank or 0)}]<stderr>: "),
    "PALS": each(lambda index, place: f"x3005c0s13b0n0 {place.rank}: "),
    "torchrun template": each(lambda index, place: f"[{place.rank}]:"),
    "MPICH": each(lambda index, place: f"[{place.rank}] "),
    "Ray": each(lambda index, place: f"\x1b[36m(Trainer pid={900 + (place.rank or 0)})\x1b[0m "),
    "vLLM": each(lambda index, place: f"(VllmWorker rank={place.rank} pid={900 + (place.rank or 0)}) "),
    "words": each(lambda index, place: f"Rank {place.rank}: "),
}
