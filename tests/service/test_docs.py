"""docs/api.md and docs/operating.md say what there is: every address, every setting, and files that work."""

from __future__ import annotations

import configparser
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from fastapi import FastAPI

from triage.service import api
from triage.service.document import PREFIX, routes
from triage.settings import load

ROOT = Path(__file__).resolve().parents[2]
OPERATING = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_address_is_documented(generate: ModuleType, app: FastAPI) -> None:
    """The tables of docs/api.md are those of the program (`make docs` writes them), and each address says what it does."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert text.endswith(generate.addresses())
    assert [route for route in routes(api.ROUTERS, PREFIX) if len(route.summary) < 8] == []
    assert all(f"`{path}`" in text for path in app.openapi()["paths"])


def test_every_setting_is_documented(generate: ModuleType) -> None:
    """The table of docs/operating.md is that of the program, and each setting of the service says what it is."""
    assert OPERATING.endswith(generate.settings())
    assert re.findall(r"^\| `(?:web|tasks)\.\w+` \| [^|]+ \|\s*\|$", OPERATING, re.MULTILINE) == []


def test_the_configuration_shown_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The TOML of docs/operating.md is taken as it is, and `config show` says that its values come from there."""
    path = tmp_path / "config.toml"
    path.write_text(re.findall(r"```toml\n(.*?)```", OPERATING, re.DOTALL)[0])
    monkeypatch.setenv("TRIAGE_CONFIG", str(path))
    monkeypatch.setenv("TRIAGE_WEB_PORT", "9001")
    loaded = load({"tasks.workers": 5})
    said = {name: (value, origin) for name, value, origin in loaded.rows()}
    assert said["web.processes"] == (2, f"file {path}")
    assert said["web.port"] == (9001, "environment TRIAGE_WEB_PORT")
    assert said["tasks.workers"] == (5, "command line")
    assert said["web.slow_seconds"] == (20.0, "default")
    assert loaded.settings.sources["slurm"].path == Path("/scratch/slurm-logs")


def test_the_unit_shown_can_be_used() -> None:
    """The unit of docs/operating.md has its sections, and starts and stops as the service does."""
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(re.findall(r"```ini\n(.*?)```", OPERATING, re.DOTALL)[0])
    assert unit["Service"]["ExecStart"].endswith("/triage serve")
    assert unit["Service"]["KillMode"] == "mixed"
    assert unit["Install"]["WantedBy"] == "multi-user.target"
