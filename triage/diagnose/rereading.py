"""Read the lines of an unknown failure again, as its program may have printed them.

People paste a line behind their own words, between the marks of Markdown or without the name of its exception, and
processes that write at once run their names together. Such a line is matched once more, without what was added and with
what is missing. What it then says is a guess, so its confidence stays low.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from triage.base.lazy_re import lazy_re
from triage.catalog.match import Match
from triage.catalog.mentions import mentions_failure
from triage.catalog.model import Signature
from triage.evidence.endings.failure_terms import warns
from triage.model import Evidence, ExceptionDetail

READ_AS = "read_as"
"""The field of a fact that has the text which signatures see instead of the line."""
MOST_FACTS, MOST_LINES, LONGEST_LINE = 20, 6, 1000
_KINDS = frozenset(("exception", "ending", "message", "terminate"))
_NAME = r"(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}?(?:Error|Exception|Failure|Exit|Timeout|Expired)"
_RAISED = lazy_re(rf"(?<![A-Za-z0-9_.])(?P<name>{_NAME}): ?(?P<message>\S.*)")
# `RuntimeErrorRuntimeError: : CUDA error`: each process writes the name, then the colon, then the message.
_GLUED = lazy_re(rf"(?P<name>{_NAME})(?:(?P=name)){{1,15}}(?::\s{{0,2}}){{2,16}}(?P<message>\S.*)")
_TAG = lazy_re(r"</?[a-z]{1,10}>")
_MARKS = " \t`*“”‘’>|~"
# Sentences that Python and the loader of libraries print with one name only.
_NAMES = (
    (lazy_re(r"cannot import name |undefined symbol: |cannot open shared object file|DLL load failed"), "ImportError"),
    (lazy_re(r"No module named "), "ModuleNotFoundError"),
    (lazy_re(r" has no attribute '"), "AttributeError"),
    (lazy_re(r"got an unexpected keyword argument|missing \d{1,3} required positional argument"), "TypeError"),
)
_USUAL_NAMES = ("RuntimeError", "ValueError", "AssertionError", "TypeError", "OSError")


def reread(
    unknown: Iterable[Evidence],
    matching: Callable[[Sequence[Evidence]], Mapping[str, Match]],
    signatures: Mapping[str, Signature],
) -> dict[int, Evidence]:
    """Return, by the id of a fact of an unknown failure, the fact as the signature of a cause knows it.

    `matching` returns the matches of facts by the ids of signatures.
    """
    known: dict[int, Evidence] = {}
    for fact in list(unknown)[:MOST_FACTS]:
        for text in _list_texts(fact):
            variant = _with_text(fact, text)
            if any(signatures[name].role == "cause" for name in matching([variant])):
                known[id(fact)] = variant
                break
    return known


def list_readings(line: str) -> tuple[str, ...]:
    """Return what a program may have printed where a line was pasted, the likeliest first."""
    import html  # few jobs need it

    line = _TAG.sub("", html.unescape(line[:LONGEST_LINE]))
    raised = _GLUED.search(line) or _RAISED.search(line)
    if raised:
        return (f"{raised['name']}: {_without_marks(raised['message'])}",)
    bare = _without_marks(line)
    names = next(((name,) for sentence, name in _NAMES if sentence.search(bare)), _USUAL_NAMES)
    return tuple(f"{name}: {bare}" for name in names) if bare else ()


def _without_marks(text: str) -> str:
    text = text.strip(_MARKS)
    return text.strip('"') if text.count('"') == 1 or (text[:1], text[-1:]) == ('"', '"') else text


def _list_texts(fact: Evidence) -> Iterator[str]:
    lines = [line for line in fact.text.split("\n") if line.strip()] if fact.kind in _KINDS else []
    for line in lines[:MOST_LINES]:
        if not (mentions_failure(line) or warns(line)):
            yield from (text for text in list_readings(line) if text != fact.text)


def _with_text(fact: Evidence, text: str) -> Evidence:
    name, _, message = text.partition(": ")
    name = name.rpartition(".")[2]
    detail = fact.detail if isinstance(fact.detail, ExceptionDetail) else ExceptionDetail(ends_writer=True)
    fields = {**fact.fields, "type": name, "message": message, READ_AS: text}
    detail = replace(detail, type=name)
    return replace(fact, kind="exception", component="Python", text=text, fields=fields, detail=detail)
