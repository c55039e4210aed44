"""A planted secret of each kind appears nowhere: not in the file of the store, its index, exports, reports, posts or
messages.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evidence.test_redact import SECRETS
from triage.store import Store
from triage.testing.jobs import JobBuilder

ROOT = Path(__file__).resolve().parents[2]


def triage(*arguments: object, store: Path) -> str:
    """Everything that the command writes, on either stream."""
    command = [sys.executable, "-m", "triage", *map(str, arguments), "--store", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="module")
def written(place: Path) -> dict[str, bytes]:
    """All that came out of two jobs full of secrets, by where it came out."""
    store = place / "triage.db"
    for number, half in enumerate((SECRETS[::2], SECRETS[1::2])):
        job = JobBuilder(place / f"job{number}", world_size=max(2, len(half)))
        for rank, (_, text, _) in enumerate(half):
            job.rank(rank).log(f"starting with {text}")
            job.rank(rank).traceback(f"SecretError: {text}")
        job.elastic_table(dict.fromkeys(range(len(half)), 1)).write()
    out: dict[str, str] = {}
    for format_ in ("text", "json", "markdown"):
        out[f"ingest {format_}"] = triage("ingest", place / "job0", "--format", format_, store=store)
    out["ingest other"] = triage("ingest", place / "job1", store=store)
    with Store.open(store) as opened:
        incidents = opened.search.listed()
        clusters = opened.clusters.listed()
        assert len(incidents) == 2
        assert clusters
        for kind, text, _ in SECRETS:
            opened.feedback.add(incidents[0].id, "wrong", actor="ann", because=f"{kind}: {text}")
            opened.moves.name(clusters[0].id, f"called {text}"[:2000], actor="ann", note=text)
            opened.moves.reject(clusters[0].id, clusters[-1].id, actor="ann", because=text)
    for name, arguments in (
        ("show", ["show", incidents[0].id]),
        ("show json", ["show", incidents[0].id, "-f", "json"]),
        ("list", ["list", "-f", "csv"]),
        ("search", ["search", "SecretError"]),
        ("clusters", ["clusters", "show", clusters[0].id, "-f", "json"]),
        ("log", ["clusters", "log", "-n", "1000"]),
        ("feedback", ["feedback"]),
        ("export", ["db", "export"]),
        ("promote", ["clusters", "promote", clusters[0].id, "data.secret", "-d", str(place / "signatures")]),
    ):
        out[name] = triage(*arguments, store=store)
    written = {name: text.encode() for name, text in out.items()}
    for path in [*place.glob("triage.db*"), *(place / "signatures").rglob("*.yaml")]:
        written[path.name] = path.read_bytes()
    with Store.open(store) as opened:
        bodies = opened.connections.read("SELECT body FROM report")
        from triage.store.codec import unbody

        written["bodies"] = json.dumps([unbody(row["body"]) for row in bodies]).encode()
        written["tables"] = "\n".join(opened.connections.get().iterdump()).encode()
    return written


@pytest.mark.parametrize(("kind", "text", "secret"), SECRETS)
def test_it_is_nowhere(written: dict[str, bytes], kind: str, text: str, secret: str) -> None:
    """Neither whole nor without what JSON and SQL escape."""
    forms = {secret.encode(), json.dumps(secret)[1:-1].encode(), secret.replace("'", "''").encode()}
    assert [place for place, data in written.items() if any(form in data for form in forms)] == []


def test_kinds_and_counts_are_kept(written: dict[str, bytes], place: Path) -> None:
    """What was taken out is known by kind and number."""
    with Store.open(place / "triage.db") as store:
        counts: dict[str, int] = {}
        for incident in store.search.listed():
            for kind, count in store.incidents.get(incident.id).redacted.items():
                counts[kind] = counts.get(kind, 0) + count
    assert set(counts) >= {"token", "assignment", "url-password", "jwt"}
    assert b"Taken out" in written["show"]
