"""Tables of codes: one pattern, one literal, and a signature for each row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.factories import evidence, parse_signature, shipped, write
from triage.catalog import literal_selection, read
from triage.catalog.check import check_files
from triage.catalog.match import Matcher, evaluate_signature
from triage.catalog.model import Catalog, Signature
from triage.evidence import extract_text

TABLE = r"""
table: box.fault
revision: 1
title: 'Fault {code}: {says}'
status: stable
match: 'BOX: fault (?P<fault>\d+)\b'
key: fault
leads_to: [{signature: a.b}]
meaning: 'The box says {code} ({mnemonic}).'
remediation:
  none: {summary: 'Fault {code} on {host}: {says}.'}
  reset-gpu: {summary: 'Reset the box of {host}.', steps: ['reset {code}']}
sample: 'BOX: fault {code} in slot 3'
no_match: [{text: 'BOX: no faults', why: healthy}]
rows:
  - {code: '7', mnemonic: SEVEN, says: it is warm, role: noise, action: none}
  - {code: '8', says: it burns, role: cause, action: reset-gpu, values: ['0008']}
  - {code: '9', says: it is wet, role: either, action: none, signature: [box.wet]}
  - {code: wet, says: it is wet, role: either, action: none, signature: [box.fault-wet]}
"""


def rows(text: str = TABLE) -> dict[str, Signature]:
    result, problems = read.parse_signatures(text, "box/fault.yaml")
    assert problems == []
    return {signature.id: signature for signature in result}


def test_a_row_is_a_signature() -> None:
    """Id, texts, role and severity come from the row and the table; a row with its own signature's id is left out."""
    result = rows()
    assert list(result) == ["box.fault-7", "box.fault-8", "box.fault-9"]
    seven, eight, nine = result.values()
    assert (seven.title, seven.meaning, seven.summary) == (
        "Fault 7: it is warm",
        "The box says 7 (SEVEN).",
        "Fault 7 on {host}: it is warm.",
    )
    assert (seven.severity, eight.severity, nine.severity) == ("info", "fatal", "error")
    assert (seven.causal_edges, [edge.signature for edge in eight.causal_edges]) == ((), ["a.b"])
    assert eight.steps == ("reset 8",)
    assert len({signature.fingerprint for signature in result.values()}) == 3


def test_a_row_matches_its_codes_anywhere() -> None:
    """The second code of a text counts too, and so do other spellings; another code does not."""
    result = rows()
    both = [evidence("BOX: fault 7 then BOX: fault 0008")]
    assert evaluate_signature(result["box.fault-7"], both)
    match = evaluate_signature(result["box.fault-8"], both)
    assert match is not None
    assert match.captures == {"fault": "0008"}
    assert evaluate_signature(result["box.fault-9"], both) is None
    assert evaluate_signature(result["box.fault-8"], [evidence("BOX: fault 80")]) is None


def test_a_row_yields_to_a_more_specific_signature() -> None:
    """Where both match the same evidence, only the signature does; other evidence still matches the row."""
    own, _ = parse_signature(
        "id: box.wet\nrevision: 1\ntitle: Wet\nstatus: stable\nrole: cause\nseverity: fatal\n"
        "match: {text: 'fault 9 in the rain'}",
        "w",
    )
    assert own is not None
    matcher = Matcher(Catalog("1", (*rows().values(), own)))
    assert list(matcher.evaluate([evidence("BOX: fault 9 in the rain")])) == ["box.wet"]
    assert sorted(matcher.evaluate([evidence("BOX: fault 9 in the rain"), evidence("BOX: fault 9")])) == [
        "box.fault-9",
        "box.wet",
    ]


def test_rows_share_one_literal() -> None:
    """The scan looks for the text of a table once, however many rows it has."""
    _, literals, weak = literal_selection.assign_literals(rows().values(), "step 1 loss 2\n")
    assert (literals, weak) == (("BOX: fault ",), [])


