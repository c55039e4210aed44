"""Each kind of secret in secret_kinds.yaml is taken out, and healthy text stays as it is."""

from __future__ import annotations

import pytest

from tests.evidence.generated_secrets import HERE, load_kinds, make_cases
from triage.evidence.redact import redact

HEALTHY = [
    line
    for line in (HERE / "healthy_text.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("##")
]


@pytest.mark.parametrize("kind", load_kinds())
def test_no_part_of_a_secret_survives(kind: str) -> None:
    """No run of eight characters of a secret is left, and every line still has its number."""
    for case in make_cases(kind):
        assert case.secrets, "a kind without a secret proves nothing"
        assert case.leaks(case.text)
        output = redact(case.text)
        assert case.leaks(output) == [], output
        assert output.count("\n") == case.text.count("\n")
        assert redact(output) == output


@pytest.mark.parametrize("line", HEALTHY)
def test_healthy_text_stays(line: str) -> None:
    """Hashes, ids, settings, prose and paths without secrets stay as they are."""
    assert redact(line) == line


def test_tables_are_long_enough() -> None:
    """At least 250 kinds and 150 healthy lines."""
    assert len(load_kinds()) >= 250
    assert len(set(HEALTHY)) >= 150
