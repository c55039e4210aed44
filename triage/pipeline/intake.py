"""Sort the files of a job: logs go to the scan, artifacts are set apart, programs and documents are skipped."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from triage import artifacts, sources
from triage.artifacts.interface import Artifact, StreamReader
from triage.base.content_digest import digest_bytes, digest_list, start_digest
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Source, Warning
from triage.pipeline.document_names import NameKind, classify_name, is_prose
from triage.pipeline.document_texts import SAMPLE_BYTES, TextKind, classify_text, quotes_lines
from triage.ranks.file_names import is_process_snapshot
from triage.scan.interface import ScanResult
from triage.sources.interface import source_in_place
from triage.sources.opened_file import find_changed_objects, open_file, read_edges, warm

_LEADING_PREFIX = lazy_re(rb"\[[A-Za-z_.-]*:?\d+\]:(?: ?\[rank\d+\]:)?")
_STAMP = lazy_re(
    rb"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ][\d:.,]{5,20}(?:Z|[+-]\d\d:?\d\d)?|[A-Z][a-z]{2} [ \d]\d [\d:]{8})\]? *"
)
# The host, pod or task that a collector or launcher puts in front. Without a digit it may be a word: `RuntimeError: `.
_LEADING_NAME = lazy_re(
    rb" *\d+: |\[pod/[^\]\s]{1,120}\]|(?=[A-Za-z._-]*\d)[\w.-]{1,60}(?:: | +\| | [\w./-]{1,40}(?:\[\d{1,10}\])?: )"
)
_WRITER_MARKS = lazy_re(
    rb"\[(?:[A-Za-z_.-]*:?\d+\]:|rank\d+\]|\d+,\d+\])|(?:[Rr]ank|pid|process|task|worker)(?:_id)?\"?[:= ]{0,2}\"?\d+"
    rb"|\"(?:host|node|pod)(?:_?name)?\": ?\"[^\"]{1,80}|:\d+:\d+ \[\d+\]|PCI:[\da-f:.]+"
)
_PROCESS_GROUP = lazy_re(rb"\[PG [^\]\n]{1,200}\]")
# torch.distributed.checkpoint lets every rank quote the traceback of each rank that failed.
_QUOTED_RANK = lazy_re(rb"call last\): (\(RANK \d{1,7}\))")


# What only the state of an object of Kubernetes has, not what people write to create it.
_STATE_FILES = (".yaml", ".yml")
_OBJECT_STATE = lazy_re(rb"(?m)^ {0,40}(?:- )?(?:containerStatuses|finishedAt|startedAt|lastTransitionTime|phase): ?")
_IN_EVERY_SHELL = (b"PATH=", b"PWD=")  # what every shell has in its environment
_KIND_NAMES: dict[TextKind, str] = {"document": "a document", "program": "a program", "data": "a data set"}
_COLLECTION_REPORT = "!/COLLECTED.md"
_NOT_COLLECTED = lazy_re(r"- \S*/(?P<piece>[^\s/]+): (?P<why>.+)")
_MOST_NAMED = 5
_EDGE_BYTES = 1 << 16
_PIECE_BYTES = 1 << 20
_MAX_UNREAD_BYTES = 1 << 28  # of each file, where nothing could be read


def writer_key(line: bytes) -> bytes:
    """Return the part of a line that differs between writers; a storm keeps some lines of each. Must be cheap.

    A traceback that others quote is that of the rank that its header names, whoever quotes it. Each process group of a
    rank has a watchdog of its own.
    """
    quoted = _QUOTED_RANK.search(line) if b"(RANK " in line else None
    if quoted is not None:
        return quoted[1]
    group = _PROCESS_GROUP.search(line) if b"[PG " in line else None
    own_group = group.group() if group else b""
    stamp = _STAMP.match(line)
    line = line[stamp.end() :] if stamp else line
    prefix = _LEADING_PREFIX.match(line)
    if prefix:
        return own_group + prefix.group()
    name = _LEADING_NAME.match(line)
    marks = _WRITER_MARKS.findall(line.replace(own_group, b"") if group else line, name.end() if name else 0)
    return own_group + b"\0".join([name.group().strip(), *marks[:3]] if name else marks[:3])


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
            if source.name.endswith(_COLLECTION_REPORT) and stream is not None:
                report = stream.read(_EDGE_BYTES).decode("utf-8", "replace")
                self.intake.warnings.extend(warnings_of_collection(report, source.name))
                continue
            content = _content(source, stream) if source.kind not in ("text", "empty") else None
            if self.intake.skip(source.name, content, _first_bytes(stream)):
                continue
            if source.kind in ("empty", "binary"):
                self.intake.unread.append((source.name, source.kind))
            if source.kind == "text" and stream is not None:
                yield source, stream
            elif content is not None:
                self.intake.artifacts.append(content)
                yield source, None


def warnings_of_collection(text: str, name: str) -> list[Warning]:
    """Return a warning for each piece that `triage collect` could not get; a node without nvidia-smi lacks nothing."""
    reasons: Counter[tuple[str, str]] = Counter()
    for line in text.partition("\n# What it could not get\n")[2].splitlines():
        match = _NOT_COLLECTED.fullmatch(line)
        if match is not None and not match["why"].endswith(("-smi is not installed", "since the processes began")):
            reasons[match["piece"], match["why"]] += 1
    warnings = []
    for (piece, why), count in sorted(reasons.items())[:_MOST_NAMED]:
        processes = f" of {count} processes" if count > 1 else ""
        warnings.append(Warning("not-collected", name, f"`triage collect` could not get {piece}{processes}: {why}"))
    return warnings


class Intake:
    """The files of a job, sorted into logs, artifacts and what is skipped.

    `artifacts`, `warnings` and `unread`, the (name, kind) of empty and binary files, fill up while the scan reads the
    containers. The warnings given are those of the discovery.
    """

    def __init__(
        self, files: Sequence[sources.File], paths: Sequence[str] = (), warnings: Sequence[Warning] = ()
    ) -> None:
        self._named_by_user = frozenset(paths)
        self._only_file = files[0].name if len(files) == 1 else ""
        self._roots = sorted((path.rstrip("/") + "/" for path in paths), key=len, reverse=True)
        self.warnings: list[Warning] = []
        self.artifacts: list[Artifact] = []
        denied = (warning.source for warning in warnings if warning.code == "unreadable")
        self.unread: list[tuple[str, str]] = [(name, "unreadable") for name in denied if name]
        self._skipped: set[str] = set()
        self._skipped_by_text: dict[str, str] = {}
        warm((file.path, max(0, file.size - 1)) for file in files if self._needs_sample(file))
        self._has_output = any(file.kind not in ("empty", "elf") and self._may_be_log(file) for file in files)
        self.files = [
            file
            for file in files
            if file.kind == "environment" or not self.skip(file.name, None, self._read_sample(file))
        ]

    def containers(self) -> list[_Container]:
        """Return one container for each file, to be scanned."""
        return [_Container(file, self, _plain_source(file)) for file in self.files]

    def skip(self, name: str, content: Artifact | None = None, start: bytes = b"") -> bool:
        """Skip a file that people write, not jobs, by its name and its text, and return whether it is skipped.

        A path that the user named is read whatever it is, and so is a whole environment (`export -p > env.sh`), the
        state of objects that a cluster writes (`kubectl get pod -o yaml`), a text that is a log by any name, and a
        document that is all there is and quotes lines: a report about the job.
        `start` has the first bytes, and may have the last ones behind them.
        """
        if name in self._named_by_user or (content is not None and _is_whole_environment(content)):
            return False
        kind = self._classify_name(name)
        if kind == "output" or (kind in ("fixture", "neutral") and not self._has_output):
            return False
        if name == self._only_file and is_prose(self._below_root(name)) and quotes_lines(start):
            return False
        if kind == "written":
            is_skipped = not (name.endswith(_STATE_FILES) and _OBJECT_STATE.search(start) is not None)
            is_skipped = is_skipped and (not start or classify_text(start) != "output")
            why = ""
        else:
            of_others = "of tests, of a package or of an earlier run"
            why = of_others if kind == "fixture" else _why_no_output(kind, name, start)
            is_skipped = bool(why) and content is None
        if is_skipped:
            self.unread.append((name, why or "a program, settings or a document"))
            self._skipped.update(() if why else (name,))
            self._skipped_by_text.update({name: why} if why else {})
        return is_skipped

    def _may_be_log(self, file: sources.File) -> bool:
        """Whether its name, or where that says nothing its text, is that of a log."""
        kind = self._classify_name(file.name)
        return kind == "output" or (
            kind == "neutral" and (file.kind != "text" or not _why_no_output(kind, file.name, self._read_sample(file)))
        )

    def _classify_name(self, name: str) -> NameKind:
        return classify_name(self._below_root(name))

    def _below_root(self, name: str) -> str:
        """Return the name without the directory that the user gave."""
        return name[len(next((root for root in self._roots if name.startswith(root)), "")) :]

    def _shorten_name(self, name: str) -> str:
        """Return the name below the directory that the user gave; with several directories the whole name."""
        return self._below_root(name) if len(self._roots) == 1 else name

    def _needs_sample(self, file: sources.File) -> bool:
        return file.kind == "text" and self._classify_name(file.name) not in ("output", "fixture")

    def _read_sample(self, file: sources.File) -> bytes:
        """Return the first and the last bytes of a file whose name alone does not show what it is."""
        if not self._needs_sample(file):
            return b""
        try:
            start, end = read_edges(file.path, file.size, SAMPLE_BYTES, SAMPLE_BYTES // 2)
        except OSError:
            return b""
        return start.rpartition(b"\n")[0] + b"\n" + end.partition(b"\n")[2] if end else start

    def all_warnings(self) -> list[Warning]:
        """Return the warnings once everything is read, with one for all files that are skipped for the same reason."""
        warnings = list(self.warnings)
        for name, reason in sorted(find_changed_objects(file.path for file in self.files).items()):
            message = f"changed while it was read ({reason}): evidence may be missing or mixed; diagnose the job again"
            warnings.append(Warning("changed", name, message))
        if self._skipped:
            why = "programs, settings and documents are not logs"
            warnings.append(_warn_of_skipped(why, sorted(map(self._shorten_name, self._skipped))))
        if self._skipped_by_text:
            names = [f"{self._shorten_name(name)} ({kind})" for name, kind in sorted(self._skipped_by_text.items())]
            warnings.append(_warn_of_skipped("their text is not the output of a job", names))
        return warnings

    def warn_unreadable(self, name: str, error: OSError) -> None:
        """Warn that a file could not be read to its end."""
        self.unread.append((name, "unreadable"))
        self.warnings.append(Warning("unreadable", name, f"could not be read to its end: {error.strerror or error}"))

    def identify(self, scanned: Sequence[tuple[Source, ScanResult]], artifacts: Sequence[str]) -> str:
        """Return the digest of everything that was read, whatever the files are called and in whatever order.

        `artifacts` are the digests of artifacts. If nothing could be read, the names and the bytes of the files count.
        """
        texts = [f"text {scan.digest or _digest_ends(scan)}" for _, scan in scanned if scan.size]
        read = [*texts, *(f"artifact {digest}" for digest in artifacts)]
        return digest_list(sorted(read or self._identify_unread()))

    def _identify_unread(self) -> Iterator[str]:
        """Yield the name, below the paths of the user, and the content of each file."""
        unread = {name: name for name, _ in self.unread} | {file.name: file.path for file in self.files}
        for name, path in unread.items():
            file, separator, member = name.partition("!/")
            file = os.path.basename(file) if file in self._named_by_user else self._below_root(file)
            content = "" if member else _digest_file(path)  # that of its archive counts
            yield f"unread {json.dumps(file + separator + member)} {content}"


def _digest_ends(scan: ScanResult) -> str:
    """Return what tells apart the states of a text that still grows; no incident is stored of it."""
    return f"grows {scan.size} {digest_bytes(scan.head)} {digest_bytes(scan.tail)}"


def _digest_file(path: str) -> str:
    """Return the size of a file that could not be understood and the digest of its first bytes, or why it has none."""
    digest = start_digest()
    try:
        with contextlib.closing(open_file(path, is_scanned=True)) as opened:
            size, offset = opened.size(), 0
            while piece := opened.read_at(min(_MAX_UNREAD_BYTES - offset, _PIECE_BYTES), offset):
                digest.update(piece)
                offset += len(piece)
    except (OSError, ValueError) as error:
        return f"error {getattr(error, 'errno', None)}"
    return f"{size} {digest.hexdigest()}"


def _plain_source(file: sources.File) -> Source | None:
    """Return the source of a text that the scan reads by its path, at any offset; None for all else."""
    return source_in_place(file) if file.kind == "text" and not file.is_sparse else None


def _why_no_output(kind: NameKind, name: str, start: bytes) -> str:
    """Return what a text is that no job wrote; empty where a job may have written it."""
    if not start or is_process_snapshot(name, start):
        return ""
    text_kind = classify_text(start, is_named_document=kind == "document")
    if text_kind == "unclear" and kind == "document":
        text_kind = "document"
    return _KIND_NAMES.get(text_kind, "")


def _warn_of_skipped(why: str, names: Sequence[str]) -> Warning:
    left_out = len(names) - _MOST_NAMED
    more = f" and {left_out} more" if left_out > 0 else ""
    return Warning(
        "no-output", None, f"skipped, because {why}: {', '.join(names[:_MOST_NAMED])}{more}; name a file to read it"
    )


def _first_bytes(stream: BinaryIO | None) -> bytes:
    """Return the first bytes of a stream without consuming them, where it can."""
    peek = getattr(stream, "peek", None)
    return peek(_EDGE_BYTES) if peek is not None else b""


def _is_whole_environment(content: Artifact) -> bool:
    return content.source.kind == "environment" and all(variable in content.data for variable in _IN_EVERY_SHELL)


def _content(source: Source, stream: BinaryIO | None) -> Artifact:
    reader = artifacts.find_reader(source)
    if reader is None:
        return Artifact(source, b"")
    if stream is not None and isinstance(reader, StreamReader):
        return reader.read_stream(source, stream)
    if stream is not None:
        return Artifact(source, stream.read(reader.max_bytes))
    most = min(reader.max_bytes, _EDGE_BYTES) if getattr(reader, "reads_in_place", False) else reader.max_bytes
    with open(source.path or "", "rb") as file:
        return Artifact(source, file.read(most))
