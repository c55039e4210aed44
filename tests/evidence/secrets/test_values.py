"""Values that can be secrets, and those that cannot, on both sides of each limit."""

from __future__ import annotations

import pytest

from triage.evidence.secrets.values import is_code, is_mixed, is_path, is_statement, is_unusual, looks_random


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("a1b2c3d4e5f6", True),  # twelve characters
        ("a1b2c3d4e5f", False),
        ("abcdefgh1234", True),  # changes once in eleven
        ("abcdefghijk12", False),
        ("3f2504e0-4f89-41d3-9a0c-0305e82c3301", True),
        ("aaaaaaaaaaaaaaaaaa12", False),  # changes once in nineteen
        ("aaaaaaaa1aaaaaaaaa12", True),
        ("kQzRtWmXbNpLvYcHsJdF", True),  # twenty letters of both cases
        ("kQzRtWmXbNpLvYcHsJd", False),
        ("123456789012345678", False),
        ("https://example.com/a1b2c3d4", False),
        ("two words a1b2c3d4e5", False),
    ],
)
def test_random_values(value: str, answer: bool) -> None:
    """Long, of letters and digits that change often."""
    assert looks_random(value) is answer


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("fZ3kQ9xW2mB7", True),
        ("0f1e2d3c4b5a69788796a5b4c3d2e1f0", False),
        ("DispatchKeySetAutogradCUDA", False),
        ("ProcessGroupNCCL8WorkNCCL15checkTimeout", False),
    ],
)
def test_mixed_values(value: str, answer: bool) -> None:
    """Neither hashes nor CamelCase nor mangled names are random text of all classes."""
    assert is_mixed(value) is answer


@pytest.mark.parametrize(
    ("value", "answer"), [("sort_key", False), ("a.sort_key", False), ("quiet-lemon", True), ("a-b-c-d", False)]
)
def test_unusual_values(value: str, answer: bool) -> None:
    """Eight characters that are no identifier."""
    assert is_unusual(value) is answer


def test_values_that_say_there_is_none() -> None:
    """Statements, placeholders, expressions and paths are no secrets."""
    assert all(map(is_statement, ("None", "required", "***", "<token>", "${PW}", "%s", "xoxb-…", "your-key", "")))
    assert not any(map(is_statement, ("nonesuch", "hunter2", "p@ss", "yes-we-can")))
    assert all(map(is_code, ("os.environ['X']", "get_secret(name)", "self.token", "getpass")))
    assert not any(map(is_code, ("hunter2", "quiet.lemon7x")))
    assert all(map(is_path, ("/etc/ssl/key.pem", "./x/y", "datasets/c4/en", "server.key")))
    assert not any(map(is_path, ("wJalrXUtn/K7MDENG/bPxRfiCY", "hunter2", "/x7Kq9Zp2LmW4tR8vB1nY6/")))
