"""A company's catalogs, named once: where they are found, and which of two wins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.catalog.helpers import GLOO, write
from triage.base.errors import CatalogError
from triage.catalog import setting
from triage.catalog.load import load
from triage.cli import main


def titled(root: Path, title: str) -> Path:
    write(root, text=GLOO.replace("A peer closed its connection", title))
    return root


def title() -> str:
    return next(signature.title for signature in load().signatures if signature.id == "gloo.peer-closed")


def test_nothing_is_configured_by_itself() -> None:
    """Without variable and file there is nothing but what ships."""
    assert setting.configured() == ()


def test_later_ones_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file, then the variable from left to right, then what is given."""
    config = tmp_path / "config.toml"
    config.write_text('catalogs = ["of-file"]\n', encoding="utf-8")
    titled(tmp_path / "of-file", "file")
    first, second = titled(tmp_path / "one", "first"), titled(tmp_path / "two", "second")
    monkeypatch.setenv(setting.CONFIG, str(config))
    assert title() == "file"
    monkeypatch.setenv(setting.VARIABLE, f"{first}{os.pathsep}{second}")
    assert title() == "second"
    assert setting.configured() == (tmp_path / "of-file", first, second)
    given = load((titled(tmp_path / "three", "given"),)).signatures
    assert "given" in {signature.title for signature in given}


@pytest.mark.parametrize("content", ["catalogs = 3", "catalogs = [1]", "catalogs =", "\xff"])
def test_a_broken_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    """The error names the file and what to write."""
    config = tmp_path / "config.toml"
    config.write_bytes(content.encode("latin-1"))
    monkeypatch.setenv(setting.CONFIG, str(config))
    with pytest.raises(CatalogError) as caught:
        setting.configured()
    assert caught.value.path == str(config)
    assert caught.value.hint


def test_a_file_that_was_named_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelled TRIAGE_CONFIG is no silence; the default place may be empty."""
    monkeypatch.setenv(setting.CONFIG, str(tmp_path / "nothing.toml"))
    with pytest.raises(CatalogError, match="cannot be read"):
        setting.configured()
    monkeypatch.delenv(setting.CONFIG)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert setting.config_file() == tmp_path / "triage" / "config.toml"
    assert setting.configured() == ()


def test_the_list_says_where_a_signature_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that ship have no file behind them, others do."""
    root = titled(tmp_path / "ours", "Ours")
    monkeypatch.setenv(setting.VARIABLE, str(root))
    assert main(["catalog", "list", "--domain", "gloo"]) == 0
    out = capsys.readouterr().out
    assert f"from {root}/gloo/peer-closed.yaml" in out
    assert out.count("from ") == 1
