"""Rules that need no log: what a signature must say, and how signatures may refer to each other."""

from __future__ import annotations

import string
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from triage.catalog.marked import Marked, Path, Place
from triage.catalog.match import positive_leaves
from triage.catalog.model import Signature
from triage.catalog.problems import Problem
from triage.catalog.regex import named_groups
from triage.catalog.schema import MAX_TITLE

PLACEHOLDERS = frozenset({"host", "rank", "ranks"})
Remark = tuple[str, Path, str, str]  # severity, where in the file, message, hint


def lint(signatures: Iterable[Signature], whole: Mapping[str, Signature], trees: Mapping[str, Marked]) -> list[Problem]:
    """Problems of these signatures; `whole` is the catalog they live in, `trees` their files by path."""
    cyclic = cycles(whole)
    twins = _twins(whole)
    problems = []
    for signature in signatures:
        remarks = [
            *_words(signature),
            *_home(signature),
            *_patterns(signature),
            *_edges(signature, whole, cyclic),
            *_samples(signature),
            *twins.get(signature.id, ()),
        ]
        tree = trees.get(signature.path, Marked())
        problems += [
            Problem(severity, signature.path, *place(tree, signature, inside), message, hint)
            for severity, inside, message, hint in remarks
        ]
    return problems


def captures_of(signature: Signature) -> set[str]:
    """The names that the signature's patterns can capture."""
    patterns = (
        pattern
        for leaf in positive_leaves(signature.match)
        for pattern in (leaf.text, *leaf.fields.values())
        if pattern
    )
    return {name for pattern in patterns for name, _ in named_groups(pattern)}


def cycles(whole: Mapping[str, Signature]) -> dict[str, list[str]]:
    """The signatures that explain themselves through others on one rank, with the shortest way back to each.

    Edges to other ranks do not count: two ranks may well complain about each other.
    """
    edges = {
        identifier: [
            edge.signature for edge in signature.leads_to if edge.scope != "other-ranks" and edge.signature in whole
        ]
        for identifier, signature in whole.items()
    }
    return {identifier: way for identifier in whole if (way := _way_back(identifier, edges))}


def place(tree: Marked, signature: Signature, inside: Path) -> Place:
    """Where a part of a signature stands; of a row of a table, where its row stands."""
    if signature.table:
        rows = tree.value.get("rows") if isinstance(tree.value, dict) else None
        codes = [str(row.get("code", "")).lower() for row in rows or () if isinstance(row, dict)]
        code = signature.id.removeprefix(f"{signature.table}-")
        return tree.place(("rows", codes.index(code)) if code in codes else ("rows",))
    return tree.place(inside)


def spots(tree: Marked, within: Path, value: str) -> Iterator[Place]:
    """The places under `within` whose text is `value`."""
    for path, place in tree.places.items():
        if path[: len(within)] == within and _at(tree.value, path) == value:
            yield place


def _at(value: object, path: Path) -> object:
    for part in path:
        if isinstance(value, dict) or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value.get(part) if isinstance(value, dict) else value[int(part)]
        else:
            return None
    return value


def _words(signature: Signature) -> Iterator[Remark]:
    if len(signature.title) > MAX_TITLE:
        yield (
            "error",
            ("title",),
            f"the title has {len(signature.title)} characters, at most {MAX_TITLE} fit",
            "say it shorter",
        )
    if not signature.summary and signature.role != "noise":
        yield "error", ("remediation",), "there is no remediation.summary", "say in one sentence what to do"
    if not signature.meaning and signature.role != "noise":
        yield "warning", (), "there is no `meaning`", "say in a sentence or two what happened"
    try:
        names = {name for _, name, _, _ in string.Formatter().parse(signature.summary) if name is not None}
    except ValueError as error:
        yield (
            "error",
            ("remediation", "summary"),
            f"the summary's braces do not fit: {error}",
            "write {{ and }} for plain braces",
        )
        return
    known = captures_of(signature) | PLACEHOLDERS
    for name in sorted(names - known):
        yield (
            "error",
            ("remediation", "summary"),
            f"the summary uses {{{name}}}, which nothing captures",
            _one_of(known),
        )


def _home(signature: Signature) -> Iterator[Remark]:
    path = PurePath(signature.path)
    expected = signature.table or signature.id
    if f"{path.parent.name}.{path.stem}" != expected:
        hint = f"{expected.replace('.', '/', 1)}.yaml is its place"
        yield "error", ("id",), f"the id {expected} does not fit the file's place", hint


def _patterns(signature: Signature) -> Iterator[Remark]:
    for leaf in positive_leaves(signature.match):
        if leaf.text and "(?i" in leaf.text:
            yield "warning", ("match",), f"the pattern ignores case: {leaf.text}", "write the words as the log has them"
    known = captures_of(signature)
    if signature.blames is not None and signature.blames not in known:
        yield "error", ("blames",), f"`blames` names {signature.blames}, which nothing captures", _one_of(known)


def _edges(signature: Signature, whole: Collection[str], cyclic: Mapping[str, Sequence[str]]) -> Iterator[Remark]:
    for index, edge in enumerate(signature.leads_to):
        if edge.signature == signature.id:
            yield "error", ("leads_to", index), "a signature does not lead to itself", "remove this edge"
        elif edge.signature not in whole:
            yield (
                "warning",
                ("leads_to", index, "signature"),
                f"there is no signature {edge.signature}",
                "mend the id, or add the file",
            )
    way = cyclic.get(signature.id, ())
    if len(way) > 1:
        hint = "remove the weaker edge, or give it the scope other-ranks"
        index = next(index for index, edge in enumerate(signature.leads_to) if edge.signature == way[0])
        yield "error", ("leads_to", index), f"the signature explains itself: {' -> '.join((signature.id, *way))}", hint


def _samples(signature: Signature) -> Iterator[Remark]:
    if signature.match is not None and not signature.samples_match:
        yield "error", ("samples",), "there is no samples.match", "add a real line, as it stands in a log"
    known = captures_of(signature)
    for index, sample in enumerate(signature.samples_match):
        for name in sorted(set(sample.captures) - known):
            yield "error", ("samples", "match", index, "captures"), f"nothing captures {name}", _one_of(known)


def _twins(whole: Mapping[str, Signature]) -> dict[str, list[Remark]]:
    first: dict[str, str] = {}
    found: dict[str, list[Remark]] = {}
    for identifier, signature in sorted(whole.items()):
        other = first.setdefault(signature.fingerprint, identifier)
        if other != identifier and signature.match is not None:
            found[identifier] = [
                ("warning", ("match",), f"{other} matches exactly the same", "tell them apart, or keep one")
            ]
    return found


def _way_back(start: str, edges: Mapping[str, Sequence[str]]) -> list[str]:
    """The shortest way from `start` to itself, without the start; empty if there is none."""
    came_from: dict[str, str] = {}
    pending = deque([start])
    while pending:
        current = pending.popleft()
        for target in edges[current]:
            if target not in came_from:
                came_from[target] = current
                pending.append(target)
            if target == start:
                way = [start]
                while came_from[way[0]] != start:
                    way.insert(0, came_from[way[0]])
                return way
    return []


def _one_of(known: Collection[str]) -> str:
    return f"one of {', '.join(sorted(known))}" if known else "add a group (?P<name>…) to the pattern"
