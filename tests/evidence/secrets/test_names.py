"""Names that mean a secret, and names that look like them."""

from __future__ import annotations

import pytest

from triage.evidence.secrets.names import Strength, judge_name


@pytest.mark.parametrize(
    ("name", "strength"),
    [
        ("dbPassword", Strength.ANY),
        ("DB_PASSWORD_PROD", Strength.ANY),
        ("spring.datasource.password", Strength.ANY),
        ("mypassword", Strength.ANY),
        ("pass_phrase", Strength.ANY),
        ("x-api-key", Strength.ANY),
        ("SecretAccessKey", Strength.ANY),
        ("access_key_id", Strength.ANY),
        ("NPM_TOKEN", Strength.ANY),
        ("smtp_pass", Strength.ANY),
        ("密码", Strength.ANY),
        ("pass", Strength.QUOTED),
        ("COHERE_KEY", Strength.UNUSUAL),
        ("forward_pass", Strength.UNUSUAL),
        ("cohere_key", Strength.RANDOM),
        ("token", Strength.RANDOM),
        ("auth", Strength.RANDOM),
        ("key", Strength.NONE),
        ("cache_key", Strength.NONE),
        ("CACHE_KEY", Strength.NONE),
        ("pad_token", Strength.NONE),
        ("PAD_TOKEN", Strength.NONE),
        ("max_tokens", Strength.NONE),
        ("password_file", Strength.NONE),
        ("secretName", Strength.NONE),
        ("tokenizer", Strength.NONE),
        ("monkey", Strength.NONE),
        ("author", Strength.NONE),
        ("...", Strength.NONE),
    ],
)
def test_names_of_all_styles(name: str, strength: Strength) -> None:
    """The words of a name decide, not the way they are joined."""
    assert judge_name(name) is strength
