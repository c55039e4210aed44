"""What to do about a failure that no signature knows: where to look, what to collect, where to find similar ones."""

from __future__ import annotations

from collections.abc import Sequence

from triage.base.rank_ranges import format_ranks
from triage.diagnose.headline import has_no_message
from triage.model import Evidence, Remediation

_NATIVE = frozenset(("crash", "core", "terminate", "fatal-python"))


def advise_unknown(facts: Sequence[Evidence], ranks: Sequence[int], cluster: str | None) -> Remediation:
    """Return the advice for the facts of one unknown failure."""
    steps = [_where_to_read(facts), *_what_to_collect(facts)]
    if cluster:
        steps.append(
            f"See whether it happened before: `triage clusters show {cluster}`, `triage search` with words of the line;"
            f" name the cluster when the reason is known."
        )
    return Remediation(_summary(facts, ranks), tuple(steps))


def _summary(facts: Sequence[Evidence], ranks: Sequence[int]) -> str:
    who = format_ranks(ranks) if ranks else "the process"
    place = next((fact for fact in facts if fact.fields.get("file") and fact.fields.get("line")), None)
    if place is not None:
        function = f" ({place.fields['function']})" if place.fields.get("function") else ""
        return f"Read {place.fields['file']}:{place.fields['line']}{function}, where {who} failed."
    if all(map(has_no_message, facts)):
        return f"Find out why {who} ended: the files show how, and no line says why."
    return f"No signature knows this line; read what {who} did before it."


def _where_to_read(facts: Sequence[Evidence]) -> str:
    sources = list(dict.fromkeys(fact.source for fact in facts))
    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    return f"Read the lines before it in {sources[0]}{more}; `triage timeline` shows what the other ranks did then."


def _what_to_collect(facts: Sequence[Evidence]) -> list[str]:
    kinds = {fact.kind for fact in facts}
    if all(map(has_no_message, facts)) and not kinds & _NATIVE:
        hosts = sorted({fact.origin.host for fact in facts if fact.origin.host})
        host = hosts[0] if hosts else "its host"
        return [
            "Keep the output of every rank (torchrun --log-dir DIR --redirects 3, srun --output=%t.log), and set"
            " PYTHONFAULTHANDLER=1, so that a signal leaves a stack.",
            f"Read the kernel log of {host} (`dmesg -T`) and the scheduler's record of the job (`sacct -j ID`,"
            " `kubectl describe pod`).",
        ]
    if kinds & _NATIVE:
        return ["Allow core files (`ulimit -c unlimited`) and read one with `triage core`."]
    if kinds == {"ending"}:
        return ["If the line does not say enough, run the same step alone with the program's debug level."]
    return []
