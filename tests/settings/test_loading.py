"""Which value counts, and that its origin is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.base.errors import OptionError
from triage.settings import load


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("TRIAGE_CONFIG", str(path))
    return path


def test_command_line_over_environment_over_file_over_default(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place beats those below it, and is named as the origin."""
    file.write_text('[web]\nport = 1\nhost = "a"\nprocesses = 2\n')
    monkeypatch.setenv("TRIAGE_WEB_PORT", "2")
    monkeypatch.setenv("TRIAGE_WEB_HOST", "b")
    found = load({"web.host": "c", "web.public_url": None})
    assert (found.settings.web.host, found.settings.web.port, found.settings.web.processes) == ("c", 2, 2)
    assert found.origins == {
        "web.host": "command line",
        "web.port": "environment TRIAGE_WEB_PORT",
        "web.processes": f"file {file}",
    }


@pytest.mark.parametrize(
    "text",
    ["[web]\nprot = 1\n", "[wbe]\n", "web = 1\n", "[web]\nport = 'x'\n", "[web\n", "[sources.a]\nurl = 'http://x'\n"],
)
def test_a_misspelled_file_is_no_silence(file: Path, text: str) -> None:
    """Unknown names, wrong kinds and broken files stop with the place and the next step."""
    file.write_text(text)
    with pytest.raises(OptionError) as caught:
        load()
    assert caught.value.hint
    assert caught.value.path == str(file)


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the rows nor the text of the settings hold a secret's value."""
    monkeypatch.setenv("TRIAGE_WEB_SECRET", "very-secret-value")
    found = load()
    assert found.settings.web.secret.get_secret_value() == "very-secret-value"
    assert "very-secret-value" not in repr(found) + repr(found.rows())
