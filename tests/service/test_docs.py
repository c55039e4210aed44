"""docs/api.md and docs/operating.md list every address and setting, and their examples work."""

from __future__ import annotations

import configparser
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from fastapi import FastAPI

from triage.service import api
from triage.service.api.openapi import PREFIX, list_routes
from triage.settings import load

ROOT = Path(__file__).resolve().parents[2]
OPERATING = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """The script that writes the documents."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_address_is_documented(generate: ModuleType, app: FastAPI) -> None:
    """docs/api.md has the tables that `make docs` writes, and each address has a description."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert text.endswith(generate.addresses())
    assert [route for route in list_routes(api.ROUTERS, PREFIX) if len(route.summary) < 8] == []
    assert all(f"`{path}`" in text for path in app.openapi()["paths"])


def test_every_setting_is_documented(generate: ModuleType) -> None:
    """docs/operating.md has the table that `make docs` writes, and each setting has a description."""
    assert OPERATING.endswith(generate.settings())
    assert re.findall(r"^\| `(?:web|tasks)\.\w+` \| [^|]+ \|\s*\|$", OPERATING, re.MULTILINE) == []


def test_example_settings_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The TOML example of docs/operating.md loads, and `config show` names it as the origin of its values."""
    path = tmp_path / "config.toml"
    path.write_text(re.findall(r"```toml\n(.*?)```", OPERATING, re.DOTALL)[0])
    monkeypatch.setenv("TRIAGE_CONFIG", str(path))
    monkeypatch.setenv("TRIAGE_WEB_PORT", "9001")
    loaded = load({"tasks.workers": 5})
    rows = {name: (value, origin) for name, value, origin in loaded.rows()}
    assert rows["web.processes"] == (2, f"file {path}")
    assert rows["web.port"] == (9001, "environment TRIAGE_WEB_PORT")
    assert rows["tasks.workers"] == (5, "command line")
    assert rows["web.slow_seconds"] == (20.0, "default")
    assert loaded.settings.sources["slurm"].path == Path("/scratch/slurm-logs")


def test_example_of_visibility_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of who sees which incidents loads, with each of its rules."""
    path = tmp_path / "config.toml"
    (example,) = (block for block in re.findall(r"```toml\n(.*?)```", OPERATING, re.DOTALL) if "[visibility" in block)
    path.write_text(example)
    monkeypatch.setenv("TRIAGE_CONFIG", str(path))
    rules = load({}).settings.visibility
    assert (rules.groups["vision"], rules.others, rules.roles) == (("team=vision",), (), {"admin": ("*",)})
    assert rules.tokens == {"ci-vision": ("team=vision", "project=cv")}
    assert rules.has_rules()


def test_example_systemd_unit_is_valid() -> None:
    """The systemd unit of docs/operating.md has its sections, and starts and stops the service correctly."""
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(re.findall(r"```ini\n(.*?)```", OPERATING, re.DOTALL)[0])
    assert unit["Service"]["ExecStart"].endswith("/triage serve")
    assert unit["Service"]["KillMode"] == "mixed"
    assert unit["Install"]["WantedBy"] == "multi-user.target"
