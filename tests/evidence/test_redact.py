"""Secrets go where log text becomes evidence, and ordinary text stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.evidence import from_text
from triage.evidence.redact import redact

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
SECRETS = [
    (
        "private-key",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAsecretline\n-----END RSA PRIVATE KEY-----",
        "MIIEowIBAAKCAQEAsecretline",
    ),
    ("aws-key", "boto3 with AKIAIOSFODNN7EXAMPLE failed", "AKIAIOSFODNN7EXAMPLE"),
    ("token", "huggingface login hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    ("token", "git clone with ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("token", "github_pat_11ABCDEFG0abcdefghijklmnopqrstuvwxyz used", "github_pat_11ABCDEFG0abcdefghijklmnopqrstuvwxyz"),
    ("token", "registry glpat-abcdefghijklmnopqrst", "glpat-abcdefghijklmnopqrst"),
    ("token", "slack xoxb-123456789012-abcdefghijkl", "xoxb-123456789012-abcdefghijkl"),
    ("token", "key sk-abcdefghijklmnopqrstuvwxyz012345", "sk-abcdefghijklmnopqrstuvwxyz012345"),
    ("jwt", f"cookie {JWT}", JWT),
    ("bearer", "Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
    ("url-password", "cloning https://bob:hunter2pass@git.example.com/x.git", "hunter2pass"),
    ("assignment", "DB_PASSWORD=correct-horse", "correct-horse"),
    ("assignment", "login(password='correct-horse')", "correct-horse"),
    ("assignment", '{"api_key": "0123456789abcdef"}', "0123456789abcdef"),
    ("assignment", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("assignment", "WANDB_API_KEY: 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123456789abcdef01234567"),
    ("assignment", "auth_token = abcdefgh12345678", "abcdefgh12345678"),
]
ORDINARY = [
    "token count: 4096",
    "key: value",
    "tokens/s 3456",
    "step 12 tokens_per_second=151234 loss 3.2",
    "KeyError: 'model.layers.0.weight'",
    'missing key(s) in state_dict: "encoder.weight"',
    "pad_token_id=50256 eos_token=</s>",
    "password: None",
    "store key: /default_pg/0//cpu//0/1",
    "tokenizer = AutoTokenizer.from_pretrained",
    "connecting to tcp://10.0.0.1:29500",
    "https://pytorch.org/docs/stable/elastic/errors.html",
    "num_key_value_heads: 8, key_dim: 1024000",
    "the bearer of bad news arrived",
    "node1:412:530 [0] NCCL INFO comm 0x55 rank 0 nranks 8 cudaDev 0 busId 3b000",
    "commit 0123456789abcdef0123456789abcdef01234567",
]


@pytest.mark.parametrize(("kind", "text", "secret"), SECRETS)
def test_each_kind_of_secret_is_taken_out(kind: str, text: str, secret: str) -> None:
    """The secret goes, its kind is said, and the words around it stay."""
    clean = redact(text)
    assert secret not in clean
    assert f"[redacted {kind}]" in clean


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_lines_stay(text: str) -> None:
    """Nothing is taken out of lines that only look busy."""
    assert redact(text) == text


@given(st.sampled_from(SECRETS), st.text(alphabet="abc (){}[]\n\t", max_size=30), st.text(alphabet=" ,.;)\n\t", max_size=10))
def test_surroundings_do_not_hide_a_secret(case: tuple[str, str, str], before: str, after: str) -> None:
    """Whatever stands before and after, the secret goes."""
    assert case[2] not in redact(f"{before} {case[1]} {after}")


@given(st.text())
def test_redaction_is_done_once(text: str) -> None:
    """Doing it again changes nothing more."""
    assert redact(redact(text)) == redact(text)


def test_no_part_of_a_fact_holds_a_secret() -> None:
    """Text, fields and excerpt of evidence all pass the same door: message, code line and file alike."""
    facts = from_text(
        "Traceback (most recent call last):\n"
        '  File "/w/train.py", line 3, in <module>\n'
        "    login(password='correct-horse')\n"
        "RuntimeError: https://bob:hunter2pass@files.example.com refused AKIAIOSFODNN7EXAMPLE\n"
    )
    told = repr(facts)
    for secret in ("correct-horse", "hunter2pass", "AKIAIOSFODNN7EXAMPLE"):
        assert secret not in told
