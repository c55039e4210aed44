"""Classes of unknown failures in groups of near neighbours, and what a process prints of each.

Each file of `hard/` is a group. A class is one cause: a traceback (`calls` and `errors`, the last lines) or
whole `texts` of another program. `<…>` are values that change with every job; `<l71>` is line 71 of the first release,
later in the second, which also renames paths (`renames`). `3.11|` stands before what Python says since 3.11. A third
of the classes is held out: nobody reads their texts or their answers while rules are written, only totals.
"""

from __future__ import annotations

import hashlib
import random
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.clusters.hard_wraps import WRAPS
from triage.testing.composer.faults.error_texts import version
from triage.testing.composer.faults.uncaught import Call, setup_calls, site_packages
from triage.testing.composer.model import World

DIRECTORY = Path(__file__).parent / "hard"
_SLOT = re.compile(r"<(l?)(\w+)>")
_QUOTING_RAISE = re.compile(r"raise .*['\"]")
_FIRST_PYTHON = re.compile(r"3\.(\d+)\|(.*)", re.S)


@dataclass(frozen=True)
class HardClass:
    """One cause. `calls`: (file, function, source) from the outermost, below `main`; `known`: signatures that are right
    too. `status`: how its process ends, an exit code or a negative signal.
    """

    name: str
    group: str
    calls: tuple[tuple[str, str, str], ...] = ()
    errors: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    wraps: tuple[str, ...] = ("",)
    renames: Mapping[str, str] = field(default_factory=dict)
    status: int = 1
    known: frozenset[str] = frozenset()

    @property
    def digest(self) -> bytes:
        """What halves and samples of the classes are chosen by."""
        return hashlib.sha256(self.name.encode()).digest()

    @property
    def is_held_out(self) -> bool:
        """Whether nobody looks at it while rules are written. A third of the classes, by their names."""
        return self.digest[0] % 3 == 0

    @property
    def part(self) -> str:
        """The part of the corpus. Groups that were written later are parts of their own: in those of `drifting`, words
        drift from release to release; `blind` is by an author who had seen neither rules nor answers.
        """
        return {"drift": "drifting", "blind": "blind"}.get(self.group.partition("_")[0], "")

    @property
    def variants(self) -> int:
        """How many texts are drawn: each wording in both releases, as far as three to five allow."""
        return min(5, max(3, 2 * len(self.errors or self.texts)))

    @property
    def is_python(self) -> bool:
        """Whether the text is a traceback that the excepthook of a rank prints."""
        return bool(self.errors)


@cache
def hard_classes() -> tuple[HardClass, ...]:
    """Return all classes, by group and in the order of the files."""
    return tuple(one for path in sorted(DIRECTORY.glob("*.toml")) for one in _read_group(path))


def _read_group(path: Path) -> list[HardClass]:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return [_read_class(path.stem, {**data, **entry}) for entry in data["class"]]


def _read_class(group: str, entry: Mapping[str, object]) -> HardClass:
    def strings(key: str) -> tuple[str, ...]:
        return tuple(entry.get(key, ()))  # type: ignore[arg-type]

    calls = tuple(tuple(call.split("|", 2)) for call in (*strings("outer"), *strings("calls")))
    return HardClass(
        f"{group}/{entry['id']}",
        group,
        calls,  # type: ignore[arg-type]
        strings("errors"),
        strings("texts"),
        strings("wraps") if entry.get("errors") and strings("wraps") else ("",),
        entry.get("renames", {}),  # type: ignore[arg-type]
        entry.get("status", 1),  # type: ignore[arg-type]
        frozenset(strings("known")),
    )


def failure_text(
    one: HardClass, world: World, rank: int, number: int, rng: random.Random, at: float | None = None
) -> str:
    """Return what this rank prints; `number` chooses wording, release and wrapper. `at` as in `fill`."""
    wordings = _wordings(one, world)
    release = number // len(wordings) % 2
    shift = release * (7 + _digest(one.group) % 60)
    renames = one.renames if release else {}
    wording = fill(_rename(wordings[number % len(wordings)], renames), world, rank, rng, shift, at)
    if one.is_python:
        words_changed = wording_of(one, number) > 0
        inner = [_call(one, call, shift, renames, words_changed=words_changed) for call in one.calls]
        script = random.Random(world.start)  # all ranks run the same script
        calls = setup_calls(world, script, "trainer.fit(model, loader)", *inner)
        wrap = WRAPS[one.wraps[(number + _digest(one.name)) % len(one.wraps)]]
        template = wrap(world, rank, rng, one.calls[0][0] if one.calls else "<app>/job.py", calls, wording)
    else:
        template = wording
    return fill(template, world, rank, rng, shift, at)


def _wordings(one: HardClass, world: World) -> tuple[str, ...]:
    """Return the wordings. Of those that begin with the Python that words it so first (`3.11|`), only the right one."""
    wordings = one.errors or one.texts
    marked = [match for match in map(_FIRST_PYTHON.match, wordings) if match]
    fitting = [match for match in marked if int(match[1]) <= version(world.python)[1]]
    return (max(fitting, key=lambda match: int(match[1]))[2],) if marked else wordings


