"""A company's catalogs, named once: where they are found, and which of two wins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.catalog.factories import GLOO, write
from triage.base.errors import CatalogError
from triage.catalog import configured_catalogs
from triage.catalog.load import load
from triage.cli import main


def titled(root: Path, title: str) -> Path:
    write(root, text=GLOO.replace("A peer closed its connection", title))
    return root


def title() -> str:
    return next(signature.title for signature in load().signatures if signature.id == "gloo.peer-closed")


def test_nothing_is_configured_by_default() -> None:
    """Without variable and file, only the shipped catalog is loaded."""
    assert configured_catalogs.list_configured_catalogs() == ()


def test_later_ones_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is: the file, the variable from left to right, the argument."""
    config = tmp_path / "config.toml"
    config.write_text('catalogs = ["of-file"]\n', encoding="utf-8")
    titled(tmp_path / "of-file", "file")
    first, second = titled(tmp_path / "one", "first"), titled(tmp_path / "two", "second")
    monkeypatch.setenv(configured_catalogs.CONFIG, str(config))
    assert title() == "file"
    monkeypatch.setenv(configured_catalogs.VARIABLE, f"{first}{os.pathsep}{second}")
    assert title() == "second"
    assert configured_catalogs.list_configured_catalogs() == (tmp_path / "of-file", first, second)
    signatures = load((titled(tmp_path / "three", "given"),)).signatures
    assert "given" in {signature.title for signature in signatures}


@pytest.mark.parametrize("content", ["catalogs = 3", "catalogs = [1]", "catalogs =", "\xff"])
def test_a_broken_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    """The error names the file and what to write."""
    config = tmp_path / "config.toml"
    config.write_bytes(content.encode("latin-1"))
    monkeypatch.setenv(configured_catalogs.CONFIG, str(config))
    with pytest.raises(CatalogError) as caught:
        configured_catalogs.list_configured_catalogs()
    assert caught.value.path == str(config)
    assert caught.value.hint


def test_a_named_file_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelled TRIAGE_CONFIG is an error; the default file may be missing."""
    monkeypatch.setenv(configured_catalogs.CONFIG, str(tmp_path / "nothing.toml"))
    with pytest.raises(CatalogError, match="cannot be read"):
        configured_catalogs.list_configured_catalogs()
    monkeypatch.delenv(configured_catalogs.CONFIG)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert configured_catalogs.find_config_file() == tmp_path / "triage" / "config.toml"
    assert configured_catalogs.list_configured_catalogs() == ()


def test_the_list_names_the_files_of_user_signatures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shipped signatures have no file behind them in the list."""
    root = titled(tmp_path / "ours", "Ours")
    monkeypatch.setenv(configured_catalogs.VARIABLE, str(root))
    assert main(["catalog", "list", "--domain", "gloo"]) == 0
    out = capsys.readouterr().out
    assert f"from {root}/gloo/peer-closed.yaml" in out
    assert out.count("from ") == 1
