"""Tables of codes: one pattern, one literal, and a signature for each row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.helpers import evidence, shipped, write
from triage.catalog import gate, read
from triage.catalog.check import check
from triage.catalog.match import Matcher, evaluate
from triage.catalog.model import Catalog, Signature
from triage.evidence import from_text

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
    found, problems = read.parse_all(text, "box/fault.yaml")
    assert problems == []
    return {signature.id: signature for signature in found}


def test_a_row_is_a_signature() -> None:
    """Id, words, role and severity come from the row and the table; a row whose id its own signature has is left out."""
    found = rows()
    assert list(found) == ["box.fault-7", "box.fault-8", "box.fault-9"]
    seven, eight, nine = found.values()
    assert (seven.title, seven.meaning, seven.summary) == (
        "Fault 7: it is warm",
        "The box says 7 (SEVEN).",
        "Fault 7 on {host}: it is warm.",
    )
    assert (seven.severity, eight.severity, nine.severity) == ("info", "fatal", "error")
    assert (seven.leads_to, [edge.signature for edge in eight.leads_to]) == ((), ["a.b"])
    assert eight.steps == ("reset 8",)
    assert len({signature.fingerprint for signature in found.values()}) == 3


def test_a_row_matches_its_codes_wherever_they_stand() -> None:
    """The second code of a text counts too, and so do other spellings; another code does not."""
    found = rows()
    both = [evidence("BOX: fault 7 then BOX: fault 0008")]
    assert evaluate(found["box.fault-7"], both)
    match = evaluate(found["box.fault-8"], both)
    assert match is not None
    assert match.captures == {"fault": "0008"}
    assert evaluate(found["box.fault-9"], both) is None
    assert evaluate(found["box.fault-8"], [evidence("BOX: fault 80")]) is None


def test_a_row_yields_to_a_signature_that_says_more() -> None:
    """Where both match the same evidence, the row is silent; where only the row does, it speaks."""
    own, _ = read.parse(
        "id: box.wet\nrevision: 1\ntitle: Wet\nstatus: stable\nrole: cause\nseverity: fatal\nmatch: {text: 'fault 9 in the rain'}",
        "w",
    )
    assert own is not None
    matcher = Matcher(Catalog("1", (*rows().values(), own)))
    assert list(matcher.evaluate([evidence("BOX: fault 9 in the rain")])) == ["box.wet"]
    assert sorted(matcher.evaluate([evidence("BOX: fault 9 in the rain"), evidence("BOX: fault 9")])) == [
        "box.fault-9",
        "box.wet",
    ]


def test_rows_cost_one_literal() -> None:
    """The scan looks for the words of the table once, however many rows it has."""
    _, literals, weak = gate.equip(rows().values(), "step 1 loss 2\n")
    assert (literals, weak) == (("BOX: fault ",), [])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("key: fault", "key: code", "no group code"),
        ("code: '8'", "code: '7'", "two rows"),
        (
            "  reset-gpu: {summary: 'Reset the box of {host}.', steps: ['reset {code}']}\n",
            "",
            "no remediation for reset-gpu",
        ),
        ("'BOX: fault {code} in slot 3'", "'BOX: fault 7'", "must hold {code}"),
        ("code: '8'", "code: 'a b'", "has not the right form"),
        ("role: noise", "role: guide", "is not allowed here"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(old: str, new: str, words: str) -> None:
    """Each mistake is an error in the words of the table."""
    assert old in TABLE
    found, problems = read.parse_all(TABLE.replace(old, new), "box/fault.yaml")
    assert found == []
    assert [problem for problem in problems if words in problem.message], problems


def test_a_row_that_does_not_match_its_sample_is_an_error_at_its_place(tmp_path: Path) -> None:
    """`check` proves every row, and points to the row."""
    base = shipped(tmp_path / "base")
    text = TABLE.replace("code: '7'", "code: 'x'").replace("leads_to: [{signature: a.b}]\n", "")
    path = write(tmp_path, "box.fault", text)
    errors = [
        problem
        for problem in check([path], to_evidence=lambda line: [evidence(line)], shipped=base)
        if problem.severity == "error"
    ]
    assert [(problem.line, "must match, and does not" in problem.message) for problem in errors] == [(15, True)]


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
def test_a_code_without_a_signature_of_its_own_is_known(catalog: Catalog, line: str, expected: str) -> None:
    """A line of the log with a code of the shipped tables gives the finding of its row, with meaning and action."""
    assert expected in Matcher(catalog).evaluate(from_text(line))
    row = next(signature for signature in catalog.signatures if signature.id == expected)
    assert row.meaning
    assert row.summary


def test_a_code_that_a_signature_explains_is_left_to_it(catalog: Catalog) -> None:
    """Xid 94 is one finding, not two."""
    line = "NVRM: Xid (PCI:0000:9b:00): 95, pid=1234, name=python3, Uncontained: FBHUB. RST: Yes, D-RST: No"
    assert list(Matcher(catalog).evaluate(from_text(line))) == ["gpu.xid-94-95"]


def test_the_tables_have_the_codes_of_their_vendors(catalog: Catalog) -> None:
    """Xid 1 to 172 without a gap, but for those whose id a signature has."""
    ids = {signature.id for signature in catalog.signatures}
    assert {f"gpu.xid-{code}" for code in range(1, 173)} <= ids
    assert {f"hccl.code-ei{number:04}" for number in range(1, 21)} <= ids
    assert {f"hccl.result-{number}" for number in range(1, 25)} <= ids
    assert sum(identifier.startswith("gpu.sxid-code-") for identifier in ids) >= 90
    assert sum(identifier.startswith("npu.acl-") for identifier in ids) >= 50
