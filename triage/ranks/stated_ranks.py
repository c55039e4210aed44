"""Read from a text which rank it is about: `[Rank 7] Watchdog …`, `failed on ranks dict_keys([9])`, `world_rank=1`.

A text also names peers (`from rank 13`, `waiting for rank 5`), which did not write it. Words of peers are removed
first, so that no peer is ever taken for the writer. The forms of SUBJECTS are tried in their order; if the first that
is found names different ranks in different places, the text names none.
"""

from __future__ import annotations

import functools
import re

from triage.base.digit_masks import ask_masked_text
from triage.base.host_lists import expand_numbers
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re

LONGEST = 4000
_MOST = 4096
_BARRIER = "monitoredBarrier"  # its `[Rank 0]` is a number in the process group, which may be a small one
_HINTS = ("rank", "process", "gpu", "npu", "cuda:")
_LIST = r"\d{1,6}(?:(?:\s?-\s?|,\s?(?:and\s)?|\sand\s)\d{1,6})*"
_MEMBERS = lazy_re(
    r"\b(?:ranks|rankNum|rankSize|totalRanks)\[\d|\b(?:user|localUser|remoteUser)[Rr]ank\[\d|\brole\[\d\] ?rank\[\d"
)
_NUMBERS = rf"(?:dict_keys\()?[\[({{]{{0,2}}(?P<numbers>{_LIST})\b(?!\.\d)"
_RANK = r"(?<![A-Za-z])(?i:(?:global|world)[ _-]?)?(?i:rank)"
# Between the word and its number: `rank 3`, `rank: 3`, `rank=3`, `Rank[3`, `rank_3`, `rank3`.
_TO_NUMBER = r"(?i:[_ ]?id)?(?:\s?[:=#]\s?|[ _\[<-])?"


@dataclass(frozen=True, slots=True)
class StatedForm:
    """One way to name a rank. Group `numbers` of the pattern has one number, or several as in `3-5, 7`.

    `part` says what is numbered. `is_tag`: a program marks its own lines so; else the text is about this rank, and
    another may have written it.
    """

    name: str
    part: str
    is_tag: bool
    examples: tuple[str, ...]
    pattern: re.Pattern[str]

    @property
    def is_start(self) -> bool:
        """Does it stand before all other words, so that none of them can make it a peer's?"""
        return self.name == "tag at the start"

    @property
    def may_repeat(self) -> bool:
        """Are all ranks meant where several places of a text name ranks in this form?"""
        return self.name in ("heading of a report", "place of a failure", "subject of a sentence")


@dataclass(frozen=True, slots=True)
class StatedRanks:
    """The ranks, or the local ranks, that a text is about, ascending. `form` is the name of the form that says so."""

    form: str = ""
    part: str = ""
    is_tag: bool = False
    numbers: tuple[int, ...] = ()


