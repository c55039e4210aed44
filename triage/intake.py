"""Between rooms: files of `sources` become containers of the scan, artifacts are taken aside, and places are looked up
again for the report.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, TypeVar

from triage import artifacts, sources
from triage.artifacts.interface import Artifact, Keeper
from triage.base.errors import InputError
from triage.base.lazy_re import lazy_re
from triage.evidence.collect import Harvest, text_of
from triage.model.diagnosis import Explanation, Finding
from triage.model.environment import Deviation
from triage.model.evidence import Evidence, LastLine, Source, Warning
from triage.ranks.last import Word
from triage.ranks.text import LONGEST, Text
from triage.ranks.windows import Windows
from triage.scan.interface import Scanned
from triage.sources.interface import in_place

_LEAD = lazy_re(rb"\[[A-Za-z_.-]*:?\d+\]:(?: ?\[rank\d+\]:)?")
_WRITER = lazy_re(
    rb"\[[A-Za-z_.-]*:?\d+\]:|\[rank\d+\]|^ *\d+: |\[\d+,\d+\]|[Rr]ank:? ?\d+|\(?pid[:= ]+\d+|:\d+:\d+ \[\d+\]|process \d+|PCI:[\da-f:.]+"
)


# Programs, settings and documents lie beside the output and quote it: `raise RuntimeError("CUDA out of memory")` did
# not happen.
_NO_OUTPUT = lazy_re(
    r"\.(?:py|pyi|ipynb|c|cc|cpp|cxx|cu|cuh|h|hpp|go|rs|java|js|ts|css|html?|sh|bash|ya?ml|toml|ini|cfg|md|rst|tex|diff|patch)$",
    re.I,
)
_WHOLE = (b"PATH=", b"PWD=")  # what every shell has in its environment
_LISTING = "!/COLLECTED.md"
_UNHAD = lazy_re(r"- \S*/(?P<piece>[^\s/]+): (?P<why>.+)")
_NAMED = 5
_EDGE = 1 << 16
_LAST = 1 << 10
_Placed = TypeVar("_Placed", Finding, Deviation)


def writer_key(line: bytes) -> bytes:
    """The part of a hit line that tells writers apart; cheap, for keeping some lines of every writer in a storm."""
    lead = _LEAD.match(line)
    return lead.group() if lead else b"\0".join(_WRITER.findall(line)[:3])


@dataclass(frozen=True, slots=True)
class _Container:
    """One file for the scan."""

    file: sources.File
    intake: Intake
    plain: Source | None

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def size(self) -> int:
        return self.file.size

    def streams(self) -> Iterator[tuple[Source, BinaryIO | None]]:
        for source, stream in sources.streams(self.file, sources.Limits(), self.intake.warnings.append):
            if source.name.endswith(_LISTING) and stream is not None:
                self.intake.warnings.extend(uncollected(stream.read(_EDGE).decode("utf-8", "replace"), source.name))
                continue
            content = _content(source, stream) if source.kind not in ("text", "empty") else None
            if self.intake.is_aside(source.name, content):
                continue
            if source.kind == "text" and stream is not None:
                yield source, stream
            elif content is not None:
                self.intake.artifacts.append(content)
                yield source, None


def uncollected(text: str, name: str) -> list[Warning]:
    """What `triage collect` says that it could not get and that may be missed; that a node has no nvidia-smi says
    nothing.
    """
    reasons: Counter[tuple[str, str]] = Counter()
    for line in text.partition("\n# What it could not get\n")[2].splitlines():
        found = _UNHAD.fullmatch(line)
        if found is not None and not found["why"].endswith(("-smi is not installed", "since the processes began")):
            reasons[found["piece"], found["why"]] += 1
    return [
        Warning(
            "not-collected",
            name,
            f"`triage collect` could not get {piece}{f' of {count} processes' if count > 1 else ''}: {why}",
        )
        for (piece, why), count in sorted(reasons.items())[:_NAMED]
    ]


class Intake:
    """The files of a job on their way into the scan, and what was met on the way."""

    def __init__(self, files: Sequence[sources.File], given: Sequence[str] = ()) -> None:
        self.given = frozenset(given)
        self.warnings: list[Warning] = []
        self.artifacts: list[Artifact] = []
        self.aside: set[str] = set()
        self.files = [file for file in files if file.kind == "environment" or not self.is_aside(file.name)]
        if self.aside and all(file.kind in ("empty", "binary", "elf") for file in self.files):
            hint = "Give the directory that the job's stdout and stderr were written to, or one of these files itself."
            raise InputError(
                "only programs, settings or documents, no logs", hint=hint, path=", ".join(given[:3]) or None
            )

    def containers(self) -> list[_Container]:
        return [_Container(file, self, in_place(file) if file.kind == "text" else None) for file in self.files]

    def is_aside(self, name: str, content: Artifact | None = None) -> bool:
        """Is it by its name something that people write, not jobs? What the user names as a path of its own is read
        whatever it is,
        and so is a whole environment (`export -p > env.sh`).
        """
        if name in self.given or _NO_OUTPUT.search(name.removesuffix(".gz")) is None:
            return False
        if (
            content is not None
            and content.source.kind == "environment"
            and all(sure in content.data for sure in _WHOLE)
        ):
            return False
        self.aside.add(name)
        return True

    def remarks(self) -> list[Warning]:
        """What was met on the way, once all is read."""
        if not self.aside:
            return self.warnings
        first = ", ".join(sorted(self.aside)[:_NAMED]) + (
            f" and {len(self.aside) - _NAMED} more" if len(self.aside) > _NAMED else ""
        )
        message = f"skipped, because programs, settings and documents are no output: {first}; give a file itself to have it read"
        return [*self.warnings, Warning("no-output", None, message)]

    def failed(self, name: str, error: OSError) -> None:
        self.warnings.append(Warning("unreadable", name, f"could not be read to its end: {error.strerror or error}"))

    def identity(self, scanned: Sequence[tuple[Source, Scanned]]) -> list[str]:
        """What makes a job the same job: the sizes and edges of its texts, whatever they are called."""
        texts = [f"{scan.size} {hash_of(scan.head)} {hash_of(scan.tail)}" for _, scan in scanned]
        return sorted(texts + [f"{hash_of(artifact.data[:_EDGE])}" for artifact in self.artifacts])


def hash_of(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()[:16]


def _content(source: Source, stream: BinaryIO | None) -> Artifact:
    reader = artifacts.reader_of(source)
    if reader is None:
        return Artifact(source, b"")
    if stream is not None:
        return (
            reader.keep(source, stream)
            if isinstance(reader, Keeper)
            else Artifact(source, stream.read(reader.max_bytes))
        )
    with open(source.path or "", "rb") as file:
        return Artifact(
            source, file.read(min(reader.max_bytes, _EDGE) if getattr(reader, "in_place", False) else reader.max_bytes)
        )


def _lost(path: str, size: int) -> str | None:
    """Why what was scanned cannot be read again, if so."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return error.strerror
    try:
        found = os.fstat(fd)
    finally:
        os.close(fd)
    return None if stat.S_ISREG(found.st_mode) and found.st_size >= size else "it became shorter"


