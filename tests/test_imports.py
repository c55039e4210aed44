"""Rules for the code: imports go one way and are cheap, modules and functions are small and documented."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from triage.testing.jobs import JobBuilder

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "triage"
MODULES = sorted(PACKAGE.rglob("*.py"))
# A room imports rooms before it; every room may import GROUND. `testing` imports nothing else.
GROUND = ("base", "model")
ORDER = (
    "stacks",
    "remote",
    "sources",
    "scan",
    "ranks",
    "records",
    "split",
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
    "pipeline",
    "api",
    "watch",
    "bots",
    "fetch",
    "service",
    "mcp",
    "cli",
)
# Most lines there are texts of other programs.
STORIES = "testing/composer/"
HEAVY = (
    "fsspec",
    "s3fs",
    "aiohttp",
    "distributed",
    "psycopg",
    "opentelemetry",
    "triage.remote.session",
    "triage.base.dask_cluster",
    "triage.base.executor_work",
    "torch",
    "fastapi",
    "pydantic_settings",
    "jinja2",
    "sklearn",
    "numpy",
    "pydantic",
    "yaml",
)
READERS = ("triage.catalog.schema", "triage.catalog.read")  # of signature files


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


@pytest.fixture(scope="module", params=MODULES, ids=name_of)
def path(request: pytest.FixtureRequest) -> Path:
    """Each module in turn, for all tests of a module."""
    return Path(request.param)


@pytest.fixture(scope="module")
def tree(path: Path) -> ast.Module:
    """The module, parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports of this package, at its top or later, as dotted names below `triage`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (
                alias.name.removeprefix("triage").lstrip(".")
                for alias in node.names
                if alias.name.split(".")[0] == "triage"
            )
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide the direction"
            if node.module == "triage":
                yield from (
                    alias.name if (PACKAGE / alias.name).exists() or (PACKAGE / f"{alias.name}.py").exists() else ""
                    for alias in node.names
                )
            elif node.module and node.module.startswith("triage."):
                yield node.module.removeprefix("triage.")


def test_rooms_import_only_rooms_before_them(path: Path, tree: ast.Module) -> None:
    """No room imports a later one; `base`, `model` and `testing` import only `base` and `model`."""
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room in ("__init__", "__main__"):
        return
    allowed = {"", room, *GROUND}
    if room in ORDER:
        allowed |= set(ORDER[: ORDER.index(room)])
    assert {name.partition(".")[0] for name in imports(tree)} <= allowed


def test_every_room_is_in_the_order() -> None:
    """Each folder of the package is in the order, and CONTRIBUTING lists the folders in the same order."""
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == {*GROUND, *ORDER, "testing"} - {"api"}
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `triage/(\w+)/` \|", contributing, re.MULTILINE)
    assert listed == [*GROUND, *(room for room in ORDER if room in rooms), "testing"]


def test_modules_are_small_and_have_a_docstring(path: Path, tree: ast.Module) -> None:
    """Each has fewer than 500 lines and says what it is."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 500
    if text.strip():
        assert ast.get_docstring(tree), "no docstring"


def test_the_pipeline_stays_readable() -> None:
    """The order of the stages fits in 100 lines, the answers in 150."""
    assert len((PACKAGE / "pipeline" / "stages.py").read_text(encoding="utf-8").splitlines()) <= 100
    assert len((PACKAGE / "pipeline" / "__init__.py").read_text(encoding="utf-8").splitlines()) <= 150


def functions(room: str = "") -> Iterator[tuple[int, str]]:
    """Yield the number of lines of every function of a room, or of all but STORIES, with its place."""
    for path in MODULES:
        if (path.relative_to(PACKAGE).as_posix().startswith(room or STORIES)) is not bool(room):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{name_of(path)}.{node.name}"


def test_stories_fit_a_screen() -> None:
    """Functions of the composer, which hold texts of other programs, have at most 40 lines."""
    assert [place for size, place in functions(STORIES) if size > 40] == []


def test_functions_are_short() -> None:
    """Half of them have at most 7 lines, 95 % at most 24, and none has more than 60."""
    sizes = sorted(functions())
    assert sizes[len(sizes) // 2][0] <= 7
    assert sizes[int(len(sizes) * 0.95)][0] <= 24
    assert [place for size, place in sizes if size > 60] == []


def undocumented(tree: ast.Module) -> Iterator[str]:
    """Yield the public classes and functions of a module that have no docstring, also those inside classes."""
    pending: list[ast.Module | ast.ClassDef] = [tree]
    while pending:
        for node in pending.pop().body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
                if ast.get_docstring(node) is None:
                    yield node.name
                if isinstance(node, ast.ClassDef):
                    pending.append(node)


def test_public_names_have_a_docstring(tree: ast.Module) -> None:
    """Every public module, class, function and method says what it is."""
    assert list(undocumented(tree)) == []


def loaded_modules(code: str, *modules: str, **environment: str) -> set[str]:
    """Return which of `modules` a fresh interpreter has loaded after `code`, which must not print."""
    code += f"\nimport sys; print(*sorted(set({modules!r}) & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return set(run.stdout.split())


def test_importing_triage_is_cheap() -> None:
    """`import triage` loads no third-party package and none of the rooms."""
    assert (
        loaded_modules(
            "import triage", *HEAVY, "typer", "re2", "hyperscan", "triage.pipeline", "triage.model.diagnosis"
        )
        == set()
    )


def test_a_warm_ingest_reads_no_yaml(tmp_path: Path) -> None:
    """Once the catalog is cached, an ingest needs neither the YAML reader nor the schema, nor anything heavier."""
    code = f"import triage; assert triage.ingest({str(_job(tmp_path))!r}).root_cause.ranks == (1,)"
    cache = {"TRIAGE_CACHE": str(tmp_path / "cache")}
    assert {"yaml", *READERS} <= loaded_modules(code, *HEAVY, *READERS, **cache)
    assert loaded_modules(code, *HEAVY, *READERS, **cache) == set()


def test_a_warm_command_reads_no_yaml(tmp_path: Path, warm_cache: Path) -> None:
    """`triage ingest` loads neither YAML nor the schema; newer typer may load pydantic for itself."""
    call = f"triage.cli.main(['ingest', {str(_job(tmp_path))!r}])"
    code = f"import contextlib, io, triage.cli\nwith contextlib.redirect_stdout(io.StringIO()): {call}"
    ours = (*READERS, *(name for name in HEAVY if name != "pydantic"))
    assert loaded_modules(code, *ours, TRIAGE_CACHE=str(warm_cache)) == set()


def _job(tmp_path: Path) -> Path:
    job = JobBuilder(tmp_path / "job", world_size=2)
    job.rank(1).traceback("ValueError: no tokens")
    return job.elastic_table({1: 1}).write()