# Texts that name a rank as the object: the other side of a transfer, whom a rank waits for, who is absent.
PEERS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        "behind a preposition",
        ("from rank 13", "to ranks [2, 3]", "waiting for rank 5", "closed by rank 4", "between rank 1 and rank 2"),
        lazy_re(
            r"(?i)(?:(?<!hello )(?<!world )(?<!hi )(?<!greetings )\b"
            r"(?:from|to|towards?|with|for|by|via|between|against|than|as|until|unlike|except|versus|vs\.?|contact|"
            r"await(?:s|ing)?|reach(?:es|ing)?|check|see|ask(?:s|ing)?|connect(?:s|ing)?)|->|=>)\s"
            r"(?:the\s)?(?:(?:source|src|dst|destination|remote|peer|global|local|world|other|lost|missing)[ _])*"
            rf"rank(?:s|\(s\))?{_TO_NUMBER}[\[({{]?{_LIST}(?:'s)?[\])}}]?(?: and rank \d+)?"
        ),
    ),
    (
        "a role in a transfer",
        ("peer rank 3", "src_rank=2", "root rank 0", "peer 4", "dstRank[1]", "remoteRank:7", "nextRank 2"),
        lazy_re(
            r"(?i)(?:\b|_)(?:source|src|dst|dest|destination|remote|peer|root|target|next|prev|previous|neighbou?r|left|"
            r"right|master|leader|coordinator|server|other|send|recv|parent|child)"
            rf"(?:[ _-]?rank(?:s|\(s\))?{_TO_NUMBER}|[ =:]\s?)[\[({{]?{_LIST}[\])}}]?"
        ),
    ),
    (
        "who is absent",
        (
            "missing ranks: 3, 5",
            "ranks not responding: [3]",
            "rank 3 did not join",
            "Rank 4 failed to pass",
            "rank 3's",
        ),
        lazy_re(
            r"(?i)\b(?:missing|absent|unreachable|unresponsive|stalled|lagging|straggl\w+|slow(?:est)?|late)\s"
            rf"rank(?:s|\(s\))?{_TO_NUMBER}[\[({{]?{_LIST}[\])}}]?"
            r"|\branks?\b[^\n.;\d]{0,40}\b(?:not|never|missing|absent|missed|late)\b[^\n.;\d]{0,40}"
            rf"[:=]?\s?[\[({{]?{_LIST}[\])}}]?"
            rf"|\brank(?:s|\(s\))?{_TO_NUMBER}[\[({{]?{_LIST}[\])}}]?(?:'s\b|\s(?:has|have|had|is|are|was|were|did|does|do|"
            r"still|yet)?\s?"
            r"(?:not\b|never|n't|missing|absent|unreachable|unresponsive|waiting|late|lagging|behind|stuck|"
            r"(?:failed|fails) to (?:pass|join|respond|report|reach|arrive|connect|call|enter|send|check)|"
            r"stopped responding|(?:didn|hasn|wasn|isn|doesn)'t))"
        ),
    ),
    (
        "a number that is no rank of the job",
        ("invalid rank: 9", "rank 9 is out of range", "rank 9 exceeds the world size"),
        lazy_re(
            rf"(?i)\b(?:invalid|unknown|bad|illegal|no such|unexpected|wrong) ranks?{_TO_NUMBER}\d+"
            rf"|\branks?{_TO_NUMBER}\d+\)? (?:is |was |are )?(?:out of (?:range|bounds)|exceeds|must|should|larger|"
            r"greater|invalid|outside)"
        ),
    ),
    (
        "advice and roles of rank 0",
        ("on rank 0 only", "only rank 0", "only on rank 0", "if rank == 0", "non-rank 0", "rank 0 store"),
        lazy_re(
            rf"(?i)\b(?:only|not|non|except|if)[ -](?:on |in |by |for )?ranks?{_TO_NUMBER}=?\s?\d+"
            r"|\b(?:on |in )?ranks? \d+ (?:only|(?:TCP)?store|server|host|hosts|listens)\b|\brank\s?[!=<>]=\s?\d+"
            r"|\branks?\s?[<>]\s?\d+"
        ),
    ),
    (
        "ranks of matrices and groups",
        ("lora_rank=8", "low rank 4", "rank 2 tensor", "tensor of rank 3", "tp_rank=1", "node_rank=0", "a rank 4 in"),
        lazy_re(
            r"(?i)\b(?:lora|low|matrix|tensor|full|max|min|svd|tp|pp|dp|cp|ep|sp|mp|vpp|pipeline|data|model|expert|node|"
            r"machine|group|role|shard|mesh|sub|team|intra|inter|stage|replica|server|device)"
            rf"(?:_parallel| parallel)?[ _-]ranks?{_TO_NUMBER}[\[(]?\d+|\b(?:tensors?|matri(?:x|ces)|input|shape|order)"
            r"\s(?:of|with|has|have)\srank\s\d+|\brank[ -]\d+ (?:tensor|matrix|update|approximation|decomposition)s?\b"
            r"|\brank \d+ (?:in|of) (?:communicator(?! MPI_COMM_WORLD)|group|the (?:tp|pp|dp|cp|ep) group)\b"
            r"|\[PG ID [1-9]\d* [^\]\n]*\]|\b(?:expected|expects|must be)\srank\s\d+"
        ),
    ),
)


def _form(name: str, part: str, is_tag: bool, examples: tuple[str, ...], pattern: str) -> StatedForm:
    return StatedForm(name, part, is_tag, examples, lazy_re(pattern))


