"""Secrets go where log text becomes evidence, and ordinary text stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import triage
from triage.base.errors import OptionError
from triage.evidence import extract_text, redact as door
from triage.evidence.redact import count_redactions, redact, redact_all
from triage.evidence.redaction import Pseudonyms
from triage.evidence.secrets import RULES

ROOT = Path(__file__).parents[2]

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
    (
        "token",
        "github_pat_11ABCDEFG0abcdefghijklmnopqrstuvwxyz used",
        "github_pat_11ABCDEFG0abcdefghijklmnopqrstuvwxyz",
    ),
    ("token", "registry glpat-abcdefghijklmnopqrst", "glpat-abcdefghijklmnopqrst"),
    ("token", "slack xoxb-123456789012-abcdefghijkl", "xoxb-123456789012-abcdefghijkl"),
    ("token", "key sk-abcdefghijklmnopqrstuvwxyz012345", "sk-abcdefghijklmnopqrstuvwxyz012345"),
    ("jwt", f"cookie {JWT}", JWT),
    ("bearer", "Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
    ("url-password", "cloning https://bob:hunter2pass@git.example.com/x.git", "hunter2pass"),
    ("assignment", "DB_PASSWORD=correct-horse", "correct-horse"),
    ("assignment", "login(password='correct-horse')", "correct-horse"),
    ("assignment", '{"api_key": "0123456789abcdef"}', "0123456789abcdef"),
    (
        "assignment",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ),
    (
        "assignment",
        "WANDB_API_KEY: 0123456789abcdef0123456789abcdef01234567",
        "0123456789abcdef0123456789abcdef01234567",
    ),
    ("assignment", "auth_token = abcdefgh12345678", "abcdefgh12345678"),
    ("assignment", 'db_password="correct horse battery"', "correct horse battery"),
    ("assignment", "export SLURM_JOB_TOKEN=abcd1234efgh", "abcd1234efgh"),
    ("assignment", "login with token: a1b2c3d4e5f6a7b8", "a1b2c3d4e5f6a7b8"),
    ("assignment", "client-key-data: LS0tLS1CRUdJTiBSU0E", "LS0tLS1CRUdJTiBSU0E"),
    ("assignment", "ssh.passphrase => open-sesame", "open-sesame"),
    ("assignment", "secret: auth_token = abcdefgh12345678", "abcdefgh12345678"),
    ("assignment", "SecretError: login(password='correct-horse')", "correct-horse"),
    ("private-key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n-----END PGP PRIVATE KEY BLOCK-----", "lQOYBF"),
    (
        "private-key",
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz",
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz",
    ),
    ("private-key", "c2VjcmV0\nQUJD=\n-----END RSA PRIVATE KEY-----", "c2VjcmV0"),
    (
        "google-key",
        "maps with AIzaSyA1234567890abcdefghijklmnopqrstuv failed",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    ),
    ("google-key", "gcs: ya29.a0AfH6SMBabcdefghijklmnop expired", "ya29.a0AfH6SMBabcdefghijklmnop"),
    (
        "azure-key",
        "AccountName=x;AccountKey=abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG==;E=y",
        "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG==",
    ),
    ("cloud-key", "oss2 LTAI5tAbCdEfGhIjKlMnOpQr refused", "LTAI5tAbCdEfGhIjKlMnOpQr"),
    ("cloud-key", "databricks dapi0123456789abcdef0123456789abcdef", "dapi0123456789abcdef0123456789abcdef"),
    ("token", "npm ERR npm_abcdefghijklmnopqrstuvwxyz0123456789", "npm_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("token", "NGC nvapi-abcdefghijklmnopqrstuvwx-0123", "nvapi-abcdefghijklmnopqrstuvwx-0123"),
    ("token", "vault hvs.CAESIJabcdefghijklmnopqrst", "hvs.CAESIJabcdefghijklmnopqrst"),
    ("token", "pypi-AgEIcHlwaS5vcmcCJabcdefghijklmnopqrst", "pypi-AgEIcHlwaS5vcmcCJabcdefghijklmnopqrst"),
    (
        "webhook",
        "POST https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnopqrstuvwx",
        "T00000000/B00000000/abcdefghijklmnopqrstuvwx",
    ),
    ("basic-auth", "Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
    ("cookie", "Set-Cookie: session=0123456789abcdef; Path=/", "0123456789abcdef"),
    (
        "url-password",
        "pip install --index-url https://abcdefghij0123456789klmno@pypi.example.com/simple",
        "abcdefghij0123456789klmno",
    ),
    ("url-parameter", "GET https://b.s3.amazonaws.com/x?X-Amz-Signature=0123456789abcdef&y=1", "0123456789abcdef"),
    ("url-parameter", "https://a.blob.core.windows.net/c?sv=2020&sig=abc%2Fdef%2B012345", "abc%2Fdef%2B012345"),
    ("wandb-key", "wandb login 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123456789abcdef01234567"),
    ("option", "train.py --hub-token abcdefgh1234 --steps 5", "abcdefgh1234"),
    ("option", "mysql --password correct-horse", "correct-horse"),
    ("netrc", "machine api.wandb.ai login user password 0a1b2c", "0a1b2c"),
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
    "sha256 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "ValueError: Unknown token: <|endoftext|> at 1234567",
    "train.py --max-tokens 4096 --tokenizer-path /data/tokenizer.model --num-key-value-heads 8",
    "secret_santa=None, credentials: None, password=***",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "missing_keys=['lm_head.weight'], unexpected_keys=[]",
    "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cpu//0",
    "optimizer state key: exp_avg_sq, param group 0",
    "git@github.com:org/repo.git",
    "https://github.com/pytorch/pytorch/issues/8976?key=1",
    "bos_token_id=1, eos_token_id=2, tokens=[1, 2, 3]",
    "Signature mismatch: expected (Tensor, int)",
]


@pytest.mark.parametrize(("kind", "text", "secret"), SECRETS)
def test_each_kind_of_secret_is_taken_out(kind: str, text: str, secret: str) -> None:
    """The secret is replaced by its kind, and the text around it stays."""
    clean = redact(text)
    assert secret not in clean
    assert f"[redacted {kind}]" in clean


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_lines_stay(text: str) -> None:
    """Nothing is taken out of lines that only look busy."""
    assert redact(text) == text


@given(
    st.sampled_from(SECRETS),
    st.text(alphabet="abc (){}[]\n\t", max_size=30),
    st.text(alphabet=" ,.;)\n\t", max_size=10),
)
def test_surroundings_do_not_hide_a_secret(case: tuple[str, str, str], before: str, after: str) -> None:
    """Whatever stands before and after, the secret goes."""
    assert case[2] not in redact(f"{before} {case[1]} {after}")


_PIECES = (
    [text for _, text, _ in SECRETS]
    + ORDINARY
    + ["client_key_data: ", "--apikey ", "HF-TOKEN=", "idtoken=", "Pass_Phrase", "x7q9-longer-value"]
)


@given(
    st.lists(st.tuples(st.sampled_from(_PIECES), st.sampled_from([str, str.upper, str.title])), max_size=4).map(
        lambda parts: [f(t) for t, f in parts]
    )
)
def test_hints_hide_no_secret(parts: list[str]) -> None:
    """What is redacted is what all rules together would, hinted at or not."""
    for text in (" ".join(parts), "".join(parts)):
        clean = text
        for rule in RULES:
            clean = rule.redact(clean)
        assert redact(text) == clean or len(text) < door.SHORTEST


@given(st.text())
def test_redaction_is_done_once(text: str) -> None:
    """Doing it again changes nothing more."""
    assert redact(redact(text)) == redact(text)


def test_no_part_of_a_fact_holds_a_secret() -> None:
    """Text, fields and excerpt of evidence all pass the same door: message, code line and file alike."""
    facts = extract_text(
        "Traceback (most recent call last):\n"
        '  File "/w/train.py", line 3, in <module>\n'
        "    login(password='correct-horse')\n"
        "RuntimeError: https://bob:hunter2pass@files.example.com refused AKIAIOSFODNN7EXAMPLE\n"
    )
    text = repr(facts)
    for secret in ("correct-horse", "hunter2pass", "AKIAIOSFODNN7EXAMPLE"):
        assert secret not in text


def test_every_line_of_recorded_jobs_stays_readable() -> None:
    """Of the recorded jobs, which hold no secrets, nothing is taken out."""
    samples = Path(__file__).parents[2] / "samples" / "jobs"
    lines = [
        line
        for path in sorted(samples.rglob("*.log"))
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
    ]
    assert len(lines) > 1000
    assert [line for line in lines if redact(line) != line] == []


def test_a_key_that_is_cut_in_the_middle_is_taken_out_whole() -> None:
    """A long block is shortened only after its secrets are gone."""
    body = "\n".join(f"MIIEowIBAAKCAQEA{number:048d}" for number in range(80))
    facts = extract_text(
        f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x()\nValueError: -----BEGIN RSA '
        f"PRIVATE KEY-----\n{body}\n"
    )
    assert "MIIEowIBAAKCAQEA" not in repr(facts)


def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "redact.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("TRIAGE_REDACT", str(tmp_path / "redact.toml"))


def test_own_patterns_and_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file adds kinds; a group v is the secret, else the whole match."""
    line = "ACME-123456 by ann@example.com, badge 12345678"
    assert redact(line) == line
    settings(
        tmp_path, monkeypatch, "email = true\n[patterns]\nticket = 'ACME-[0-9]{6}'\nbadge = 'badge (?P<v>[0-9]{8})'\n"
    )
    assert redact(line) == "[redacted ticket] by [redacted email], badge [redacted badge]"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[patterns]\na = '('", "cannot be used"),
        ("[patterns]\na = '(?=x)'", "cannot be used"),
        ("[patterns]\na = 'x*'", "too much"),
        ("[patterns]\na = 'redacted'", "too much"),
        ("[patterns]\n'a b' = 'x'", "is not"),
        ("emails = true", "unknown setting 'emails'"),
        ("email = 1", "true or false"),
        ("pseudonyms = true", "need a key"),
        ("= nonsense", "is not TOML"),
    ],
)
def test_settings_that_cannot_be_used_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    """Better no report than a secret in one: an error that says what is wrong."""
    settings(tmp_path, monkeypatch, text)
    with pytest.raises(OptionError, match=says) as caught:
        redact("x")
    assert caught.value.hint
    monkeypatch.setenv("TRIAGE_REDACT", str(tmp_path / "gone.toml"))
    with pytest.raises(OptionError, match="cannot read"):
        redact("x")


