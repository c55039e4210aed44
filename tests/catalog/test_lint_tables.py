from __future__ import annotations

import pytest

from tests.catalog.factories import parse_signature
from tests.catalog.test_code_tables import TABLE
from triage.catalog.lint_tables import check_rows
from triage.catalog.model import Signature
from triage.catalog.read import parse_signatures
from triage.evidence import extract_text

WET = r"""
id: box.wet
revision: 1
title: The box is wet
status: stable
role: either
severity: error
match:
  any:
    - text: 'BOX: fault (?P<fault>7|9)\b'
    - text: 'BOX: water'
remediation: {action: none, summary: Dry the box.}
"""


def messages(special: str = WET, table: str = TABLE, named: str = "") -> list[str]:
    rows, problems = parse_signatures(table, "box/fault.yaml")
    assert problems == []
    one, _ = parse_signature(special, "box/wet.yaml")
    assert one is not None
    signatures: dict[str, Signature] = {row.id: row for row in [*rows, one]}
    remarks = check_rows(signatures, {named} if named else signatures, extract_text)
    return [f"{owner}: {severity}: {message}" for owner, (severity, _, message, _) in remarks]


def test_a_row_and_its_signature_may_agree() -> None:
    """With the same role and action nothing is reported."""
    assert messages() == []


@pytest.mark.parametrize(("old", "new"), [("role: either", "role: cause"), ("action: none", "action: wait")])
def test_a_signature_that_takes_the_bare_code_must_agree(old: str, new: str) -> None:
    """Else it silences the row's advice; the one of the two that is checked has the error."""
    (message,) = messages(WET.replace(old, new))
    assert message.startswith(
        "box.wet: error: box.fault-9 is either/none, but box.wet, which matches its bare code, is "
    )
    assert messages(WET.replace(old, new), named="box.fault-9")[0].startswith("box.fault-9: error")
    assert messages(WET.replace(old, new), named="box.fault-8") == []


def test_a_signature_that_needs_more_text_may_differ() -> None:
    """A line with more than the code is another matter."""
    more = WET.replace("role: either", "role: cause").replace(r"(?P<fault>7|9)\b", "(?P<fault>7|9) in slot 7")
    assert messages(more) == []
    assert messages(WET.replace("role: either", "role: cause").replace("stable", "deprecated")) == []


def test_codes_of_one_pattern_should_have_one_action() -> None:
    """Alternatives with different actions are a warning, which lists them."""
    table = TABLE.replace("role: cause, action: reset-gpu", "role: either, action: reset-gpu, signature: [box.wet]")
    both = WET.replace("7|9", "8|9")
    assert [one for one in messages(both, table) if "warning" in one] == [
        "box.wet: warning: one pattern has codes with different actions in box.fault (8 reset-gpu, 9 none): "
        r"BOX: fault (?P<fault>8|9)\b"
    ]
