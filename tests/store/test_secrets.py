"""A secret of each kind is in no output: not in the store, its index, exports, reports, posts or logs."""

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


def run_triage(*arguments: object, store: Path) -> str:
    """Return everything that the command writes to either stream."""
    command = [sys.executable, "-m", "triage", *map(str, arguments), "--store", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="module")
def outputs(place: Path) -> dict[str, bytes]:
    """Everything that two jobs full of secrets produce, by where it was written."""
    store = place / "triage.db"
    for number, half in enumerate((SECRETS[::2], SECRETS[1::2])):
        job = JobBuilder(place / f"job{number}", world_size=max(2, len(half)))
        for rank, (_, text, _) in enumerate(half):
            job.rank(rank).log(f"starting with {text}")
            job.rank(rank).traceback(f"SecretError: {text}")
        job.elastic_table(dict.fromkeys(range(len(half)), 1)).write()
    out: dict[str, str] = {}
    for format_ in ("text", "json", "markdown"):
        out[f"ingest {format_}"] = run_triage("ingest", place / "job0", "--format", format_, store=store)
    out["ingest other"] = run_triage("ingest", place / "job1", store=store)
    with Store.open(store) as opened:
        incidents = opened.search.list_incidents()
        clusters = opened.clusters.list_clusters()
        assert len(incidents) == 2
        assert clusters
        for kind, text, _ in SECRETS:
            opened.feedback.add(incidents[0].id, "wrong", actor="ann", because=f"{kind}: {text}")
            opened.cluster_actions.name(clusters[0].id, f"called {text}"[:2000], actor="ann", note=text)
            opened.cluster_actions.reject(clusters[0].id, clusters[-1].id, actor="ann", because=text)
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
        out[name] = run_triage(*arguments, store=store)
    outputs = {name: text.encode() for name, text in out.items()}
    for path in [*place.glob("triage.db*"), *(place / "signatures").rglob("*.yaml")]:
        outputs[path.name] = path.read_bytes()
    with Store.open(store) as opened:
        bodies = opened.connections.read("SELECT body FROM report")
        from triage.store.codec import decode_document

        outputs["bodies"] = json.dumps([decode_document(row["body"]) for row in bodies]).encode()
        outputs["tables"] = "\n".join(opened.connections.get().iterdump()).encode()
    return outputs


@pytest.mark.parametrize(("kind", "text", "secret"), SECRETS)
def test_secrets_are_nowhere(outputs: dict[str, bytes], kind: str, text: str, secret: str) -> None:
    """No secret is in any output, with or without escapes."""
    forms = {secret.encode(), json.dumps(secret)[1:-1].encode(), secret.replace("'", "''").encode()}
    assert [place for place, data in outputs.items() if any(form in data for form in forms)] == []


def test_kinds_and_counts_are_stored(outputs: dict[str, bytes], place: Path) -> None:
    """The store has the kinds and numbers of the redactions."""
    with Store.open(place / "triage.db") as store:
        counts: dict[str, int] = {}
        for incident in store.search.list_incidents():
            for kind, count in store.incidents.get(incident.id).redacted.items():
                counts[kind] = counts.get(kind, 0) + count
    assert set(counts) >= {"token", "assignment", "url-password", "jwt"}
    assert b"Redacted" in outputs["show"]
