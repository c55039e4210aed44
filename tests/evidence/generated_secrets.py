"""Build lines with generated secrets from the templates in secret_kinds.yaml."""

from __future__ import annotations

import base64
import random
import re
import string
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

HERE = Path(__file__).parent
SEEDS = (0, 1, 2)
_FIELD = re.compile(r"\{\{(~?)([a-z0-9-]+)(?: ([^}]+))?\}\}")
_MARK = re.compile(r"\[redacted [\w-]+\]")
_ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "b32": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "b32low": "abcdefghijklmnopqrstuvwxyz234567",
    "b64": string.ascii_letters + string.digits + "+/",
    "b64url": string.ascii_letters + string.digits + "-_",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "digits": string.digits,
    "hex": "0123456789abcdef",
    "letters": string.ascii_letters,
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
}
# What people choose as passwords: mixed, with punctuation, and words without any digit.
_PASSWORDS = (string.ascii_letters + string.digits, string.ascii_lowercase + string.digits + "-_.!~+", None)
_NOUNS = ("quiet", "harbor", "lemon", "velvet", "copper", "meadow", "anchor", "ribbon", "walnut", "tundra")
# Where a secret with a form of its own is put.
HOMES = (
    "RuntimeError: request with {} failed",
    '{{"a": 1, "b": "{}", "c": 2}}',
    "f('{}', timeout=3)",
    "see {}.",
    "{}",
)


@dataclass(frozen=True)
class Case:
    """One text with its secrets. Secrets of fewer than eight characters count whole, else each run of eight."""

    kind: str
    text: str
    secrets: tuple[str, ...]

    def leaks(self, output: str) -> list[str]:
        """Return the parts of the secrets that are still in the output."""
        runs = {secret[i : i + 8] for secret in self.secrets for i in range(max(1, len(secret) - 7))}
        rest = _MARK.sub("", output)
        return sorted(run for run in runs if run in rest)


@cache
def load_kinds() -> dict[str, tuple[str, str]]:
    """Return (group, template) by kind."""
    groups = yaml.safe_load((HERE / "secret_kinds.yaml").read_text(encoding="utf-8"))
    return {kind: (group, template) for group, kinds in groups.items() for kind, template in kinds.items()}


def make_cases(kind: str) -> list[Case]:
    """Return the texts of a kind: each seed, and for a secret with a form of its own each place."""
    group, template = load_kinds()[kind]
    cases = [fill(kind, template, seed) for seed in SEEDS]
    if group != "tokens":
        return cases
    return [Case(kind, home.format(case.text), case.secrets) for case in cases for home in HOMES]


def fill(kind: str, template: str, seed: int) -> Case:
    """Return the template with generated values: the same for the same kind and seed."""
    source = random.Random(f"{kind} {seed}")
    secrets: list[str] = []

    def put(match: re.Match[str]) -> str:
        public, name, argument = match.groups()
        text, parts = _generate(source, seed, name, argument or "")
        if not public:
            secrets.extend(parts)
        return text

    return Case(kind, _FIELD.sub(put, template), tuple(secrets))


def _generate(source: random.Random, seed: int, name: str, argument: str) -> tuple[str, list[str]]:
    if name.startswith("pem"):
        return _key_block(source, name.removeprefix("pem").removeprefix("-"), argument)
    if name == "uuid":
        text = str(uuid.UUID(int=source.getrandbits(128), version=4))
    elif name == "phrase":
        text = " ".join(source.choices(_NOUNS, k=int(argument)))
    elif name == "word":
        text = _password(source, seed, int(argument))
    elif name == "mixed":
        text = _password(source, 0, int(argument))
    else:
        text = "".join(source.choices(_ALPHABETS[name], k=int(argument)))
    return text, [text]


def _password(source: random.Random, seed: int, length: int) -> str:
    alphabet = _PASSWORDS[seed]
    if alphabet is None:
        return "-".join(source.choices(_NOUNS, k=8))[:length].strip("-").ljust(length, "z")
    inner = "".join(source.choices(alphabet, k=length - 3))
    return source.choice(string.ascii_letters) + inner + source.choice(string.digits) + source.choice("kmxz")


def _key_block(source: random.Random, form: str, label: str) -> tuple[str, list[str]]:
    """Return a block with a key of random bytes, and its lines as the secrets."""
    width = 70 if "OPENSSH" in label or "SSH2" in label else 64
    body = base64.b64encode(source.randbytes(width * 9 + 21)).decode()
    lines = [body[i : i + width] for i in range(0, len(body), width)]
    dashes = "-" * 5
    first, last = f"{dashes}BEGIN {label}{dashes}", f"{dashes}END {label}{dashes}"
    whole = {
        "tail": [*lines[3:], last],
        "head": [first, *lines[:5]],
    }.get(form, [first, *lines, last])
    if form == "spaces":
        return " ".join(whole), lines
    if form in ("escaped", "double-escaped"):
        return ("\\n" if form == "escaped" else "\\\\n").join(whole), lines
    prefix = {"prefixed": "[default3]: ", "indented": "      "}.get(form, "")
    return "\n".join(prefix + line for line in whole), lines