def test_pseudonyms_are_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts and addresses get other names, the same in every report of one key; versions, times and loopback stay."""
    settings(tmp_path, monkeypatch, 'pseudonyms = true\nkey = "0123456789abcdef"\n')
    diagnosis = redact_all(triage.ingest(str(ROOT / "samples" / "jobs" / "sigkill_twonode_tee" / "job")))
    assert redact_all(diagnosis) == diagnosis
    monkeypatch.delenv("TRIAGE_REDACT")
    plain = triage.ingest(str(ROOT / "samples" / "jobs" / "sigkill_twonode_tee" / "job"))
    names = list(plain.job.hosts)
    assert names
    text = repr(diagnosis)
    assert [name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)] == []
    assert len(diagnosis.job.hosts) == len(names)
    assert all(re.fullmatch("host-[0-9a-f]{8}", name) for name in diagnosis.job.hosts)
    one, other = Pseudonyms("0123456789abcdef", {"node17"}), Pseudonyms("another key here", {"node17"})
    line = "node17.cluster.local:4711 (10.1.2.3, fe80::1:2:3) at 03:17:26 with NCCL 2.21.5 via 127.0.0.1, not node170"
    first = one(line)
    assert first == one(line) != other(line)
    assert first.startswith(one("node17") + ":4711 (addr-")
    for plain_text in ("03:17:26", "2.21.5", "127.0.0.1", "node170"):
        assert plain_text in first
    for gone in ("node17.", "10.1.2.3", "fe80"):
        assert gone not in first


def test_secrets_are_counted_and_not_stored() -> None:
    """How many of each kind were taken out of the facts."""
    facts = extract_text(
        "RuntimeError: hf_abcdefghijklmnopqrstuvwxyzABCDEFGH and hf_zyxwvutsrqponmlkjihgfedcbaABCDEFGH, "
        "PASSWORD=correct-horse\n"
    )
    assert count_redactions(facts) == {"assignment": 1, "token": 2}