class Reading:
    """Reads around hits, and gives line numbers to what is reported (and only to that)."""

    def __init__(self, scanned: Sequence[tuple[Source, Scanned]], processes: int = 1) -> None:
        self._processes = processes
        self._by_name = {source.name: (source, scan) for source, scan in scanned}
        self._windows: dict[str, Windows] = {}
        self._lines: dict[tuple[str, int], int] = {}
        self._files = sources.Files()

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def read_of(self, source: Source, scan: Scanned) -> Callable[[int, int], bytes]:
        if source.path is not None:
            path = source.path
            return lambda offset, length: self._files.read_at(path, offset, length)
        return self._window(source.name, scan).read

    def last_lines(self, gathered: Harvest) -> list[LastLine]:
        """Of every rank the last line that it wrote: the latest by its stamp, and within a source the last by its
        place.
        """
        job, texts = gathered.job, dict[str, Text]()
        best: dict[int, tuple[tuple[float, str, int], str, Word]] = {}
        for name, word in gathered.words:
            origin = job.on_one_clock(job.complete(name, word.origin))
            if origin.rank is None or name not in self._by_name:
                continue
            before = best.get(origin.rank)
            time = (
                origin.time
                if origin.time is not None
                else before[0][0]
                if before and before[1] == name
                else float("-inf")
            )
            key = (time, name, word.offset)
            if before is None or key >= before[0]:
                best[origin.rank] = key, name, word
        lines = []
        for rank, ((time, _, _), name, word) in sorted(best.items()):
            read = self.read_of(*self._by_name[name])
            text = texts[name] = texts.get(name) or text_of(*self._by_name[name], read, gathered)
            parts = text.whole(read(word.offset, LONGEST).split(b"\n", 1)[0], word.offset)
            said = parts[-1].parsed.text[:_LAST].rstrip() if parts else ""
            lines.append(LastLine(rank, time if time != float("-inf") else None, word.step, said, name))
        return lines

    def _window(self, name: str, scan: Scanned) -> Windows:
        window = self._windows.get(name)
        if window is None:
            window = self._windows[name] = Windows(scan)
        return window

    def checked(self, warnings: Sequence[Warning]) -> tuple[Warning, ...]:
        """These, and one for each text that went away or became shorter after its scan: what was read of it since may
        be too little.
        """
        told = {warning.source for warning in warnings if warning.code == "unreadable"}
        problems = (
            (name, _lost(source.path, scan.size))
            for name, (source, scan) in self._by_name.items()
            if source.path and name not in told
        )
        message = "went away or changed while the job was diagnosed ({}): facts may be missing, and lines be wrong"
        lost = (Warning("unreadable", name, message.format(problem)) for name, problem in problems if problem)
        return tuple(
            sorted((*warnings, *lost), key=lambda warning: (warning.source or "", warning.code, warning.message))
        )

    def number(self, facts: Iterable[Evidence]) -> None:
        """Look up the lines of all these facts, going through each source once."""
        wanted: dict[str, set[int]] = {}
        for fact in facts:
            if fact.source in self._by_name:
                offsets = {fact.offset, max(fact.offset, fact.end)}
                wanted.setdefault(fact.source, set()).update(
                    offset for offset in offsets if (fact.source, offset) not in self._lines
                )
        paths = {name: source.path for name in wanted if (source := self._by_name[name][0]).path is not None}
        plain = sources.line_numbers({path: wanted[name] for name, path in paths.items()}, self._processes)
        for name, offsets in wanted.items():
            source, scan = self._by_name[name]
            window = None if source.path is not None else self._window(name, scan)
            for offset in offsets:
                self._lines[name, offset] = window.line_number(offset) if window else plain[paths[name]][offset]

    def placed(self, finding: _Placed) -> _Placed:
        """The finding (or deviation) with the lines of its evidence."""
        return replace(finding, evidence=self._place(finding.evidence))

    def placed_explanation(self, explanation: Explanation) -> Explanation:
        return replace(explanation, evidence=self._place(explanation.evidence))

    def _place(self, facts: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        self.number(facts)
        return tuple(
            replace(
                fact,
                line=self._lines.get((fact.source, fact.offset), fact.line or 1),
                end_line=self._lines.get((fact.source, max(fact.offset, fact.end)), fact.end_line or 1),
            )
            for fact in facts
        )
