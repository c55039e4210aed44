"""What would refute a conclusion about a job that hangs: a sentence that tells the reader what to look for."""

from __future__ import annotations

from triage.base.rank_ranges import format_ranks
from triage.diagnose.candidates import Candidate
from triage.model import InferenceDetail

_ABSENT = "Wrong if another file shows {ranks} in that call, or an error of {ranks} before it"
_BEHIND = "Wrong if a stack or dump of {ranks}, taken while the others waited, shows the same call as theirs"
_CLOCK = "Wrong if the clocks of the hosts differ by as much, or one was set meanwhile"
_OTHER_CALL = "Wrong if the files are of different moments or runs: then their numbers and lines do not belong together"
_TRANSFER = "Wrong if a rank without a file did not start that call: then the others wait for it"
_ELSEWHERE = "Wrong if a second dump, some seconds later, shows {ranks} at another place: slow then, not stuck"
REFUTATIONS = {
    **dict.fromkeys(
        (
            "never-joined",
            "missed-barrier",
            "rank-absent",
            "left-first",
            "left-early",
            "log-stopped",
            "process-unreachable",
        ),
        _ABSENT,
    ),
    **dict.fromkeys(("lagging-rank", "one-rank-diverged", "uneven-steps"), _BEHIND),
    **dict.fromkeys(("late-entry", "watchdog-starved"), _CLOCK),
    **dict.fromkeys(
        (
            *("divergent-call", "dtype-mismatch", "extra-collective", "group-order"),
            *("p2p-mismatch", "rank-conditional", "shape-mismatch", "wrong-group"),
        ),
        _OTHER_CALL,
    ),
    "stuck-in-collective": _TRANSFER,
    **dict.fromkeys(
        ("blocked-in-dataloader", "compile-skew", "hung", "outside-collectives", "stale-build-lock", "thread-deadlock"),
        _ELSEWHERE,
    ),
}
"""Rule of an inference to its sentence."""


def list_refutations(root: Candidate) -> list[str]:
    """Return what would refute a root cause; nothing where a line states it."""
    if not root.is_inferred:
        return []
    named = format_ranks(root.suspects or root.observed_ranks) or "that rank"
    rules = [fact.detail.rule for fact in root.facts if isinstance(fact.detail, InferenceDetail)]
    return sorted({REFUTATIONS[rule].format(ranks=named) for rule in rules if rule in REFUTATIONS})
