"""Captures of names: they must survive blanks, colons and quotes, which paths, messages and names of tasks have."""

from __future__ import annotations

from collections.abc import Iterator

from triage.base.lazy_re import lazy_re
from triage.catalog.check_context import EvidenceReader, list_samples
from triage.catalog.match import evaluate_signature
from triage.catalog.model import Signature
from triage.catalog.problems import Remark

# Captures whose values people or programs choose freely.
NAMES = frozenset(
    (
        *("argument", "assertion", "attribute", "directory", "file", "filename", "job", "key", "message", "module"),
        *("name", "option", "parameter", "path", "shard", "target", "task", "text"),
    )
)
_LETTERS = lazy_re(r"[A-Za-z]{3}")


def check_captures(signature: Signature, to_evidence: EvidenceReader) -> Iterator[Remark]:
    """Write other characters into the names of the samples that stand in quotes or end the line."""
    if signature.table or signature.status == "deprecated":
        return
    reported: set[str] = set()
    for key_path, sample in list_samples(signature):
        if key_path[1] != "match" or sample.kind is not None:
            continue
        for name, value in sample.captures.items():
            if name not in NAMES or name in reported or sample.text.count(value) != 1:
                continue
            for changed, text in _change(sample.text, value):
                match = evaluate_signature(signature, to_evidence(text))
                captured = None if match is None else match.captures.get(name)
                if captured != changed:
                    reported.add(name)
                    got = "no match" if match is None else f"{captured!r} is captured"
                    message = f"the capture {name} does not survive {changed!r}: {got}"
                    hint = f"let the group run to the closing quote or bracket, such as '(?P<{name}>.+?)'"
                    yield "warning", key_path, message, hint
                    break


def _change(text: str, value: str) -> Iterator[tuple[str, str]]:
    """(value, text) with other characters in a value that is enclosed in quotes or brackets."""
    start = text.index(value)
    before, after = text[:start], text[start + len(value) :]
    if not _LETTERS.search(value) or not before or not after:
        return
    enclosed = (before[-1], after[0]) in {("'", "'"), ('"', '"'), ("`", "`"), ("[", "]")}
    if enclosed:
        for inserted in (" b", ":c"):
            changed = value[:-1] + inserted + value[-1]
            yield changed, before + changed + after
    if (before[-1], after[0]) == ("'", "'"):  # so Python writes a text with an apostrophe
        changed = value[:-1] + "'s" + value[-1]
        yield changed, f'{before[:-1]}"{changed}"{after[1:]}'
