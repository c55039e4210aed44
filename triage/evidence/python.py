"""Python exceptions out of traceback blocks: chained ones each, the outermost last.

Fields: type (last dotted part), message, chain (final, cause, context), and of the innermost frame of the user's own
code
file, line, function and code; op is the torch.distributed function that the frames pass through.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.evidence.interface import evidence
from triage.model.evidence import Block, Evidence
from triage.ranks.tracebacks import CHAINS, HEADER, is_exception

FRAME = lazy_re(r'\s*(?:\| )*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_LIBRARY = lazy_re(r"site-packages|dist-packages|/lib/python\d|<frozen|<string>|/opt/conda/lib|\btorch/distributed/")
_COLLECTIVE_FILES = ("distributed_c10d.py", "_functional_collectives.py", "functional_collectives.py")
# torch.distributed.checkpoint quotes the traceback of every rank that failed: `Traceback (most recent call last): (RANK
# 0)`
_NAMED = lazy_re(r"\(RANK (\d+)\)")
_SPAWN = lazy_re(r"-- Process (\d+) terminated with the following error")
# What the compiler says of the program itself: it never ran, so there is no traceback above it.
_COMPILER = lazy_re(r"(?:SyntaxError|IndentationError|TabError): ")
# An exception group: its own traceback, then its members between lines, all behind bars.
_GROUP = "+ Exception Group Traceback"
_MEMBER = lazy_re(r"\s*\+[-+]+ (?:\d+|\.\.\.) -+$|\s*\+-{8,}$")
_PLACE = ("file", "line", "function", "code", "op")
_BARS = lazy_re(r"^\s*[|+] ?")


def read(block: Block) -> list[Evidence]:
    if block.form == "line" and _COMPILER.match(block.lines[0]):
        fact = _exception(block, ["", *block.lines], "final")
        return [fact] if fact else []
    if block.form != "traceback":
        return []
    if block.writers:
        return _unmixed(block)
    if block.ambiguous:
        return _mixed(block)
    if _GROUP in block.lines[0]:
        return _group(block)
    facts = []
    parts = list(_parts(block.lines))
    process = _SPAWN.search("\n".join(block.lines))
    for index, (lines, link) in enumerate(parts):
        if not lines:  # the block was cut behind the sentence that announces another exception
            continue
        chain = "final" if index == len(parts) - 1 else {CHAINS[0]: "context", CHAINS[1]: "cause"}.get(link, "context")
        fact = _exception(block, lines, chain)
        named = _NAMED.search(lines[0])
        if fact is not None and named:
            fact = dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, rank=int(named[1])))
        if fact is not None and process and index:
            fact = dataclasses.replace(fact, fields={**fact.fields, "process": process[1]})
        if fact is not None:
            facts.append(fact)
    if not facts:
        text = "\n".join(block.lines[-3:])
        facts.append(evidence(block, "exception", "Python", text, chain="final", truncated="yes"))
    return facts


def _parts(lines: tuple[str, ...]) -> Iterator[tuple[list[str], str]]:
    """The single tracebacks of a chain, each with the sentence that joins it to the next."""
    part: list[str] = []
    for line in lines:
        if line.strip() in CHAINS:
            yield part, line.strip()
            part = []
        elif HEADER in line and len(part) > 1 and any(HEADER in other for other in part):
            yield part, ""
            part = [line]
        else:
            part.append(line)
    yield part, ""


def _exception(block: Block, lines: list[str], chain: str) -> Evidence | None:
    start = next(
        (
            index
            for index, line in enumerate(lines)
            if index and is_exception(line.removeprefix("  | ")) and not line.startswith("   ")
        ),
        None,
    )
    if start is None:
        return None
    text = "\n".join(line.rstrip() for line in lines[start:]).strip()
    name, _, message = text.partition(":")
    return evidence(
        block,
        "exception",
        "Python",
        text,
        type=name.rpartition(".")[2].strip(),
        message=message.strip(),
        chain=chain,
        **_place(lines[:start]),
    )


def _place(lines: list[str]) -> dict[str, str]:
    """Where it happened: the innermost frame outside libraries (or the innermost at all), and the collective on the
    way.
    """
    place: dict[str, str] = {}
    inner: dict[str, str] = {}
    for index, line in enumerate(lines):
        match = FRAME.match(line)
        if match is None:
            continue
        following = lines[index + 1].strip() if index + 1 < len(lines) and FRAME.match(lines[index + 1]) is None else ""
        frame = {"file": match["file"], "line": match["line"], "function": match["function"] or "", "code": following}
        if not _LIBRARY.search(match["file"]):
            place = frame
        elif match["file"].endswith(_COLLECTIVE_FILES) and match["function"]:
            place = {**place, "op": match["function"]}
        inner = frame
    return place or inner


def _group(block: Block) -> list[Evidence]:
    """The members of an exception group are what failed; the groups around them are only said to be there."""
    sections: list[list[str]] = [[]]
    for line in block.lines:
        if _MEMBER.match(line):
            sections.append([])
        else:
            sections[-1].append(_BARS.sub("", line))
    facts = []
    for lines in sections:
        fact = _exception(
            block, ["", *lines], "context" if any("Exception Group Traceback" in line for line in lines) else "final"
        )
        facts += [fact] if fact else []
    return facts


def _unmixed(block: Block) -> list[Evidence]:
    """One traceback that several writers printed. Where frames are left out, nobody knows which was the innermost."""
    facts = []
    for lines, link in _parts(block.lines):
        chain = "final" if not link else {CHAINS[0]: "context", CHAINS[1]: "cause"}.get(link, "context")
        fact = _exception(block, lines, chain)
        if fact is not None:
            fields = {key: value for key, value in fact.fields.items() if not block.ambiguous or key not in _PLACE}
            fields |= {"interleaved": "yes", "writers": str(block.writers)}
            facts.append(dataclasses.replace(fact, fields=fields, count=block.writers))
    return facts


def _mixed(block: Block) -> list[Evidence]:
    """Tracebacks of several writers without prefixes: the exceptions and how often, but no stack that nobody wrote."""
    counts: dict[str, int] = {}
    for line in block.lines[1:]:
        if is_exception(line):
            counts[line] = counts.get(line, 0) + 1
    writers = sum(HEADER in line for line in block.lines)
    facts = []
    for text, count in counts.items():
        name, _, message = text.partition(":")
        fact = evidence(
            block,
            "exception",
            "Python",
            text,
            type=name.rpartition(".")[2],
            message=message.strip(),
            chain="final",
            interleaved="yes",
            writers=str(writers),
        )
        facts.append(dataclasses.replace(fact, count=count))
    return facts
