"""Fill the placeholders in a signature's advice with what a job's log says.

A placeholder without a value takes its clause with it, so that none reaches a reader.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.catalog.model import Clause, Leaf, Signature
from triage.model.diagnosis import Remediation

PLACEHOLDERS = frozenset({"host", "rank", "ranks"})  # those that no pattern captures

_PLACEHOLDER = lazy_re(r"\{([A-Za-z_]\w*)\}")
_CAPTURE_NAME = lazy_re(r"\(\?P?<([A-Za-z_]\w*)>")
_RANK = lazy_re(r"\b([Rr])ank \{rank\}")
_HOST = lazy_re(r"\{host\}(?!:\S)")  # before a port it must be a name
# What drains, excludes or describes the host of the failure; `ssh HOST` may be another one.
_COMMAND_FOR_HOST = lazy_re(
    r"(?<![^\s(])(nodename=|--exclude=|cordon |(?:show|describe) node |involvedObject\.name=)(?:HOST|NODE)\b"
)
_HOST_NAME = lazy_re(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_PARENTHESES = lazy_re(r" ?\([^()]*\)")
_SENTENCE_END = lazy_re(r"(?<=[.!?]) +(?=[^a-z])")
_HEAD = lazy_re(r"([^;]*?:) +(.*)")
_OPEN_END = lazy_re(r"\b(?:is|are|was|were):$")
_PLAIN_WORD = lazy_re(r"[a-z]+(?=[ ,])")


def fill_remediation(
    signature: Signature, captures: Mapping[str, str], ranks: Sequence[int] = (), hosts: Sequence[str] = ()
) -> Remediation:
    """Return the signature's advice for a failure on these ranks and hosts; an empty capture has no value."""
    values = {
        **captures,
        "rank": ", ".join(map(str, ranks[:8])),
        "ranks": format_ranks(ranks) if ranks else "the affected ranks",
        "host": ", ".join(hosts[:3]),
    }
    names = {*values, *_capture_names(signature.match)}
    texts = [_fill(_adapt(text, ranks, hosts), values, names) for text in (signature.summary, *signature.steps)]
    return Remediation(texts[0], tuple(filter(None, texts[1:])), signature.references)


def describe_advice(signature: Signature) -> tuple[str, ...]:
    """Return summary and steps for documentation, with `<pid>` for what a job's log fills in."""
    names = PLACEHOLDERS | {*_capture_names(signature.match)}
    return tuple(
        _PLACEHOLDER.sub(lambda match: f"<{match[1]}>" if match[1] in names else match[0], text)
        for text in (signature.summary, *signature.steps)
    )


def _capture_names(match: Clause | Leaf | None) -> Iterator[str]:
    """Yield the names that the patterns of a signature can capture."""
    if isinstance(match, Leaf):
        for pattern in (match.text, *match.fields.values()):
            yield from _CAPTURE_NAME.findall(pattern or "")
    elif match is not None:
        for part in match.parts:
            yield from _capture_names(part)


def _adapt(text: str, ranks: Sequence[int], hosts: Sequence[str]) -> str:
    """Write `Ranks 0-2` for several ranks, `the affected rank` and `the host` for unknown ones, a host in commands."""
    if len(ranks) != 1:
        phrase = format_ranks(ranks) if ranks else "the affected rank"
        text = _RANK.sub(lambda match: phrase.capitalize() if match[1] == "R" else phrase, text)
    if len(hosts) == 1 and _HOST_NAME.fullmatch(hosts[0]):  # a log must not write commands
        text = _COMMAND_FOR_HOST.sub(lambda match: match[1] + hosts[0], text)
    return text if hosts else _HOST.sub("the host", text)


def _fill(text: str, values: Mapping[str, str], names: Collection[str]) -> str:
    """Return the text with its values; other braces, as in a shell command, stay as they are."""

    def is_complete(part: str) -> bool:
        return all(values.get(name, "").strip() or name not in names for name in _PLACEHOLDER.findall(part))

    complete = text if is_complete(text) else _complete_part(text, is_complete)
    filled = _PLACEHOLDER.sub(lambda match: values.get(match[1]) or match[0], complete)
    return _capitalized(filled) if complete != text or complete.startswith(("{ranks}", "the host")) else filled


def _complete_part(text: str, is_complete: Callable[[str], bool]) -> str:
    """Return the text without the parentheses, clauses and sentences that lack a value."""
    text = _PARENTHESES.sub(lambda match: match[0] if is_complete(match[0]) else "", text)
    return " ".join(filter(None, (_complete_clauses(part, is_complete) for part in _SENTENCE_END.split(text))))


def _complete_clauses(sentence: str, is_complete: Callable[[str], bool]) -> str:
    """Return what can stay of one sentence: without its head before a colon, or up to the first incomplete clause."""
    head = _HEAD.fullmatch(sentence)
    if head is not None and not is_complete(head[1]):
        sentence = head[2]
    clauses = list(itertools.takewhile(is_complete, re.split(r"(?<=[:;]) +", sentence)))
    if clauses and _OPEN_END.search(clauses[-1]):
        clauses.pop()  # it only announced what is missing
    return re.sub(r"[:;]$", ".", _capitalized(" ".join(clauses)))


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text
