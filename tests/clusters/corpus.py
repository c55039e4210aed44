"""A labelled corpus of failures: classes written by hand, variants drawn from a seed.

A class is one cause. Its texts are what different versions of a library say of it; `{…}` are the values that change
with every run. A variant is one text in one shape (traceback, wrapped traceback, C++ exception, bare line), with
changing ranks, hosts, addresses, paths and numbers, and sometimes the echo of further ranks. `classes.toml` holds those
that the rules were written with, `held_out.toml` those that were written last and never tuned on, `pairs.toml` pairs
that share their words and not their cause.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from triage import evidence
from triage.model.evidence import Evidence

HERE = Path(__file__).parent
VARIANTS = 15
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Failure:
    """One failed job's word of its cause: the class it belongs to, the file that class was written in, the text in the
    log.
    """

    label: str
    group: str
    text: str

    def fact(self) -> Evidence:
        """What the extraction makes of the text: the exception or the line that stands for the failure."""
        return representative(evidence.extract_text(self.text))


def representative(facts: list[Evidence]) -> Evidence:
    """Return the fact that states the failure: the last exception, a crash, or the first line."""
    exceptions = [fact for fact in facts if fact.kind == "exception" and fact.fields.get("chain") == "final"]
    crashes = [fact for fact in facts if fact.kind in ("terminate", "fatal-python")]
    return (exceptions[-1:] or crashes or facts)[0]


def failures(seed: int, variants: int = VARIANTS) -> list[Failure]:
    """The whole corpus for a seed, in a fixed order."""
    draw = random.Random(seed)
    return [failure for group in ("classes", "held_out", "pairs") for failure in _group(group, draw, variants)]


def pairs() -> list[tuple[str, str]]:
    """Labels of classes that must never be one cluster."""
    data = tomllib.loads((HERE / "pairs.toml").read_text(encoding="utf-8"))
    return [(f"{pair['id']}/a", f"{pair['id']}/b") for pair in data["pair"]]


def _group(group: str, draw: random.Random, variants: int) -> Iterator[Failure]:
    data = tomllib.loads((HERE / f"{group}.toml").read_text(encoding="utf-8"))
    for entry in data.get("class", ()):
        for number in range(variants):
            yield Failure(
                entry["id"], group, _variant(entry["shape"], entry["texts"], entry.get("at", ""), draw, number)
            )
    for entry in data.get("pair", ()):
        for side in ("a", "b"):
            for number in range(max(2, variants // 4)):
                texts = entry[side] if isinstance(entry[side], list) else [entry[side]]
                yield Failure(
                    f"{entry['id']}/{side}",
                    group,
                    _variant(entry["shape"], texts, entry.get(f"at_{side}", entry.get("at", "")), draw, number),
                )


def _variant(shape: str, texts: list[str], at: str, draw: random.Random, number: int) -> str:
    """The texts come in turn, so that every wording is there; all else is drawn."""
    ranks = draw.sample(range(64), draw.choice([1, 1, 1, 2, 3]))
    layout = draw.choice(
        ["[rank{rank}]: ", "[default{rank}]:"] if len(ranks) > 1 else ["", "[rank{rank}]: ", "[default{rank}]:"]
    )
    blocks = []
    for rank in ranks:  # the same cause on several ranks, each with its own values
        prefix = layout.replace("{rank}", str(rank))
        block = SHAPES[shape](filled(texts[number % len(texts)], draw), at, draw)
        blocks += [prefix + line for line in block.split("\n")]
    return "\n".join(blocks)


def filled(text: str, draw: random.Random) -> str:
    """The text with a value in every slot; the same slot twice gives two values."""
    return _SLOT.sub(lambda slot: str(SLOTS[slot[1]](draw)), text)


def _frame(path: str, function: str, draw: random.Random, code: str = "run(batch)") -> str:
    return f'  File "{path}", line {draw.randrange(10, 900)}, in {function}\n    {code}'


def _traceback(text: str, at: str, draw: random.Random) -> str:
    path, _, function = at.partition(":")
    root = draw.choice(["/workspace/project", "/home/{user}/train", "/scratch/{user}/run_{n}", "/opt/app"])
    frames = [_frame(filled(root, draw) + "/train.py", "main", draw, "trainer.fit(model)")]
    frames += [
        _frame(f"/usr/lib/python3.{draw.randrange(9, 13)}/site-packages/lib/loop.py", "advance", draw)
    ] * draw.randrange(2)
    frames += [
        _frame(
            f"{filled(root, draw)}/{path or 'model.py'}", function or draw.choice(["forward", "step", "backward"]), draw
        )
    ]
    return "\n".join(["Traceback (most recent call last):", *frames, text])


def _wrapped(text: str, at: str, draw: random.Random) -> str:
    """An exception in a worker of the DataLoader, raised again by the parent."""
    name = text.split(":", 1)[0]
    inner = _traceback(text, at, draw)
    return _traceback(
        f"{name}: Caught {name} in DataLoader worker process {draw.randrange(16)}.\nOriginal {inner}",
        "train.py:main",
        draw,
    )


def _nccl(text: str, at: str, draw: random.Random) -> str:
    version = draw.choice(["2.18.1", "2.19.3", "2.21.5", "2.26.2"])
    place = draw.choice(
        [
            "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1331",
            "/pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:275",
        ]
    )
    kind = draw.choice([("unhandled system error", "ncclSystemError"), ("internal error", "ncclInternalError")])
    message = (
        f"torch.distributed.DistBackendError: NCCL error in: {place}, {kind[0]} (run with NCCL_DEBUG=INFO "
        f"for details), NCCL version {version}\n"
    )
    return _traceback(f"{message}{kind[1]}: It failed and says below why.\nLast error:\n{text}", at, draw)


def _runtime(text: str, at: str, draw: random.Random) -> str:
    """What C++ raised: its class changed over the versions, and so did the advice below."""
    name = draw.choice(["RuntimeError", "RuntimeError", "torch.AcceleratorError"])
    advice = draw.choice(
        [
            "",
            "\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n",
            "\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
        ]
    )
    return _traceback(f"{name}: {text}{advice}", at, draw)


def _terminate(text: str, at: str, draw: random.Random) -> str:
    kind = draw.choice(["std::runtime_error", "c10::Error"])
    return f"terminate called after throwing an instance of '{kind}'\n  what():  {text}"


def _line(text: str, at: str, draw: random.Random) -> str:
    return text


SHAPES = {
    "traceback": _traceback,
    "wrapped": _wrapped,
    "nccl": _nccl,
    "runtime": _runtime,
    "terminate": _terminate,
    "line": _line,
}

_HOSTS = ("node{n}", "gpu-a100-{n}", "dgx{n}.cluster.local", "worker-{n}", "nid00{n}", "ip-10-3-{n}-7.ec2.internal")
_PATHS = ("/data/{w}/{w}_{n}", "/mnt/{w}{n}/{w}", "/lustre/home/{user}/{w}/{w}-{n}", "s3://bucket-{n}/{w}/{w}_{n}")
_NAME_PARTS = ("alpha", "corpus", "tokens", "run", "exp", "shards", "v2", "final", "books", "web")


def _of(patterns: tuple[str, ...]) -> object:
    return lambda draw: filled(draw.choice(patterns), draw)


SLOTS: dict[str, object] = {
    "n": lambda draw: draw.randrange(1, 10 ** draw.randrange(1, 6)),
    "f": lambda draw: f"{draw.random() * 10 ** draw.randrange(-3, 4):.{draw.randrange(1, 6)}g}",
    "rank": lambda draw: draw.randrange(512),
    "hex": lambda draw: f"0x{draw.randrange(1 << 44):012x}",
    "id": lambda draw: f"{draw.randrange(1 << 60):015x}a",
    "ip": lambda draw: f"10.{draw.randrange(256)}.{draw.randrange(256)}.{draw.randrange(1, 255)}",
    "port": lambda draw: draw.randrange(1024, 65000),
    "pid": lambda draw: draw.randrange(300, 4_000_000),
    "size": lambda draw: f"{draw.random() * 100:.2f} {draw.choice(['GiB', 'MiB'])}",
    "shape": lambda draw: (
        "[" + ", ".join(str(draw.choice([1, 2, 8, 64, 512, 4096])) for _ in range(draw.randrange(2, 5))) + "]"
    ),
    "time": lambda draw: (
        f"2026-{draw.randrange(1, 13):02d}-{draw.randrange(1, 28):02d} "
        f"{draw.randrange(24):02d}:{draw.randrange(60):02d}:{draw.randrange(60):02d}"
    ),
    "bus": lambda draw: f"0000:{draw.randrange(256):02x}:00.0",
    "user": lambda draw: draw.choice(["ana", "li", "omar", "kate"]),
    "w": lambda draw: draw.choice(_NAME_PARTS),
    "host": _of(_HOSTS),
    "path": _of(_PATHS),
    "version": lambda draw: f"{draw.randrange(1, 4)}.{draw.randrange(20)}.{draw.randrange(10)}",
}
