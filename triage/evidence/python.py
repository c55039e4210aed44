"""Python exceptions of traceback blocks: each of a chain, the one that was raised last at the end.

Fields: type (last part of the name), message, chain (final, cause, context), and of the innermost frame of the user's
own code file, line, function and code; op is the torch.distributed function that the frames pass through, and innermost
the innermost frame of all, libraries included (`path:function: code`).

Also failed tests, from the summary and the sections of pytest, with the further field `test`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from triage.base.lazy_dataclass import replace
from triage.base.lazy_re import lazy_re
from triage.evidence.exception_chains import FRAME, ChainedException, choose_failure
from triage.evidence.extractor import make_evidence
from triage.model import Block, Chain, Evidence, ExceptionDetail, Origin
from triage.ranks.stated_ranks import read_stated_ranks
from triage.records.pytests import FAILED, PLACE
from triage.records.tracebacks import (
    CHAINS,
    HEADER,
    LIBRARY,
    NATIVE_SECTION,
    is_exception,
    measure_margin,
    without_margin,
)

_COLLECTIVE_FILES = ("distributed_c10d.py", "_functional_collectives.py", "functional_collectives.py")
# torch.distributed.checkpoint quotes the traceback of every failed rank: `Traceback (most recent call last): (RANK 0)`
_NAMED = lazy_re(r"\(RANK (\d{1,18})\)")
_SPAWN = lazy_re(r"-- Process (\d{1,18}) terminated with the following error")
# Ray raises the exception of a worker again in its driver; the line above says whose it was.
_RAY_TASK = lazy_re(r"\bray::[^\n(]{1,120}\(\)? ?\(?pid=(?P<pid>\d{1,7})(?:, ip=(?P<ip>[\d.]{7,15}|[\da-f:]{3,39}))?")
_RAY_ACTOR = lazy_re(
    r"\bactor_id: \w+\s+pid: (?P<pid>\d{1,7})\s(?:[^\n]*\n){0,3}?\s*ip: (?P<ip>[\d.]{7,15}|[\da-f:]{3,39})"
)
# Errors of the compiler: the program never ran, so there is no traceback above the line.
_COMPILER = lazy_re(r"(?:SyntaxError|IndentationError|TabError): ")
# An exception group: its own traceback, then its members between lines, all behind bars.
_GROUP = "+ Exception Group Traceback"
_MEMBER = lazy_re(r"\s*\+[-+]+ (?:\d+|\.\.\.) -+$|\s*\+-{8,}$")
_TYPED = lazy_re(r"(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)
# multiprocessing prints the traceback of a pool's process between lines of three quotation marks.
_QUOTE_END = '\n"""'
_BARS = lazy_re(r"^\s*[|+] ?")


def extract(block: Block) -> list[Evidence]:
    """Return the exceptions of a traceback block."""
    if block.form == "line" and _COMPILER.match(block.lines[0]):
        fact = _parse_exception(block, ["", *block.lines], "final")
        return [fact] if fact else []
    if block.form != "traceback":
        return []
    if block.writers:
        return _parse_shared(block)
    if block.ambiguous:
        return _count_mixed(block)
    facts = _parse_group(block) if _GROUP in block.lines[0] else _parse_chain(block)
    if facts or _GROUP in block.lines[0]:
        return facts
    return [make_exception(block, "\n".join(block.lines[-3:]), "", {}, truncated=True)]


def make_exception(
    block: Block,
    text: str,
    type: str,  # noqa: A002 - the field is called so
    parts: Mapping[str, str],
    chain: Chain = "final",
    *,
    truncated: bool = False,
    interleaved: bool = False,
) -> Evidence:
    """Return the fact of one exception with these further fields. `type` is empty where it is not known."""
    detail = ExceptionDetail(
        type,
        chain,
        block.nonfatal,
        block.continued,
        block.ends_writer,
        truncated=truncated,
        interleaved=interleaved,
        secondary=chain != "final",
        caught=block.caught,
    )
    return make_evidence(block, "exception", "Python", text, detail, **{**parts, "type": type, "chain": chain})


