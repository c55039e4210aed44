from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LATER = ("torch", "fastapi", "uvicorn", "starlette", "dask", "distributed", "slack", "jinja2", "isal")


def built(target: str, where: Path) -> Path:
    """A wheel or sdist of this checkout, made without the network."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(where)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    (path,) = where.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(built("wheel", tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return message_from_string(wheel.read(name).decode())


def test_wheel_holds_every_signature(wheel: zipfile.ZipFile) -> None:
    """What lies in signatures/ lies in the wheel, where the loader looks for it."""
    here = {path.relative_to(ROOT / "signatures").as_posix() for path in (ROOT / "signatures").rglob("*.yaml")}
    prefix = "triage/_signatures/"
    shipped = {name.removeprefix(prefix) for name in wheel.namelist() if name.startswith(prefix)}
    assert here | {"healthy.txt", "schema.json", "table.schema.json", "lock.tsv", "retired.tsv"} == shipped
    assert len(here) > 100


def test_wheel_holds_every_module_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    """All of triage/ with the classes of frames and its metadata; no tests, samples or caches."""
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "triage").rglob("*.py")}
    names = set(wheel.namelist())
    assert modules <= names
    others = {
        name for name in names - modules if not name.startswith("triage/_signatures/") and ".dist-info/" not in name
    }
    data = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "triage").rglob("*")
        if path.suffix in (".txt", ".toml", ".css", ".js", ".svg", ".html", ".webmanifest", ".png", ".ico")
    }
    assert data
    assert others - {"triage/py.typed"} == data


def test_base_install_is_small(metadata: Message) -> None:
    """The requirements of `pip install triage-kb` hold nothing of what only extras need."""
    base = [line.lower() for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert 3 <= len(base) <= 9
    assert [line for line in base if line.startswith(LATER)] == []


def test_extras_exist(metadata: Message) -> None:
    """Every extra that is promised can be asked for."""
    assert {"web", "slack", "dask", "torch", "dev"} <= set(metadata.get_all("Provides-Extra", []))


def test_metadata_says_what_it_is(metadata: Message) -> None:
    """Name, version of the package, licence and README come along."""
    import triage

    assert (metadata["Name"], metadata["Version"], metadata["License-Expression"]) == (
        "triage-kb",
        triage.__version__,
        "Apache-2.0",
    )
    assert str(metadata.get_payload()).startswith("# triage\n")


def test_command_is_installed(wheel: zipfile.ZipFile) -> None:
    """`triage` is the one command."""
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    assert wheel.read(name).decode().split() == ["[console_scripts]", "triage", "=", "triage.cli:main"]


def test_sdist_holds_what_the_tests_need(tmp_path: Path) -> None:
    """Whoever packages it can run the tests; nothing private or made comes along."""
    with tarfile.open(built("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = (
        "Makefile",
        "Dockerfile",
        ".dockerignore",
        "CONTRIBUTING.md",
        "docs/cli.md",
        "tests/test_docs.py",
        "samples/README.md",
    )
    assert [name for name in needed if name not in names] == []
    assert any(name.startswith("samples/jobs/dataloader_worker_killed_tee/job/") for name in names)
    assert [name for name in names if name.startswith((".venv", "bench/data", ".git/")) or "__pycache__" in name] == []


def test_help_imports_nothing_heavy() -> None:
    """`triage --help` needs neither YAML, pydantic, the automaton nor rich, so that it is instant."""
    code = "import sys; from triage.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    loaded = {name.partition(".")[0] for name in result.stderr.split()}
    assert "typer" in loaded
    assert loaded & {"pydantic", "yaml", "hyperscan", "re2", "rich", "zstandard"} == set()


def test_reasons_stand_beside_dependencies() -> None:
    """Each base requirement in pyproject.toml follows a comment that says why it is there."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = text.partition("\ndependencies = [\n")[2].partition("\n]\n")[0].splitlines()
    requirements = tomllib.loads(text)["project"]["dependencies"]
    assert sum(line.strip().startswith('"') for line in lines) == len(requirements)
    # pyyaml stands with pydantic under one comment.
    comments = sum(
        line.strip().startswith("#") and not above.strip().startswith("#")
        for above, line in zip(["", *lines], lines, strict=False)
    )
    assert comments >= len(requirements) - 1
