"""The Dockerfile, tested without a container engine: it is parsed, and its build stage runs in a directory."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from triage.catalog.load import load

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "samples" / "jobs" / "dataloader_worker_killed_tee" / "job"
OFFLINE = re.compile(
    r"NewConnectionError|ConnectTimeout|Temporary failure in name resolution|Network is unreachable|ProxyError"
)

Instruction = tuple[str, str]


def stages() -> list[list[Instruction]]:
    """Return the instructions of each stage, with continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    stages_so_far: list[list[Instruction]] = []
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            stages_so_far += [[]] if name == "FROM" else []
            stages_so_far[-1].append((name, rest))
    return stages_so_far


def arguments_of(stage: list[Instruction], name: str) -> list[str]:
    """Return the arguments of each instruction of a name."""
    return [rest for instruction, rest in stage if instruction == name]


def copied_paths(stage: list[Instruction]) -> list[str]:
    """Return what COPY takes from the checkout."""
    return [path for line in arguments_of(stage, "COPY") if "--from" not in line for path in line.split()[:-1]]


def test_image_is_slim_and_does_not_run_as_root() -> None:
    """Both stages have one slim base; the last copies the environment to the same path and is not root."""
    build, final = stages()
    assert arguments_of(build, "FROM")[0].removesuffix(" AS build") == arguments_of(final, "FROM")[0]
    assert arguments_of(final, "FROM")[0].endswith("-slim")
    assert arguments_of(final, "COPY") == ["--from=build /opt/triage /opt/triage"]
    assert arguments_of(final, "USER")[-1] not in ("root", "0")
    names = [name for name, _ in final]
    assert names.index("USER") < names.index("ENTRYPOINT")


def test_entrypoint_is_the_command() -> None:
    """The entry point is `triage`, and the health check is `triage --version`."""
    _, final = stages()
    assert json.loads(arguments_of(final, "ENTRYPOINT")[0]) == ["triage"]
    health = json.loads(arguments_of(final, "HEALTHCHECK")[0].partition("CMD ")[2])
    assert health == ["triage", "--version"]


def test_dockerignore_admits_only_what_is_copied() -> None:
    """.dockerignore admits exactly the paths of the COPY instructions."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    assert "*" in lines
    assert allowed == set(copied_paths(stages()[0]))
    assert all((ROOT / name).exists() for name in allowed)


def test_base_image_has_a_supported_python() -> None:
    """The base image has a Python version that pyproject.toml allows."""
    version = re.match(r"python:3\.(\d+)-slim", arguments_of(stages()[1], "FROM")[0])
    assert version
    assert int(version[1]) >= 11


def run(command: str | list[str], cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "TRIAGE"))
    } | more
    return subprocess.run(
        command, cwd=cwd, env=environment, shell=isinstance(command, str), capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
def test_build_stage_makes_a_command_that_works_anywhere(tmp_path: Path) -> None:
    """The build stage's commands, on the copied paths alone, install a `triage` that includes its signatures."""
    context, installed = tmp_path / "src", tmp_path / "opt-triage"
    context.mkdir()
    build, final = stages()
    for name in copied_paths(build):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, context / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            shutil.copy(ROOT / name, context / name)
    for line in arguments_of(build, "RUN"):
        command = line.replace("/dist", str(tmp_path / "dist")).replace("/opt/triage", str(installed))
        command = re.sub(r"^python\b", f'"{sys.executable}"', command)
        result = run(command, context)
        if result.returncode and OFFLINE.search(result.stderr):
            pytest.skip("the packages cannot be downloaded here")
        assert result.returncode == 0, f"{command}\n{result.stderr[-3000:]}"
    elsewhere = tmp_path / "job"
    elsewhere.mkdir()
    shutil.rmtree(context)
    settings = {"PATH": f"{installed / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
    health = json.loads(arguments_of(final, "HEALTHCHECK")[0].partition("CMD ")[2])
    assert run(health, elsewhere, **settings).stdout.startswith("triage ")
    report = json.loads(run(["triage", "ingest", str(SAMPLE), "--format", "json"], elsewhere, **settings).stdout)
    assert report["root_cause"]["signature"] == "data.worker-killed"
    assert [item for item in report["warnings"] if item["code"].startswith("catalog")] == []
    shipped = json.loads(run(["triage", "catalog", "list", "--format", "json"], elsewhere, **settings).stdout)
    assert {item["id"] for item in shipped} == {signature.id for signature in load().signatures}
