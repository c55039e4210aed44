"""Build the wheel and the sdist of the last commit twice and compare their bytes: `make dist`.

The two builds are made in two directories, with two time zones and two hash seeds. SOURCE_DATE_EPOCH is the time of the
commit, so whoever builds the same commit gets the same bytes. Nothing that is not committed gets in.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
BUILDERS = ({"TZ": "UTC", "PYTHONHASHSEED": "1"}, {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2"})


def build(source: Path, target: Path, environment: dict[str, str]) -> dict[str, str]:
    """Build both files of a checkout into a directory, and return their SHA-256 by name."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    subprocess.run(command, cwd=source, env=os.environ | environment, check=True, stdout=subprocess.DEVNULL)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(target.iterdir())}


def export_commit(target: Path) -> None:
    """Write the files of the last commit to a directory."""
    target.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive, check=True)


def main() -> None:
    """Build twice; write `dist/` and its SHA256SUMS if the bytes are equal, else fail."""
    time = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as place:
        digests = []
        for number, environment in enumerate(BUILDERS):
            source, target = Path(place, f"source{number}"), Path(place, f"built{number}")
            export_commit(source)
            digests.append(build(source, target, environment | {"SOURCE_DATE_EPOCH": time.stdout.strip()}))
        if digests[0] != digests[1]:
            raise SystemExit(f"the two builds differ: {digests[0]} and {digests[1]}")
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(target, DIST)
    sums = "".join(f"{digest}  {name}\n" for name, digest in digests[0].items())
    (DIST / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(sums, end="")


if __name__ == "__main__":
    main()