def _parse_chain(block: Block) -> list[Evidence]:
    """Return the exceptions of a traceback, those that it names as cause or context first."""
    facts: list[Evidence] = []
    chain: list[ChainedException] = []
    parts = list(_split_chain(block.lines))
    process = _SPAWN.search("\n".join(block.lines))
    block = _with_origin_of_worker(block)
    for index, (lines, link) in enumerate(parts):
        # Without lines the block was cut behind the sentence that announces another exception.
        fact = (
            _parse_exception(block, lines, "final" if index == len(parts) - 1 else _chain_of(link)) if lines else None
        )
        if fact is None:
            continue
        named = _rank_of_heading(lines[0], parts[index - 1][0][-1:] if index else [])
        if named is not None:
            origin = _origin_of_quoted(fact.origin, named)
            fact = replace(fact, origin=origin, rank_basis="" if origin is fact.origin else "stated")
        if process and index and isinstance(fact.detail, ExceptionDetail):
            fact = replace(fact, detail=replace(fact.detail, spawn_index=int(process[1])))
        facts.append(fact)
        chain.append(ChainedException(fact.fields.get("type", ""), fact.fields.get("message", ""), lines, link))
    return _mark_secondary(facts, choose_failure(chain))


def _mark_secondary(facts: list[Evidence], chosen: int) -> list[Evidence]:
    """Return the facts of a chain, all but the chosen one marked as not the failure."""
    return [
        replace(fact, detail=replace(fact.detail, secondary=index != chosen))
        if isinstance(fact.detail, ExceptionDetail)
        else fact
        for index, fact in enumerate(facts)
    ]


def _with_origin_of_worker(block: Block) -> Block:
    """Return the block with pid and address of the worker whose exception Ray raises again."""
    text = "\n".join(block.lines)
    tasks = list(_RAY_TASK.finditer(text)) if "ray::" in text else []
    worker = tasks[-1] if tasks else _RAY_ACTOR.search(text) if "actor_id: " in text else None
    if worker is None or block.origin.rank is not None:
        return block
    origin = replace(block.origin, pid=int(worker["pid"]), host=worker["ip"] or block.origin.host)
    return replace(block, origin=origin)


def _origin_of_quoted(origin: Origin, rank: int) -> Origin:
    """Return the origin of a traceback that one rank quotes of another: host and pid are those of the writer."""
    if origin.rank == rank:
        return origin
    return replace(origin, rank=rank, local_rank=None, host=None, pid=None)


def _rank_of_heading(header: str, before: list[str]) -> int | None:
    """Return the rank whose traceback is quoted, as its header or the line before it says."""
    named = _NAMED.search(header)
    if named is not None:
        return int(named[1])
    stated = read_stated_ranks(before[0].strip()) if before and before[0].rstrip().endswith((":", "=", "-")) else None
    is_one = stated is not None and stated.part == "rank" and len(stated.numbers) == 1
    return stated.numbers[0] if is_one and stated is not None else None


def _split_chain(lines: tuple[str, ...]) -> Iterator[tuple[list[str], str]]:
    """Yield the single tracebacks of a chain, each with the sentence that joins it to the next."""
    part: list[str] = []
    for line in lines:
        if line.strip() in CHAINS:
            yield part, line.strip()
            part = []
        elif _opens_traceback(line) and len(part) > 1 and any(map(_opens_traceback, part)):
            yield part, ""
            part = [line]
        else:
            part.append(line)
    yield part, ""


def _opens_traceback(line: str) -> bool:
    return HEADER in line and not NATIVE_SECTION.match(line.lstrip())


def _chain_of(link: str) -> Chain:
    return "cause" if link == CHAINS[1] else "context"


