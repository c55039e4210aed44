"""What most layouts need: the lines of a story by writer, and a collection of log files in the order of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from triage.testing.composer.layouts.ends import Stop, cut_story, is_healthy
from triage.testing.composer.model import Line, LogLine, Story, Stream, World, split_lines

Place = Callable[[Line], tuple[str, str]]
"""Return the path of the file of a line, and the prefix that the line has there."""


class LogFiles:
    """Collects lines for files; `finished` returns each file in the order of time."""

    def __init__(self) -> None:
        self._lines: dict[str, list[LogLine]] = defaultdict(list)

    def add(self, path: str, at: float, text: str, host: str = "", stream: Stream = "stderr") -> None:
        """Add text of one or several lines."""
        self._lines[path] += [LogLine(at, part, host, stream) for part in text.split("\n")]

    def add_ranks(self, story: Story, world: World, place: Place, stops: Sequence[Stop] = ()) -> None:
        """Add the lines that ranks wrote before they were stopped, each where `place` says."""
        for line in split_lines(rank_lines(cut_story(story, world, stops))):
            path, prefix = place(line)
            self.add(path, line.at, prefix + line.text, world.host(line.writer.number), line.stream)

    def finished(self) -> Mapping[str, tuple[LogLine, ...]]:
        """Return the files; lines with equal times keep the order in which they were added."""
        return {path: tuple(sorted(lines, key=lambda line: line.at)) for path, lines in self._lines.items()}


@dataclass(frozen=True, slots=True)
class Console:
    """Where a launcher writes: a file, the host that it runs on, and a prefix before each line."""

    files: LogFiles
    path: str
    host: str = ""
    prefix: str = ""

    def write(self, at: float, text: str) -> None:
        """Add text of one or several lines."""
        self.files.add(self.path, at, "\n".join(self.prefix + part for part in text.split("\n")), self.host)

    def with_prefix(self, prefix: str) -> Console:
        """Return the same place with another prefix."""
        return replace(self, prefix=prefix)


def add_others(story: Story, consoles: Sequence[Console], scheduler: Console | None = None) -> None:
    """Add the story's lines of launchers, each to the console of its node, and of the scheduler."""
    for line in story.lines:
        if line.writer.kind == "launcher":
            consoles[line.writer.number % len(consoles)].write(line.at, line.text)
        elif line.writer.kind == "scheduler":
            (scheduler or consoles[0]).write(line.at, line.text)


def rank_lines(story: Story) -> tuple[Line, ...]:
    """Return the lines that ranks wrote."""
    return tuple(line for line in story.lines if line.writer.kind == "rank")


def node_consoles(files: LogFiles, world: World, form: str = "{host}.log", single: str = "") -> tuple[Console, ...]:
    """Return the console of each node; `form` may use host and node, `single` is the path in a job of one node."""
    forms = single if single and len(world.hosts) == 1 else form
    return tuple(Console(files, forms.format(host=host, node=node), host) for node, host in enumerate(world.hosts))


def names_itself(story: Story, world: World) -> bool:
    """Whether each rank wrote a record with its rank and host, which names them for all lines of the same writer."""
    texts: dict[int, list[str]] = {}
    for line in rank_lines(story):
        texts.setdefault(line.writer.number, []).append(line.text)
    return all(any(world.introduce(rank) in text for text in texts.get(rank, ())) for rank in world.ranks)


__all__ = ["Console", "LogFiles", "Place", "add_others", "is_healthy", "names_itself", "node_consoles", "rank_lines"]
