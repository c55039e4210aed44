"""Locked and minimum versions, equal builds and the list of packages are what the repository says."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("locked.txt", "minimum.txt")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENVIRONMENT = {"sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.11"}


def read_lock(name: str) -> dict[str, list[tuple[Requirement, int]]]:
    """Return by package the pinned versions of a lock, and the number of digests of each."""
    text = (ROOT / ".ci" / name).read_text(encoding="utf-8")
    pins: dict[str, list[tuple[Requirement, int]]] = {}
    for block in re.split(r"\n(?=[a-z0-9])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)):
        requirement = Requirement(block.partition("\\\n")[0].strip())
        digests = len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", block))
        pins.setdefault(canonicalize_name(requirement.name), []).append((requirement, digests))
    return pins


def list_direct(*extras: str) -> list[Requirement]:
    """Return the requirements of the project and of these extras that hold on Linux."""
    lines = [*PROJECT["dependencies"]]
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    requirements = [Requirement(line) for line in lines]
    nested = [extra for item in requirements if item.name == "triage-kb" for extra in sorted(item.extras)]
    own = [item for item in requirements if item.name != "triage-kb"]
    own += [item for extra in nested for item in map(Requirement, PROJECT["optional-dependencies"][extra])]
    return [item for item in own if item.marker is None or item.marker.evaluate(ENVIRONMENT)]


def version_of(pin: Requirement) -> Version:
    """Return the version of `name==version`."""
    (specifier,) = pin.specifier
    assert specifier.operator == "=="
    return Version(specifier.version)


def load_script(name: str) -> ModuleType:
    """Return a script of .ci/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_digests(name: str) -> None:
    """Each line pins one version with a SHA-256, and no line names a registry, a path or a repository."""
    pins = read_lock(name)
    assert len(pins) > 50
    assert [package for package, versions in pins.items() if not all(digests for _, digests in versions)] == []
    assert all(version_of(pin) for versions in pins.values() for pin, _ in versions)
    lines = (ROOT / ".ci" / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if "://" in line or " @ " in line or line.startswith("-")] == []


def test_the_lock_satisfies_the_project() -> None:
    """Each requirement of the development environment has a locked version that it permits; else run `make lock`."""
    pins = read_lock("locked.txt")
    for item in list_direct("dev", "fast"):
        versions = [version_of(pin) for pin, _ in pins.get(canonicalize_name(item.name), ())]
        assert versions, f"{item.name} is not locked: run `make lock`"
        assert all(item.specifier.contains(version) for version in versions), f"{item}: run `make lock`"


def test_the_minimum_is_the_lowest_bound() -> None:
    """What `make test-minimum` installs is, for each requirement with a bound, the release of its bound."""
    pins = read_lock("minimum.txt")
    for item in list_direct("web", "slack", "similar", "fast", "test"):
        ((pin, _),) = pins[canonicalize_name(item.name)]
        version, bounds = version_of(pin), [part.version for part in item.specifier if part.operator == ">="]
        assert item.specifier.contains(version), f"{item}: run `make lock`"
        assert version.release[:2] == (*Version(bounds[0]).release, 0)[:2], f"{item}: raise the bound to {version}"


def test_ci_installs_from_the_lock() -> None:
    """.ci/run sets LOCKED, and `make` then installs with --require-hashes and fetches nothing else."""
    assert "\nexport LOCKED=1\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    command = ["make", "--always-make", "--dry-run", "own-environment", ".venv/bin/.stamp", "LOCKED=1"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    installs = [line for line in shown.splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert "--require-hashes -r .ci/locked.txt" in installs[0]
    assert "--no-deps --no-build-isolation" in installs[1]


def copy_sources(target: Path, mode: int) -> Path:
    """Copy what the wheel is made of, with other times and permissions."""
    skipped = shutil.ignore_patterns("__pycache__")
    for name in ("triage", "signatures"):
        shutil.copytree(ROOT / name, target / name, ignore=skipped, copy_function=shutil.copyfile)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copyfile(ROOT / name, target / name)
    for path in target.rglob("*"):
        if path.is_file():
            path.chmod(mode)
            os.utime(path, (mode * 1e6, mode * 1e6))
    return target


def test_two_builds_have_the_same_bytes(tmp_path: Path) -> None:
    """Directory, times, permissions, time zone and hash seed of a build do not change the wheel."""
    digests = set()
    for number, (mode, zone) in enumerate(((0o644, "UTC"), (0o600, "Asia/Tokyo"))):
        source = copy_sources(tmp_path / f"a{number}" / ("x" * number) / "source", mode)
        environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000", "TZ": zone, "PYTHONHASHSEED": str(number)}
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(source / "out")]
        subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True, timeout=120)
        (wheel,) = (source / "out").iterdir()
        digests.add(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_the_list_of_packages_is_complete() -> None:
    """The list has every direct requirement with its version, each reference resolves, and a second run is equal."""
    script = load_script("sbom")
    listed: dict[str, Any] = script.document()
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.6")
    components = {item["name"]: item for item in listed["components"]}
    for item in list_direct("web", "slack", "mcp", "similar"):
        component = components[canonicalize_name(item.name)]
        assert item.specifier.contains(component["version"])
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"
    references = {listed["metadata"]["component"]["bom-ref"], *(item["bom-ref"] for item in components.values())}
    assert {item["ref"] for item in listed["dependencies"]} == references
    assert {ref for item in listed["dependencies"] for ref in item["dependsOn"]} <= references
    assert listed == script.document()
