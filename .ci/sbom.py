"""List the packages that an installed triage uses, with versions and licences, as a CycloneDX document: `make sbom`.

It follows the requirements of triage and of its extras for users through the metadata of what is installed. The form is
CycloneDX 1.6 (ECMA-424). Two runs on one environment write the same bytes.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("web", "slack", "mcp", "similar", "fast")
OUTPUT = Path(__file__).resolve().parents[1] / "dist" / "sbom.json"


def list_requirements(package: Distribution, extras: tuple[str, ...]) -> list[Requirement]:
    """Return the requirements of a package that hold on this machine, with those of its extras."""
    requirements = [Requirement(line) for line in package.requires or ()]
    return [
        item
        for item in requirements
        if item.marker is None or any(item.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def collect_packages(name: str, extras: tuple[str, ...]) -> dict[str, tuple[Distribution, set[str]]]:
    """Return by name every package that this one needs, and itself, each with the names that it needs."""
    packages: dict[str, tuple[Distribution, set[str]]] = {}
    waiting = [(name, extras)]
    visited: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in visited:
            continue
        visited.add((name, extras))
        package, needed = packages.setdefault(name, (distribution(name), set()))
        for item in list_requirements(package, extras):
            required = canonicalize_name(item.name)
            needed.add(required)
            waiting.append((required, tuple(sorted(item.extras))))
    return packages


def describe(name: str, package: Distribution) -> dict[str, Any]:
    """Return the component of a package."""
    purl = f"pkg:pypi/{name}@{package.version}"
    component: dict[str, Any] = {
        "type": "library", "bom-ref": purl, "name": name, "version": package.version, "purl": purl
    }  # fmt: skip
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        component["licenses"] = [{"expression": expression}]
    elif (licence := metadata.get("License", "").strip()) and "\n" not in licence:
        component["licenses"] = [{"license": {"name": licence}}]
    return component


def document(name: str = "triage-kb", extras: tuple[str, ...] = EXTRAS) -> dict[str, Any]:
    """Return the document of a package that is installed with these extras."""
    packages = collect_packages(name, extras)
    components = {key: describe(key, package) for key, (package, _) in sorted(packages.items())}
    references = {key: component["bom-ref"] for key, component in components.items()}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": components[name] | {"type": "application"}},
        "components": [component for key, component in components.items() if key != name],
        "dependencies": [
            {"ref": reference, "dependsOn": [references[item] for item in sorted(packages[key][1])]}
            for key, reference in references.items()
        ],
    }


def main() -> None:
    """Write dist/sbom.json."""
    OUTPUT.parent.mkdir(exist_ok=True)
    listed = document()
    OUTPUT.write_text(json.dumps(listed, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{OUTPUT}: {len(listed['components'])} packages\n")


if __name__ == "__main__":
    main()
