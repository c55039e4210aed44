"""Settings are loaded in the right order, with the origin of each value."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.base.errors import OptionError
from triage.settings import load


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the settings file, not yet written."""
    path = tmp_path / "config.toml"
    monkeypatch.setenv("TRIAGE_CONFIG", str(path))
    return path


def test_command_line_overrides_environment_overrides_file_overrides_default(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value comes from the first place that sets it, and names that place as its origin."""
    file.write_text('[web]\nport = 1\nhost = "a"\nprocesses = 2\n')
    monkeypatch.setenv("TRIAGE_WEB_PORT", "2")
    monkeypatch.setenv("TRIAGE_WEB_HOST", "b")
    loaded = load({"web.host": "c", "web.public_url": None})
    assert (loaded.settings.web.host, loaded.settings.web.port, loaded.settings.web.processes) == ("c", 2, 2)
    assert loaded.origins == {
        "web.host": "command line",
        "web.port": "environment TRIAGE_WEB_PORT",
        "web.processes": f"file {file}",
    }


@pytest.mark.parametrize(
    "text",
    ["[web]\nprot = 1\n", "[wbe]\n", "web = 1\n", "[web]\nport = 'x'\n", "[web\n", "[sources.a]\nurl = 'http://x'\n"],
)
def test_invalid_file_is_refused(file: Path, text: str) -> None:
    """Unknown names, wrong types and broken files raise an error with the file and a hint."""
    file.write_text(text)
    with pytest.raises(OptionError) as caught:
        load()
    assert caught.value.hint
    assert caught.value.path == str(file)


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the rows nor the repr of the settings contain the value of a secret."""
    monkeypatch.setenv("TRIAGE_WEB_SECRET", "very-secret-value")
    loaded = load()
    assert loaded.settings.web.secret.get_secret_value() == "very-secret-value"
    assert "very-secret-value" not in repr(loaded) + repr(loaded.rows())
