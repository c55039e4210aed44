"""Ranks that must share a source with others, since lower and higher ones write in it, but of which no line was read.

Of a large source only its ends and the lines around failures are read, so that a rank without a failure may be missed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from triage.ranks.layouts import Layout
from triage.records.activity import SEARCHED_BYTES, Activity, read_activity
from triage.records.earlier_ends import find_lines_backwards

# With fewer others for each missing rank, a launcher may show the output of some ranks only.
_FEWEST_OTHERS = 4
_MOST = 64
# How far from the start of a line its rank stands at most, and how much of the text around the number is compared.
_START_BYTES, _BEFORE, _BEHIND = 256, 24, 3
_ANY_RANK = rb"\d{1,9}"


def list_unread_ranks(ranks: Collection[int]) -> list[int]:
    """Return the few ranks that are missing between these; none where many are."""
    if not ranks:
        return []
    span = range(min(ranks), max(ranks) + 1)
    are_few = 0 < len(span) - len(ranks) <= min(_MOST, len(ranks) // _FEWEST_OTHERS)
    return [rank for rank in span if rank not in ranks] if are_few else []


def find_last_activity(
    read: Callable[[int, int], bytes],
    size: int,
    ranks: Sequence[int],
    others: Iterable[Activity],
    year: int,
    layout: Layout,
) -> list[Activity] | None:
    """Return the last activity of ranks whose lines show their rank as those of `others` do.

    None: the lines of the others have no text in common around their rank, or some of these have no line in the last
    SEARCHED_BYTES of a larger source, so that it is not known whether they wrote any.
    """
    starts = {each.origin.rank: each.offset for each in others if each.origin.rank is not None}
    mark = _find_mark({rank: read(offset, _START_BYTES).split(b"\n", 1)[0] for rank, offset in starts.items()})
    if mark is None:
        return None
    wanted, last = set(ranks), list[Activity]()
    of_rank, of_any = (_compile(mark, number) for number in (b"|".join(b"%d" % rank for rank in ranks), _ANY_RANK))
    for offset, line in find_lines_backwards(read, size, of_rank):
        shown = of_any.search(line)
        if shown is None or int(shown[1]) not in wanted:
            continue
        last += read_activity(line, offset, year, layout, whole=True, by_prefix=True)
        wanted.remove(int(shown[1]))
        if not wanted:
            break
    if wanted and size > SEARCHED_BYTES:
        return None
    return sorted(last, key=lambda activity: activity.offset)


def _find_mark(lines: Mapping[int, bytes]) -> tuple[bytes, bytes] | None:
    """Return the text before and behind the rank, `[rank` and `]: `, in a line of most of these ranks and in no line
    around another number.
    """
    counts = Counter(mark for rank, line in sorted(lines.items()) for mark in dict.fromkeys(_list_marks(rank, line)))
    for mark, count in counts.most_common():
        if count <= max(_FEWEST_OTHERS, len(lines) // 2):
            break
        pattern = _compile(mark, _ANY_RANK)
        shown = {rank: pattern.search(line) for rank, line in lines.items()}
        if all(match is None or int(match[1]) == rank for rank, match in shown.items()):
            return mark
    return None


def _list_marks(rank: int, line: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield what stands before and behind each place of the rank in a line, up to the next digits; not its blanks."""
    for number in re.finditer(rb"(?<!\d)%d(?!\d)" % rank, line):
        before = re.split(rb"\d", line[max(0, number.start() - _BEFORE) : number.start()])[-1].rstrip(b" ")
        behind = re.split(rb"\d", line[number.end() : number.end() + _BEHIND])[0]
        yield before, behind


def _compile(mark: tuple[bytes, bytes], number: bytes) -> re.Pattern[bytes]:
    before, behind = map(re.escape, mark)
    return re.compile((before or rb"^") + rb" *(" + number + rb")" + behind, re.M)