_START = r"(?m:^)(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning): )?\W{0,3}"
SUBJECTS: tuple[StatedForm, ...] = (
    _form(
        "tag at the start",
        "rank",
        True,
        (
            "[Rank 7] Watchdog caught collective operation timeout",
            "RuntimeError: [Rank 7] boom",
            "Rank[2] ERROR: boom",
            "| rank 2 | boom",
            "(rank 2) boom",
            "<rank2> boom",
            "Rank 3: boom",
            "rank=3 boom",
            "global_rank: 3 - boom",
        ),
        rf"{_START}{_RANK}{_TO_NUMBER}{_NUMBERS}(?:\s?[\])>|:]|\s-\s|(?<=\d)\s(?=[A-Z]{{4,}}\b))"
        rf"|{_START}(?<![A-Za-z])(?i:(?:global|world)[ _-]?)?(?i:rank)=(?P<number>\d{{1,6}})\b",
    ),
    _form(
        "tag in brackets",
        "rank",
        True,
        (
            "[ERROR] [rank: 3] boom",
            "[PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated",
            "INFO | rank 2 | boom",
            "boom (RANK 9)",
            "boom (world_rank=1)",
            "ERROR Rank[2] boom",
        ),
        rf"\[(?:[^\[\]\n]{{0,60}} )?{_RANK}{_TO_NUMBER}{_NUMBERS}\]|\({_RANK}{_TO_NUMBER}(?P<number>\d{{1,6}})\)"
        rf"|\|\s{{0,4}}{_RANK}{_TO_NUMBER}(?P<piped>\d{{1,6}})\s{{0,4}}\||{_RANK}\[(?P<indexed>\d{{1,6}})\]",
    ),
    _form(
        "greeting",
        "rank",
        True,
        (
            "hello from rank 5 of 12",
            "Hello, world from rank 3",
            "Hi from process rank 2 on node1",
            "hello, rank 4 here",
        ),
        r"(?i:\b(?:hello|hi|greetings)(?:,? world)?[,!:]? (?:(?:this is|i am|from) )?(?:the )?(?:process |worker )?)"
        rf"{_RANK}{_TO_NUMBER}{_NUMBERS}",
    ),
    _form(
        "heading of a report",
        "rank",
        False,
        ("[Rank 1 Error Snippet]:", "===== Rank 3 traceback =====", "--- error of rank 2 ---"),
        rf"\[{_RANK}{_TO_NUMBER}{_NUMBERS} (?i:error|failure|traceback|stack|log|output)\b[^\]\n]{{0,30}}\]"
        r"|(?<![=#*-])[=#*-]{3,} ?(?i:(?:error|failure|traceback|stack) (?:of|on|in) )?"
        rf"{_RANK}{_TO_NUMBER}(?P<number>\d{{1,6}})"
        r"\b[^=#*\n]{0,30}[=#*-]{3,}",
    ),
    _form(
        "key and value",
        "rank",
        False,
        ("boom world_rank=1", "boom RankID:101", "boom, RANK=3", "boom rank_id[4]", "boom rank: 5", "myrank 3"),
        rf"(?<![A-Za-z_])(?i:(?:(?:global|world|current|cur|my|self|user)[ _-]?)?rank(?:[_ ]?id)?)(?:\s?[:=]\s?|\[)"
        rf"{_NUMBERS}|\b(?i:(?:global|world|my|current|this)[_ ]?rank)\s(?P<number>\d{{1,6}})\b",
    ),
    _form(
        "place of a failure",
        "rank",
        False,
        (
            "save failed on ranks dict_keys([9])",
            "CheckpointException ranks:dict_keys([9])",
            "NaN on rank 3",
            "bad shards on ranks 3-5",
            "error in ranks 3, 4 and 5",
            "exception at rank 7",
            "the loss of rank 2 is NaN",
        ),
        rf"\b(?i:on|in|at|of|inside) (?i:the )?(?i:worker |process |task |trainer )?{_RANK}(?i:s|\(s\))?{_TO_NUMBER}"
        rf"{_NUMBERS}|{_RANK}(?i:s|\(s\)):\s?dict_keys\(\[(?P<keys>{_LIST})\]\)",
    ),
    _form(
        "subject of a sentence",
        "rank",
        False,
        ("Rank 3 failed: boom", "worker rank 3 raised an exception", "ranks 3, 5 ran out of memory", "rank 2 got NaN"),
        rf"{_RANK}(?i:s|\(s\))?{_TO_NUMBER}{_NUMBERS}[\])}}]*(?: \([^)\n]{{0,60}}\))?,? (?i:has |have |was |were |is |"
        r"are |just )?(?i:failed|fails|died|crash(?:ed|es)|exited|raised|raises|threw|throws|hit|got|gets|"
        r"encounter(?:ed|s)|reported|killed|abort(?:ed|s|ing)|terminated|ran out|out of|timed out"
        r"|stopped|could not|cannot|"
        r"can't|detected|caught|found|sees|saw|received|produced|diverged|lost|panicked|segfaulted|errored|unable)\b",
    ),
    _form(
        "local rank",
        "local_rank",
        False,
        ("boom on local rank 3", "localRank 3 boom", "local_rank=3", "LOCAL_RANK: 3", "[local_rank 3] boom"),
        r"(?<![A-Za-z-])(?i:local[ _-]?rank)(?:\s?[:=]\s?|[ \[])(?P<numbers>\d{1,3})\b(?!\.\d)",
    ),
    _form(
        "process of a spawn",
        "local_rank",
        False,
        ("process 1 terminated with signal SIGSEGV", "process 1 terminated with exit code 7"),
        r"\b[Pp]rocess (?P<numbers>\d{1,3}) terminated with (?:signal|exit code)\b",
    ),
    _form(
        "device",
        "device",
        False,
        (
            "GPU 5 has a total capacity of 79.10 GiB",
            "Tried to allocate 2.00 GiB (GPU 5; 79.15 GiB total capacity;",
            "(NPU 3; 60.97 GiB total capacity;",
            "device-side assert on cuda:3",
            "device=cuda:6",
        ),
        r"\b(?:[GNX]PU|MLU) (?P<numbers>\d{1,2})(?: has a total capac|; [\d.]+ [KMGT]iB)"
        r"|(?:\bon (?:device )?|\bdevice[ =:]{1,2})(?:cuda|npu|xpu|mlu):(?P<number>\d{1,2})\b",
    ),
)