@pytest.mark.parametrize(
    ("old", "new", "expected_text"),
    [
        ("key: fault", "key: code", "no group code"),
        ("code: '8'", "code: '7'", "more than one row"),
        (
            "  reset-gpu: {summary: 'Reset the box of {host}.', steps: ['reset {code}']}\n",
            "",
            "no remediation for reset-gpu",
        ),
        ("'BOX: fault {code} in slot 3'", "'BOX: fault 7'", "must contain {code}"),
        ("code: '8'", "code: 'a b'", "does not have the right form"),
        ("role: noise", "role: guide", "is not allowed here"),
    ],
)
def test_mistakes_in_a_table_are_errors(old: str, new: str, expected_text: str) -> None:
    """Each mistake is an error with a message about the table."""
    assert old in TABLE
    result, problems = read.parse_signatures(TABLE.replace(old, new), "box/fault.yaml")
    assert result == []
    assert [problem for problem in problems if expected_text in problem.message], problems


def test_a_row_must_match_its_sample(tmp_path: Path) -> None:
    """`check` checks every row, and the error has the line of the row."""
    base = shipped(tmp_path / "base")
    text = TABLE.replace("code: '7'", "code: 'x'").replace("leads_to: [{signature: a.b}]\n", "")
    path = write(tmp_path, "box.fault", text)
    errors = [
        problem
        for problem in check_files([path], to_evidence=lambda line: [evidence(line)], shipped=base)
        if problem.severity == "error" and "match" in problem.message
    ]
    messages = [(problem.line, problem.message) for problem in errors if "costly" not in problem.message]
    assert messages == [(15, "this sample must match, but it does not")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[1.5] NVRM: Xid (PCI:0000:3b:00): 62, pid=1, name=python3, 3dd5", "gpu.xid-62"),
        ("[1.5] NVRM: Xid (PCI:0000:3b:00): 1, pid=1, name=python3", "gpu.xid-1"),
        ("NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE something else", "gpu.xid-145"),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
            "gpu.sxid-code-12028",
        ),
        ("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 22003, Fatal, Link 32 Minion Halt", "gpu.sxid-code-22003"),
        ("EI0003: [PID: 4] 2026-03-01-10:00:00.100.200 The argument is not valid.", "hccl.code-ei0003"),
        ("EL0015: [PID: 4] 2026-03-01-10:00:00.100.200 Access failed.", "npu.cann-el0015"),
        (
            "RuntimeError: create:compiler_depend.ts:9 NPU function error: aclrtSetDevice, error code is 507033",
            "npu.acl-507033",
        ),
        (
            "[ERROR] HCCL(3,python3.9):2026-07-15-19:50:49.253.079 [a.cc:1] [3]errNo[0x0000000005000013] x",
            "hccl.result-19",
        ),
    ],
)
def test_a_shipped_code_is_known(catalog: Catalog, line: str, expected: str) -> None:
    """A log line with a code of the shipped tables matches its row, which has a meaning and an action."""
    assert expected in Matcher(catalog).evaluate(extract_text(line))
    row = next(signature for signature in catalog.signatures if signature.id == expected)
    assert row.meaning
    assert row.summary


def test_a_code_with_its_own_signature_matches_once(catalog: Catalog) -> None:
    """Xid 95 matches its signature and not the row of the table."""
    line = "NVRM: Xid (PCI:0000:9b:00): 95, pid=1234, name=python3, Uncontained: FBHUB. RST: Yes, D-RST: No"
    assert list(Matcher(catalog).evaluate(extract_text(line))) == ["gpu.xid-95"]


def test_the_tables_are_complete(catalog: Catalog) -> None:
    """Xid 1 to 172 and the codes of the other vendors are there."""
    ids = {signature.id for signature in catalog.signatures}
    assert {f"gpu.xid-{code}" for code in range(1, 173)} <= ids
    assert {f"hccl.code-ei{number:04}" for number in range(1, 21)} <= ids
    assert {f"hccl.result-{number}" for number in range(1, 25)} <= ids
    assert sum(identifier.startswith("gpu.sxid-code-") for identifier in ids) >= 90
    assert sum(identifier.startswith("npu.acl-") for identifier in ids) >= 50