def wording_of(one: HardClass, number: int) -> int:
    """Return which of the wordings a text has, as far as the version of Python does not decide."""
    return number % len(one.errors or one.texts)


def _call(
    one: HardClass, call: tuple[str, str, str], shift: int, renames: Mapping[str, str], *, words_changed: bool
) -> Call:
    """Return a frame. `words_changed`: the message is not that of the source, so show a statement of several lines."""
    file, function, source = call
    line = 21 + _digest(f"{one.group}{file}{function}{source}") % 400 + shift
    if words_changed and _QUOTING_RAISE.match(source):
        source = source.partition("(")[0] + "("
    return Call(_rename(file, renames), line, function, source)


def _rename(text: str, renames: Mapping[str, str]) -> str:
    for old, new in renames.items():
        text = text.replace(old, new)
        if old.endswith("/"):  # a package: the modules of exceptions have its name too
            text = text.replace(old.replace("/", "."), new.replace("/", "."))
    return text


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def fill(template: str, world: World, rank: int, rng: random.Random, shift: int = 0, at: float | None = None) -> str:
    """Return the text with a value in every slot; what is no slot stays. The same number twice is two values.

    Timestamps are those of the failure, `at` seconds after the start of the job; of a text alone they are drawn.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] and match[2].isdigit():
            return str(int(match[2]) + shift)
        if form := _STAMPS.get(match[1] + match[2]):
            return _stamp(world, rng, form, at)
        slot = _SLOTS.get(match[1] + match[2])
        return match[0] if slot is None else str(slot(world, rank, rng))

    filled = _SLOT.sub(value, template)
    return _SLOT.sub(value, filled)  # values of paths have slots themselves


def _stamp(world: World, rng: random.Random, form: str, at: float | None) -> str:
    drawn = rng.uniform(60, 90_000)  # drawn in any case: the values behind it must not depend on `at`
    zone = world.zone if form.endswith("Z") else 0
    return world.stamp(drawn if at is None else at - zone, form)


_NAME_PARTS = ("alpha", "corpus", "tokens", "exp", "final", "books", "web", "code", "wiki", "math", "blend")
_PATHS = (
    "/data/<w>/<w>_<n>", "/mnt/<w><n>/<w>", "/lustre/home/<user>/<w>/<w>-<n>", "/gpfs/projects/p<n>/<w>",
    "/fsx/<user>/runs/<w>/<n>", "/weka/<w>/<id>",
)  # fmt: skip
_SHARDS = ("shard-{:05d}", "part-{:05d}-of-02048", "train_{:04d}", "c4-{:06d}", "chunk.{}", "0000{}")
_SLOTS = {
    "app": lambda world, rank, rng: world.script.rpartition("/")[0],
    "script": lambda world, rank, rng: world.script,
    "site": lambda world, rank, rng: site_packages(world),
    "py": lambda world, rank, rng: world.python,
    "rank": lambda world, rank, rng: rank,
    "local": lambda world, rank, rng: world.local(rank),
    "host": lambda world, rank, rng: world.host(rank),
    "pid": lambda world, rank, rng: world.pids[rank],
    "n": lambda world, rank, rng: rng.randrange(2, 10 ** rng.randrange(1, 6)),
    "v": lambda world, rank, rng: rng.randrange(1, 12),
    "f": lambda world, rank, rng: f"{rng.random() * 10 ** rng.randrange(-2, 4):.{rng.randrange(2, 7)}g}",
    "hex8": lambda world, rank, rng: f"{rng.getrandbits(36) | 1 << 35:x}"[:8],
    "hex10": lambda world, rank, rng: f"{rng.getrandbits(40) | 1 << 39:x}",
    "id": lambda world, rank, rng: f"{rng.getrandbits(80) | 1 << 79:x}",
    "uuid": lambda world, rank, rng: "-".join(f"{rng.getrandbits(4 * n):0{n}x}" for n in (8, 4, 4, 4, 12)),
    "ip": lambda world, rank, rng: f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}",
    "port": lambda world, rank, rng: rng.randrange(1024, 65_000),
    "tid": lambda world, rank, rng: world.pids[rank] + rng.randrange(3, 400),
    "size": lambda world, rank, rng: f"{rng.random() * 100:.2f} {rng.choice(('GiB', 'MiB'))}",
    "user": lambda world, rank, rng: rng.choice(("ana", "li", "omar", "kate", "u1042")),
    "w": lambda world, rank, rng: rng.choice(_NAME_PARTS),
    "path": lambda world, rank, rng: rng.choice(_PATHS),
    "shard": lambda world, rank, rng: rng.choice(_SHARDS).format(rng.randrange(9000)),
}
_STAMPS = {
    "iso": "%Y-%m-%dT%H:%M:%S.%LZ",
    "godate": "%Y/%m/%d %H:%M:%S",
    "glog": "%m%d %H:%M:%S.%f",
    "md": "%m-%d",
    "hms": "%H:%M:%S,%L",
}