def _parse_exception(block: Block, lines: list[str], chain: Chain, *, interleaved: bool = False) -> Evidence | None:
    margin = max(map(measure_margin, lines))
    lines = [without_margin(line, margin) for line in lines]
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
    text = "\n".join(line.rstrip() for line in lines[start:]).strip().removesuffix(_QUOTE_END).strip()
    name, _, message = text.partition(":")
    # Where frames of several writers were left out, nobody knows which frame was the innermost.
    place = {} if interleaved and block.ambiguous else _innermost_frame(lines[:start])
    kind = name.rpartition(".")[2].strip()
    return make_exception(block, text, kind, {"message": message.strip(), **place}, chain, interleaved=interleaved)


def _innermost_frame(lines: list[str]) -> dict[str, str]:
    """Return the innermost frame outside of libraries (or the innermost at all), and the collective on the way."""
    place: dict[str, str] = {}
    inner: dict[str, str] = {}
    for index, line in enumerate(lines):
        match = FRAME.match(line)
        if match is None:
            continue
        following = lines[index + 1].strip() if index + 1 < len(lines) and FRAME.match(lines[index + 1]) is None else ""
        frame = {"file": match["file"], "line": match["line"], "function": match["function"] or "", "code": following}
        if not LIBRARY.search(match["file"]):
            place = frame
        elif match["file"].endswith(_COLLECTIVE_FILES) and match["function"]:
            place = {**place, "op": match["function"]}
        inner = frame
    if not inner:
        return {}
    return {**(place or inner), "innermost": f"{inner['file']}:{inner['function']}: {inner['code']}"}


def _parse_group(block: Block) -> list[Evidence]:
    """Return the members of an exception group, which are what failed; the groups around them are their context."""
    sections: list[list[str]] = [[]]
    for line in block.lines:
        if _MEMBER.match(line):
            sections.append([])
        else:
            sections[-1].append(_BARS.sub("", line))
    facts = []
    for lines in sections:
        fact = _parse_exception(
            block, ["", *lines], "context" if any("Exception Group Traceback" in line for line in lines) else "final"
        )
        facts += [fact] if fact else []
    return facts


def _parse_shared(block: Block) -> list[Evidence]:
    """Return the exceptions of one traceback that several writers printed."""
    facts = []
    for lines, link in _split_chain(block.lines):
        fact = _parse_exception(block, lines, _chain_of(link) if link else "final", interleaved=True)
        if fact is not None:
            facts.append(replace(fact, count=block.writers))
    return facts


def _count_mixed(block: Block) -> list[Evidence]:
    """Count the exceptions in tracebacks of several writers without prefixes. Which frames belong to which is lost."""
    counts = Counter(line for line in block.lines[1:] if is_exception(line))
    facts = []
    for text, count in counts.items():
        name, _, message = text.partition(":")
        fact = make_exception(block, text, name.rpartition(".")[2], {"message": message.strip()}, interleaved=True)
        facts.append(replace(fact, count=count))
    return facts


def extract_failed_test(block: Block) -> list[Evidence]:
    """Return the failure of the test that the block is about."""
    if block.form != "pytest":
        return []
    named = next((match for line in reversed(block.lines) if (match := FAILED.match(line))), None)
    if named is None:
        return []
    lines = (line[1:].removeprefix("   ").removeprefix("    ") for line in block.lines if re.match(r"E(?: |$)", line))
    reason = "\n".join(map(str.rstrip, lines)).strip() or (named["message"] or "").strip()
    place = next((match for line in block.lines if (match := PLACE.match(line))), None)
    where = {"file": place["file"], "line": place["line"]} if place else {"file": named["test"].partition("::")[0]}
    where |= {"code": block.lines[0][1:].strip()} if block.lines[0].startswith(">") else {}
    kind, message = _type_and_message(reason)
    return [make_exception(block, reason or named[0], kind, {"message": message, "test": named["test"], **where})]


def _type_and_message(reason: str) -> tuple[str, str]:
    typed = _TYPED.match(reason)
    if typed is not None and (is_exception(reason.split("\n", 1)[0]) or typed["type"] == "Failed"):
        return typed["type"].rpartition(".")[2], (typed["message"] or "").strip()
    return ("AssertionError" if reason.startswith("assert") else "Failed"), reason
