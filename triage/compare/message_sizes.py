"""Who sent a message of the wrong size: the receiver complains, so other lines of the ranks must show the sender.

Only where a line says that a message has another size than expected are the ends of all texts read once more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.base.rank_ranges import format_ranks
from triage.evidence.extracted import ExtractedJob
from triage.evidence.extraction import source_text
from triage.evidence.inference import make_inferences
from triage.model import Evidence, Source
from triage.scan.interface import ScanResult

ReadBytes = Callable[[int, int], bytes]
RANK_MINIMUM = 3
"""So many ranks must print a number before one of them can be the odd one."""

# Gloo: the number of bytes received and expected. All ranks take part, so sizes that they print can be compared.
_COLLECTIVE_SIZE = lazy_re(r"op\.preamble\.length <= op\.nbytes\. (\d{1,15}) vs (\d{1,15})")
# NCCL's network: one receiver and one sender.
_PAIR_SIZE = masked_re(
    r"(?i)message truncated ?: receiv(?:ing|ed) \d{1,15}(?:,\d{1,9})? bytes instead of \d{1,15}"
    r"|collective mismatch error,? local size \d{1,15} remote (?:size )?\d{1,15}"
)
_RECEIVES_FROM = lazy_re(
    r"(?i)\bi?(?:recv|receiv\w{1,4})\b[^\n]{0,80}?\b(?:from|src|source|peer)(?:[ _]rank)?[ =:#]{1,3}"
    r"(?:(?:rank|peer)[ =:#]{0,2})?(\d{1,6})\b"
)
_GROUPED = lazy_re(r"(?<=\d),(?=\d{3}\b)")
_NUMBER = lazy_re(r"\d{1,15}")
_HAS_DIGIT = lazy_re(rb"\d")
_LONGEST_LINE, _MOST_LINES = 300, 40_000
_WIDEST_ELEMENT = 8  # bytes; Gloo rounds a part of a tensor up to whole elements
_MOST_ROUNDING = 0.2


@dataclass(frozen=True, slots=True)
class _RankLine:
    """A line without its prefix, and the rank that wrote it."""

    rank: int
    text: str


def infer_wrong_sizes(
    facts: Iterable[Evidence],
    texts: Sequence[tuple[Source, ScanResult]],
    read_of: Callable[[Source, ScanResult], ReadBytes],
    extracted: ExtractedJob,
) -> list[Evidence]:
    """Return an inference for each rank that sent a message of the wrong size, as far as other lines show it."""
    collective = next((fact for fact in facts if _COLLECTIVE_SIZE.search(fact.text)), None)
    pair = next((fact for fact in facts if _PAIR_SIZE.search(fact.text)), None)
    if collective is None and pair is None:
        return []
    lines = list(_read_last_lines(texts, read_of, extracted))
    inferences = _infer_odd_size(collective, lines) if collective is not None else []
    if pair is not None:
        receiver = extracted.job.complete(pair.source, pair.origin).rank
        inferences += _infer_sender(pair, receiver, lines) if receiver is not None else []
    return inferences


def _read_last_lines(
    texts: Sequence[tuple[Source, ScanResult]],
    read_of: Callable[[Source, ScanResult], ReadBytes],
    extracted: ExtractedJob,
) -> Iterator[_RankLine]:
    """Yield the lines of known ranks at the ends of all texts."""
    left = _MOST_LINES
    for source, scan in texts:
        text = source_text(source, scan, read_of(source, scan), extracted)
        offset = scan.size - len(scan.tail)
        for data in scan.tail.split(b"\n"):
            for line in text.parse_line(data, offset) if _HAS_DIGIT.search(data) else ():
                rank = extracted.job.complete(source.name, line.parsed.origin).rank
                if rank is not None and len(line.parsed.text) <= _LONGEST_LINE:
                    yield _RankLine(rank, line.parsed.text)
                left -= 1
            offset += len(data) + 1
        if left <= 0:
            return


def _infer_odd_size(fact: Evidence, lines: Sequence[_RankLine]) -> list[Evidence]:
    """One rank prints another number than the others, as much larger as the received message: it is the odd one."""
    size = _COLLECTIVE_SIZE.search(fact.text)
    if size is None or not int(size[2]):
        return []
    received, expected = int(size[1]), int(size[2])
    for form, numbers in _group_numbers(lines).items():
        for position in range(len(next(iter(numbers.values())))):
            of_rank = {rank: values[position] for rank, values in numbers.items()}
            odd, usual = _find_odd(of_rank)
            value = of_rank[min(odd)] if odd else 0
            if odd and _is_same_ratio(value, usual, received, expected):
                has = f"{format_ranks(odd)} {'has' if len(odd) == 1 else 'have'} {value}, the others {usual}"
                text = f"{has} in '{form[:80].strip()}'; the message had {received} bytes instead of {expected}"
                return make_inferences("shape-mismatch", odd, text, fact)
    return []


def _group_numbers(lines: Iterable[_RankLine]) -> Mapping[str, Mapping[int, list[int]]]:
    """Return lines that differ only in numbers, to the numbers in the last such line of each rank."""
    groups: dict[str, dict[int, list[int]]] = defaultdict(dict)
    for line in lines:
        text = _GROUPED.sub("", line.text)
        numbers = [int(number) for number in _NUMBER.findall(text)]
        if numbers:
            groups[_NUMBER.sub("#", text)][line.rank] = numbers
    return {form: of_rank for form, of_rank in groups.items() if len(of_rank) >= RANK_MINIMUM}


def _find_odd(values: Mapping[int, int]) -> tuple[set[int], int]:
    """Return the few ranks that have one other number than most, and the number of most."""
    counts = Counter(values.values()).most_common()
    if len(counts) != 2 or counts[0][1] <= 2 * counts[1][1] - (len(values) == RANK_MINIMUM):
        return set(), 0
    return {rank for rank, value in values.items() if value != counts[0][0]}, counts[0][0]


def _is_same_ratio(one: int, other: int, received: int, expected: int) -> bool:
    """Whether two numbers have the ratio of two sizes in bytes, in either order, but for whole elements."""
    if not one or not other:
        return False
    ratio, wanted = max(one, other) / min(one, other), max(received, expected) / min(received, expected)
    tolerance = min(_MOST_ROUNDING, _WIDEST_ELEMENT / min(received, expected) + 0.01)
    return abs(ratio / wanted - 1) <= tolerance


def _infer_sender(fact: Evidence, receiver: int, lines: Iterable[_RankLine]) -> list[Evidence]:
    """The receiver's last line that says from whom it receives names the sender: which of the two is wrong is open."""
    sender = None
    for line in lines:
        match = _RECEIVES_FROM.search(line.text) if line.rank == receiver else None
        if match and int(match[1]) != receiver:
            sender = int(match[1]), line.text.strip()
    if sender is None:
        return []
    text = f"rank {receiver} received it from rank {sender[0]}, as its own line shows: '{sender[1][:80]}'"
    return make_inferences("message-pair", (receiver, sender[0]), text, fact)
