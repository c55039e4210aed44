"""The street has one direction, importing is cheap, and modules stay small: the house rules that a program can check."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from triage.testing.jobs import JobBuilder

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "triage"
MODULES = sorted(PACKAGE.rglob("*.py"))
# A room imports those to its left. `testing` builds files for others and knows none of them.
ORDER = (
    "stacks",
    "sources",
    "scan",
    "ranks",
    "evidence",
    "artifacts",
    "collect",
    "compare",
    "catalog",
    "clusters",
    "diagnose",
    "store",
    "render",
    "settings",
    "watch",
    "bots",
    "service",
    "assistant",
    "cli",
)
FREE = {"model", "base", ""}
# Glue that knows several rooms, below the faces.
GLUE = {
    "pipeline": "diagnose",
    "stages": "diagnose",
    "intake": "artifacts",
    "summary": "diagnose",
    "api": "store",
}
HEAVY = ("torch", "fastapi", "pydantic_settings", "jinja2", "sklearn", "numpy", "pydantic", "yaml")


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports(path: Path) -> Iterator[str]:
    """Everything of this package that a module imports, at its top or later, as dotted names below `triage`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (
                alias.name.removeprefix("triage").lstrip(".")
                for alias in node.names
                if alias.name.split(".")[0] == "triage"
            )
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative imports hide the direction"
            if node.module == "triage":
                yield from (
                    alias.name if (PACKAGE / alias.name).exists() or (PACKAGE / f"{alias.name}.py").exists() else ""
                    for alias in node.names
                )
            elif node.module and node.module.startswith("triage."):
                yield node.module.removeprefix("triage.")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_rooms_import_only_to_the_left(path: Path) -> None:
    """No room knows one to its right; the faces alone know the pipeline, and nothing calls a face."""
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room in ("pipeline", "__init__", "__main__"):
        return
    for other in (name.partition(".")[0] for name in imports(path)):
        if other in FREE or other == room:
            continue
        assert room not in ("model", "base", "testing"), f"{room} stands alone, not on {other}"
        if other in GLUE:
            assert room in ("watch", "service", "bots", "assistant", "cli", "stages"), f"{room} imports {other}"
            continue
        assert other in ORDER, f"{path} imports {other}, which is no room"
        left = GLUE.get(room, room)
        assert ORDER.index(other) <= ORDER.index(left), f"{room} imports {other}, to its right"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_are_small_and_say_what_they_are(path: Path) -> None:
    """Under 500 lines, with a docstring."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 500
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "no docstring"


def test_the_pipeline_stays_readable() -> None:
    """The order of the stages fits in under 150 lines."""
    assert len((PACKAGE / "pipeline.py").read_text(encoding="utf-8").splitlines()) < 150


def loaded(code: str, *modules: str, **environment: str) -> set[str]:
    """Which of `modules` a fresh interpreter has loaded after `code`, which must not print."""
    code += f"\nimport sys; print(*sorted(set({modules!r}) & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(run.stdout.split())


def test_importing_triage_is_cheap() -> None:
    """`import triage` loads no third-party package and none of the rooms."""
    assert (
        loaded("import triage", *HEAVY, "typer", "re2", "hyperscan", "triage.pipeline", "triage.model.diagnosis")
        == set()
    )


def test_a_warm_ingest_reads_no_yaml(tmp_path: Path) -> None:
    """Once the catalog is cached, an ingest needs neither the YAML reader nor the schema, nor anything heavier."""
    code = f"import triage; assert triage.ingest({str(_job(tmp_path))!r}).root_cause.ranks == (1,)"
    cache = {"TRIAGE_CACHE": str(tmp_path / "cache")}
    assert "yaml" in loaded(code, *HEAVY, **cache)
    assert loaded(code, *HEAVY, **cache) == set()


def test_a_warm_command_reads_no_yaml(tmp_path: Path) -> None:
    """So does `triage ingest` (where newer typer loads pydantic for itself, the catalog's schema is still not built)."""
    code = f"import contextlib, io, triage.cli\nwith contextlib.redirect_stdout(io.StringIO()): triage.cli.main(['ingest', {str(_job(tmp_path))!r}])"
    ours = ("yaml", "triage.catalog.schema", "triage.catalog.read", *(name for name in HEAVY if name != "pydantic"))
    cache = {"TRIAGE_CACHE": str(tmp_path / "cache")}
    assert {"yaml", "triage.catalog.schema"} <= loaded(code, *ours, **cache)
    assert loaded(code, *ours, **cache) == set()


def _job(tmp_path: Path) -> Path:
    job = JobBuilder(tmp_path / "job", world_size=2)
    job.rank(1).traceback("ValueError: no tokens")
    return job.elastic_table({1: 1}).write()