@functools.lru_cache(maxsize=4096)  # many ranks print the same text
def read_stated_ranks(text: str) -> StatedRanks:
    """Return the ranks that a text is about by the first form found; none where it is not one clear statement."""
    text = text[:LONGEST]
    if not _may_state_ranks(text):
        return StatedRanks()
    without_peers = remove_peers(text)
    for form in SUBJECTS:
        mentions = {_numbers_of(match) for match in form.pattern.finditer(text if form.is_start else without_peers)}
        if len(mentions) == 1 or (mentions and form.may_repeat):
            numbers = tuple(sorted(set().union(*mentions)))
            return StatedRanks(form.name, form.part, form.is_tag and _BARRIER not in text, numbers)
        if mentions:
            break
    return StatedRanks()


@ask_masked_text
def _may_state_ranks(text: str) -> bool:
    """Whether a form may be found in a text; no digit decides that, except in the number of a process group."""
    lower = text.lower()
    if not any(hint in lower for hint in _HINTS) or numbers_members(text):
        return False
    if "[PG ID " in text:
        return True
    without_peers = remove_peers(text)
    return any(form.pattern.search(text if form.is_start else without_peers) is not None for form in SUBJECTS)


def numbers_members(text: str) -> bool:
    """Whether the numbers in a text are those of members of one of HCCL's communicators, not ranks of the job."""
    return _MEMBERS.search(text[:LONGEST]) is not None


def remove_peers(text: str) -> str:
    """Return the text without the words that name a rank as a peer, or a number that is no rank of the job."""
    for _, _, pattern in PEERS:
        text = pattern.sub(" \0 ", text)
    return text


def _numbers_of(match: re.Match[str]) -> tuple[int, ...]:
    listed = next(value for value in match.groupdict().values() if value is not None)
    compact = re.sub(r"\s?-\s?", "-", re.sub(r",\s?(?:and\s)?|\sand\s", ",", listed))
    return tuple(sorted(set(expand_numbers(compact)[:_MOST])))
