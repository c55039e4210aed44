"""The wheel and the sdist hold what users and packagers need, and nothing else."""

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
ONLY_IN_EXTRAS = ("torch", "fastapi", "uvicorn", "starlette", "dask", "distributed", "slack", "jinja2", "isal")


def build(target: str, directory: Path) -> Path:
    """Build a wheel or sdist of this checkout without the network, and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(directory)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    (path,) = directory.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build("wheel", tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return message_from_string(wheel.read(name).decode())


def test_wheel_holds_every_signature(wheel: zipfile.ZipFile) -> None:
    """The wheel has all of signatures/ where the loader looks for it."""
    in_checkout = {path.relative_to(ROOT / "signatures").as_posix() for path in (ROOT / "signatures").rglob("*.yaml")}
    prefix = "triage/_signatures/"
    shipped = {name.removeprefix(prefix) for name in wheel.namelist() if name.startswith(prefix)}
    assert (
        in_checkout | {"everyday.txt", "healthy.txt", "schema.json", "table.schema.json", "lock.tsv", "retired.tsv"}
        == shipped
    )
    assert len(in_checkout) > 100


def test_wheel_holds_every_module_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    """The wheel has all modules and data files of triage/ and its metadata; no tests, samples or caches."""
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "triage").rglob("*.py")}
    names = set(wheel.namelist())
    assert modules <= names
    others = {
        name for name in names - modules if not name.startswith("triage/_signatures/") and ".dist-info/" not in name
    }
    data = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "triage").rglob("*")
        if path.suffix
        in (".txt", ".log", ".sql", ".toml", ".css", ".js", ".svg", ".html", ".webmanifest", ".png", ".ico")
    }
    assert data
    assert others - {"triage/py.typed"} == data


def test_base_install_is_small(metadata: Message) -> None:
    """`pip install triage-kb` requires at most thirteen packages, none of which only extras need."""
    base = [line.lower() for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert 3 <= len(base) <= 13
    assert [line for line in base if line.startswith(ONLY_IN_EXTRAS)] == []


def test_extras_exist(metadata: Message) -> None:
    """The package provides every documented extra."""
    assert {"web", "slack", "dask", "torch", "dev"} <= set(metadata.get_all("Provides-Extra", []))


def test_metadata_describes_the_package(metadata: Message) -> None:
    """The metadata has name, version, licence and README."""
    import triage

    assert (metadata["Name"], metadata["Version"], metadata["License-Expression"]) == (
        "triage-kb",
        triage.__version__,
        "Apache-2.0",
    )
    assert str(metadata.get_payload()).startswith("# triage\n")


def test_command_is_installed(wheel: zipfile.ZipFile) -> None:
    """`triage` is the only command."""
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    assert wheel.read(name).decode().split() == ["[console_scripts]", "triage", "=", "triage.cli:main"]


def test_sdist_holds_what_the_tests_need(tmp_path: Path) -> None:
    """Packagers can run the tests from the sdist; it has no private or generated files."""
    with tarfile.open(build("sdist", tmp_path)) as archive:
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


def test_each_dependency_has_a_reason() -> None:
    """Each base requirement in pyproject.toml follows a comment that says why it is needed."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = text.partition("\ndependencies = [\n")[2].partition("\n]\n")[0].splitlines()
    requirements = tomllib.loads(text)["project"]["dependencies"]
    assert sum(line.strip().startswith('"') for line in lines) == len(requirements)
    # pyyaml and pydantic share one comment.
    comments = sum(
        line.strip().startswith("#") and not above.strip().startswith("#")
        for above, line in zip(["", *lines], lines, strict=False)
    )
    assert comments >= len(requirements) - 1
