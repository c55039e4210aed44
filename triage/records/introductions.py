"""Read the host of a rank from a line in which a process introduces itself or a launcher lists it.

`rank 3 of 8 on node1, pid 412`, `rank=3 hostname=node1`, `node1: rank 3 ready`, `MPI startup(): 3 412 node1 {0,1}`.
The host of another process in such a line, as of the store that a rank connects to, is not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.base.digit_masks import ask_masked, ask_masked_text
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.model.evidence import Origin

LONGEST = 400
# A host name: devices, models of GPUs, counters, and addresses are none.
_NAME_OF_HOST = (
    r"(?!(?:cuda|cpu|dev(?:ice)?|step|rank|epoch|iter(?:ation)?|batch|layer|stage|phase|seed|attempt|run|local|global|"
    r"port|localhost)[_:.-]?\d{0,9}\b(?![.-]))(?!0x)(?!(?-i:[A-Z]{1,3}\d{2,4}[A-Za-z]{0,2})\b(?!-))"
    r"(?=[\w.-]{0,60}[A-Za-z])[A-Za-z0-9][\w-]{2,62}(?:\.[\w-]{1,63}){0,6})(?=$|[ ,;'\")\]|]|[:.](?!\w))"
)
# `gpu-1` is a device; `gpu-01`, `gpu114` and `gpu-1.cluster` are hosts, and so is any of them that is called a host.
_NAME = rf"(?P<host>(?!(?:[gnx]pu|mlu)[_:.-]?(?:0|[1-9]\d?)?(?![\w.-])){_NAME_OF_HOST}"
_CALLED_HOST = rf"(?P<host>(?!(?:[gnx]pu|mlu)(?:[:.]|(?![\w.-]))){_NAME_OF_HOST}"
_WITH_DIGIT = r"(?=[\w.-]{0,60}\d)"
_RANK = r"(?<![a-z_-])(?:(?:global|world|mpi|process)[ _-])?rank[ :=#]{0,2}\d{1,6}\b"
_BETWEEN = (
    r"(?:,? ?(?:/ ?\d{1,7}|\(?(?:pid|process)[ :=]{0,2}\d{1,7}\)?|\(?local[ _]rank[ :=]{1,2}\d{1,3}\)?|of \d{1,7}|"
    r"\d{1,7}|out of \d{1,7}|with|is|was|up|now|runs|running|started|starts|starting|launched|placed|spawned|ready|"
    r"alive|here|initiali[sz]ed|processes|ranks)){0,6}"
)
_PLACE = r"(?:(?:the )?(?:host|node|machine|processor)(?:[ _]?name)?[ :=]{0,2})?"
_FORMS = (
    # `rank 3/8 is up on node1`, `RANK 3 PID 412 RUNNING AT node1`, `process rank 3 with PID 412 on node node1`
    masked_re(rf"(?i){_RANK}{_BETWEEN} ?(?:\bon|\bat|@) ?{_PLACE}{_WITH_DIGIT}{_NAME}"),
    # `node1: global rank 3 ready`, also behind the level of a logger
    masked_re(rf"(?i)(?:^|\b(?-i:INFO|DEBUG):? |[|\]] ){_WITH_DIGIT}{_NAME}: {_RANK}"),
    # The same behind the name of a logger, where it goes on as an introduction.
    masked_re(rf"(?i): {_WITH_DIGIT}{_NAME}: {_RANK}(?=.{{0,40}}(?:\blocal[ _]rank\b|\bworld[ _]size\b| of \d))"),
)
# The host stands apart from the rank: `initialised on host node1: RANK=3`, `rank=3 | node=node1`.
_APART = (
    masked_re(
        r"(?i)(?<![a-z._-])(?:slurmd_nodename|(?:host|node)[ _]?name|host|node|machine)['\"]? ?[:=] ?['\"]?"
        rf"(?=[\w.-]{{0,60}}[A-Za-z]){_CALLED_HOST}(?!:\d)"
    ),
    masked_re(rf"(?i)(?:\b(?:on|from) |\()(?:host|node|machine|processor) {_WITH_DIGIT}{_NAME}"),
)
_OTHER_HOST = masked_re(
    r"(?i)\b(?:connect\w*|reach\w*|listen\w*|resolv\w*|receiv\w*|recv\w*|send\w*|sent|master\w*|rendezvous|rdzv\w*|server|"
    r"store|peer|remote|leader|head|coordinator|endpoint|waiting|timed|lost|tcp)\b|://"
)
_STATED_RANK = masked_re(rf"(?i){_RANK}")
# Intel MPI with I_MPI_DEBUG=5: rank, pid, host, cores.
_STARTUP = masked_re(r"MPI startup\(\): +(?P<rank>\d{1,6}) +(?P<pid>\d{1,7}) +(?P<host>[\w.-]{1,80}) +[{\d]")
_ENDED = masked_re(
    r"^=? *(?:RANK (?P<rank>\d{1,6}) )?PID (?P<pid>\d{1,7}) RUNNING AT (?P<host>[A-Za-z0-9][\w.-]{0,80})$"
)
# The line of a launcher's daemon, which runs on the same host.
_BOUND = masked_re(
    r"(?i)^(?:\[(?P<host>[a-z][\w.-]{0,80}):\d{1,7}\] )?(?:MCW )?rank (?P<rank>\d{1,6}) (?:is )?(?:not )?bound\b"
)
# What each form needs, in small letters: most lines have none of it.
_FIXED_FORMS = (("mpi startup", _STARTUP), ("running at", _ENDED), ("bound", _BOUND))
_PLACES = ("host", "node", "machine", "processor")


# What a line has that is more than a prefix of a rank.
_HINT = lazy_re(
    rb"(?i)startup|running at|bound|host|node|machine|processor|rank[ :=#]{0,2}\d{1,6}\b.*?(?:\bon|\bat|@)|: "
    rb"(?:(?:global|world|mpi|process)[ _-])?rank[ :=#]{0,2}\d"
)


@ask_masked
def may_introduce(line: bytes) -> bool:
    """Whether `read_introduction` may find something in a line, prefix included."""
    return _HINT.search(line) is not None


@ask_masked_text
def may_introduce_in_text(text: str) -> bool:
    """The same for a text without its prefix, more exactly."""
    forms = (*(form for _, form in _FIXED_FORMS), *_FORMS, *_APART)
    return may_introduce(text.encode("utf-8", "replace")) and any(form.may_match(text) for form in forms)


@dataclass(frozen=True, slots=True)
class Introduction:
    """The rank and pid of a process where the line says them in a fixed form, and its host; "" where it says none."""

    host: str = ""
    rank: int | None = None
    pid: int | None = None


def read_introduction(origin: Origin, text: str) -> Introduction:
    """Return the host that a line names for the rank that it is about; `origin` is what its prefix says."""
    text = text[:LONGEST]
    if not may_introduce_in_text(text):
        return Introduction()
    lower = text.lower()
    for form in (form for hint, form in _FIXED_FORMS if hint in lower):
        if (match := form.search(text)) is not None:
            parts = match.groupdict()
            rank, pid = parts.get("rank"), parts.get("pid")
            host = parts.get("host") or origin.host or ""
            return Introduction(host, int(rank) if rank else None, int(pid) if pid else None)
    is_stated = "rank" in lower and _STATED_RANK.search(text) is not None
    has_place = (is_stated or origin.rank is not None) and any(place in lower for place in _PLACES)
    hosts = set(_hosts_in(text, is_stated=is_stated, has_place=has_place))
    return Introduction(hosts.pop()) if len(hosts) == 1 else Introduction()


def names_other_host(text: str) -> bool:
    """Whether a host in the text may be that of another process, as of the store that a rank connects to."""
    return _OTHER_HOST.search(text) is not None


def _hosts_in(text: str, *, is_stated: bool, has_place: bool) -> Iterator[str]:
    """Yield the hosts that a line names; a form is tried where the line states a rank, or has what it begins with."""
    forms = (*(_FORMS if is_stated else ()), *(_APART if has_place and not names_other_host(text) else ()))
    for form in forms:
        yield from (match["host"].rstrip(".") for match in form.finditer(text))
