"""What stories of uncaught exceptions share: frames, chained tracebacks, and how the job ends after them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from triage.base.lazy_re import lazy_re
from triage.testing.composer.faults.error_texts import version
from triage.testing.composer.model import Backend, Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import echoes, start, steps, tag

T = TypeVar("T")
BACKENDS: tuple[Backend, ...] = ("nccl", "gloo", "hccl")
DIRECT_CAUSE = "\n\nThe above exception was the direct cause of the following exception:\n\n"
DURING_HANDLING = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
# The start of a statement, and the expression that fails.
_STATEMENT = lazy_re(
    r"(return |with |assert |if (?:.* and |not )?|for .+? in |[\w., :]+ \+?= )(.+?)(?: as \w+:|:|, \(|, f['\"].*)?$"
)
# Lines of torch/nn/modules/module.py by the first version of torch that has them.
_MODULE_LINES = {(2, 0): (1518, 1527), (2, 3): (1553, 1562), (2, 5): (1739, 1750), (2, 8): (1775, 1786)}


@dataclass(frozen=True, slots=True)
class Call:
    """A frame of a traceback: file, line number, function, and the source of the line (empty if it is not known).

    `marks`: the line of `~` and `^` below the source where it does not follow from the source.
    """

    file: str
    line: int
    function: str
    source: str
    marks: str = ""


@dataclass(frozen=True, slots=True)
class Prelude:
    """What a job wrote before it failed, `at` seconds."""

    lines: tuple[Line, ...]
    at: float
    step: int = 0


def train_until(world: World, rng: random.Random) -> Prelude:
    """Return a start and some training steps; the failure comes in the next step."""
    count = rng.randrange(2, 14)
    number = rng.choice((1, 1, rng.randrange(2, 20) * 500 + 1))
    lines = (*start(world, rng), *steps(world, rng, 10, count, number=number))
    return Prelude(lines, 10.4 + count, number + count)


def load_until(world: World, rng: random.Random) -> Prelude:
    """Return a start without a step, for a failure while the job prepares or loads."""
    return Prelude(tuple(start(world, rng)), rng.uniform(9, 40))


def site_packages(world: World) -> str:
    """Return the directory of installed Python packages."""
    return f"/opt/venv/lib/python{world.python}/site-packages"


def setup_calls(world: World, rng: random.Random, source: str, *inner: Call) -> tuple[Call, ...]:
    """Return the frames of a program whose `main` has this line, and what it calls."""
    line = rng.randrange(60, 300)
    outer = Call(world.script, line + rng.randrange(20, 90), "<module>", "main()")
    return outer, Call(world.script, line, "main", source), *inner


def training_calls(world: World, rng: random.Random, source: str, *inner: Call) -> tuple[Call, ...]:
    """Return the frames of a program whose training loop has this line, and what it calls."""
    name, arguments = rng.choice((("train", "args"), ("fit", "model, loader, cfg"), ("run_epoch", "state, epoch")))
    loop = Call(world.script, rng.randrange(40, 58), name, source)
    return *setup_calls(world, rng, f"{name}({arguments})"), loop, *inner


def by_version(text: str, table: Mapping[tuple[int, int], T]) -> T:
    """Return the entry of the newest version in the table that is not newer than this one."""
    return table[max(first for first in table if first <= version(text))]


def module_calls(world: World, torch_file: str, line: int, source: str) -> tuple[Call, ...]:
    """Return the frames from a call of a module down to the `forward` of a module of torch."""
    wrapped, inner = by_version(world.torch, _MODULE_LINES)
    base = f"{site_packages(world)}/torch/nn/modules"
    return (
        Call(f"{base}/module.py", wrapped, "_wrapped_call_impl", "return self._call_impl(*args, **kwargs)"),
        Call(f"{base}/module.py", inner, "_call_impl", "return forward_call(*args, **kwargs)"),
        Call(f"{base}/{torch_file}", line, "forward", source),
    )


def format_traceback(world: World, calls: Iterable[Call], error: str) -> str:
    """Return a traceback as this version of Python prints it."""
    lines = ["Traceback (most recent call last):"]
    for call in calls:
        lines.append(f'  File "{call.file}", line {call.line}, in {call.function}')
        lines += [f"    {call.source}"] if call.source else []
        if version(world.python) >= (3, 11):
            marks = call.marks or _marks(call.source, parts_calls=version(world.python) >= (3, 13))
            lines += [marks] if marks else []
    return "\n".join([*lines, error])


def _marks(source: str, *, parts_calls: bool) -> str:
    """Return the marks below the part of a statement that failed, if they are shorter than the statement.

    `parts_calls`: Python 3.13 and newer mark a call as `~~~^^^` and do so for whole statements too.
    """
    match = _STATEMENT.match(source)
    head, value = (match[1], match[2]) if match else ("", source)
    call = re.fullmatch(r"[\w.()]*?\w(\((?:[^()]|\([^()]*\))*\))", value)
    if not match and not (parts_calls and call):
        return ""
    if " @ " in value:
        marks = "".join("^" if letter == "@" else "~" for letter in value)
    else:
        right = call[1] if parts_calls and call else value[value.rindex("[") :] if value.endswith("]") else value
        marks = "~" * (len(value) - len(right)) + "^" * len(right)
    return " " * (4 + len(head)) + marks


def uncaught(
    world: World,
    rank: int,
    at: float,
    text: str,
    *,
    tagged: bool = True,
    names_rank: bool = False,
    names_host: bool = False,
) -> Line:
    """Return what the excepthook prints for this traceback. Torch's own hook leaves empty lines without prefix.

    `tagged`: after the process group was made. `names_rank`, `names_host`: the error itself names them.
    """  # fmt: skip
    prefix = tag(world, rank) if tagged else ""
    shown = "\n".join(prefix + part if part else "" for part in text.split("\n"))
    return Line(
        at, Writer("rank", rank), shown, is_cause=True, says_rank=bool(prefix) or names_rank, says_host=names_host
    )


def end_job(
    world: World,
    rng: random.Random,
    before: Prelude,
    causes: Sequence[Line],
    roots: Iterable[str | None],
    *,
    more: Sequence[Line] = (),
    status: int = 1,
    truth_ranks: Iterable[int] | None = None,
    share: float | None = None,
) -> Story:
    """Return the story in which the writers of `causes` end with `status` and the other ranks lose their peers.

    `more`: lines that belong to the story and end no process. `truth_ranks`: if others than the writers began it.
    `share` of the other ranks print that they lost a peer; drawn by default.
    """  # fmt: skip
    ends = {line.writer.number: line.at for line in causes if line.writer.kind == "rank"}
    exits = [Exit(rank, status, at + rng.uniform(0.1, 0.35)) for rank, at in ends.items()]
    if share is None:
        share = rng.choice((0.0, 0.3, 0.7, 1.0)) if len(ends) < world.size else 0.0
    others, consequences = echoes(world, rng, ends, min(ends.values()), share=share)
    ranks = frozenset(ends if truth_ranks is None else truth_ranks)
    ids = frozenset(roots)
    truth = Truth(
        frozenset({"unknown"}) if ids == {None} else frozenset({"known"}),
        ids,
        ranks,
        frozenset(world.node(rank) for rank in ranks),
    )
    ordered = sorted(exits, key=lambda end: end.at)
    return Story((*before.lines, *more, *causes, *others), truth, (*ordered, *consequences))


def all_ranks(world: World, rng: random.Random, at: float, spread: float = 0.6) -> list[tuple[int, float]]:
    """Return each rank with the time at which it meets an error that all of them have."""
    return [(rank, at + rng.uniform(0, spread)) for rank in world.ranks]
