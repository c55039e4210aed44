"""Lines of keys go, lines around them stay, and each line keeps its number."""

from __future__ import annotations

from tests.evidence.generated_secrets import fill
from triage.evidence.redact import redact

BLOCK = fill("block", "{{pem RSA PRIVATE KEY}}", 0)


def test_lines_around_a_key_stay() -> None:
    """What stands before and behind a key is not lost, also when its end was cut off."""
    for block in (BLOCK.text, BLOCK.text.rpartition("\n")[0]):
        text = f"step 1 loss 2.5\n{block}\nstep 2 loss 2.4\nRuntimeError: boom"
        lines = redact(text).split("\n")
        assert len(lines) == text.count("\n") + 1
        assert lines[0] == "step 1 loss 2.5"
        assert lines[-2:] == ["step 2 loss 2.4", "RuntimeError: boom"]
        assert BLOCK.leaks("\n".join(lines)) == []


def test_certificates_and_public_keys_stay() -> None:
    """Only private keys are secrets."""
    block = BLOCK.text.replace("RSA PRIVATE KEY", "CERTIFICATE").split("\n")
    text = "\n".join((block[0], "short", block[-1]))
    assert redact(text) == text


def test_many_keys_take_linear_time() -> None:
    """Hostile repeats of the first line end, and lose no line."""
    text = (BLOCK.text.split("\n")[0] + "\n") * 5000
    assert redact(text).count("\n") == 5000
