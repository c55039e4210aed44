"""deploy/: the commands of the compose file work as processes, and the manifest of Kubernetes says the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.service import server_process
from tests.service.server_process import ServerProcess, run_server, wait_for
from tests.store.postgres_server import PostgresServer, find_programs
from triage.settings import Settings
from triage.testing.jobs import JobBuilder

from .conftest import Bucket

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
MANIFEST = list(yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf-8")))
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = ("token", "web", "worker")


def pods() -> dict[str, Any]:
    """The pods of the manifest, by their label `part`."""
    templates = [item["spec"]["template"] for item in MANIFEST if "template" in item.get("spec", {})]
    return {template["metadata"]["labels"]["part"]: template["spec"] for template in templates}


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty database of a real server."""
    pytest.importorskip("psycopg")
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    monkeypatch.setattr(server_process, "LOGS", tmp_path)
    server = PostgresServer(programs)
    yield server.create_database()
    server.close()


@pytest.fixture
def environment(s3: Bucket, database: str, tmp_path: Path) -> dict[str, str]:
    """The environment of the compose file, with the addresses of this machine."""
    written = COMPOSE["x-triage"]["environment"]
    own = {
        "TRIAGE_STORE": database,
        "TRIAGE_TASKS_UPLOADS": str(tmp_path / "uploads" / "files"),
        "AWS_ENDPOINT_URL": s3.url,
    }
    set_here = {name: os.environ[name] for name in written if name in os.environ and name.startswith("AWS_")}
    return {**{name: value for name, value in written.items() if "${" not in value}, **set_here, **own}


def serve(stack: ExitStack, service: str, store: str) -> ServerProcess:
    """Run the command of a service, on a free port of loopback."""
    options = SERVICES[service]["command"][1:]
    port = options.index("--port")
    options = [option.replace("0.0.0.0", "127.0.0.1") for option in options[:port] + options[port + 2 :]]
    return stack.enter_context(run_server(store, *options))


def check_health(service: str, server: ServerProcess) -> None:
    """Run the health check of a service."""
    test = [part.replace("http://127.0.0.1:8321", server.url) for part in SERVICES[service]["healthcheck"]["test"][1:]]
    assert test[0] == "python"
    subprocess.run([sys.executable, *test[1:]], check=True, timeout=60)


def test_the_commands_of_compose_work_together(
    environment: dict[str, str], s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token, two web nodes and a worker: an object is diagnosed by the worker, and both nodes show it."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    job = JobBuilder(tmp_path / "job", world_size=2)
    job.rank(1).traceback("ValueError: no tokens")
    objects = Bucket(s3.url, "jobs")
    address = objects.put_directory(job.elastic_table({1: 1}).write(), "1234")
    command = [sys.executable, "-m", "triage", *SERVICES["token"]["command"]]
    made = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "TRIAGE_CONFIG": ""})
    headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
    with ExitStack() as stack:
        nodes = [serve(stack, "web", environment["TRIAGE_STORE"]) for _ in range(SERVICES["web"]["deploy"]["replicas"])]
        worker = serve(stack, "worker", environment["TRIAGE_STORE"])
        for service, server in (("web", nodes[0]), ("web", nodes[1]), ("worker", worker)):
            check_health(service, server)
        answer = nodes[0].client.post("/api/v1/ingest", json={"address": address}, headers=headers)
        assert answer.status_code == 202, answer.text
        task = f"/api/v1/tasks/{answer.json()['id']}"
        wait_for(lambda: nodes[1].client.get(task, headers=headers).json()["state"] == "done")
        assert [node.client.get("/api/v1/incidents", headers=headers).json()["total"] for node in nodes] == [1, 1]
        assert any(item["event"] == "task ends" for item in worker.read_log())
        assert "triage_incidents 1" in nodes[1].client.get("/metrics", headers=headers).text
        assert nodes[1].client.get("/metrics").status_code == 401


def test_the_manifest_runs_the_same_commands() -> None:
    """Kubernetes gets the arguments of the compose file, and asks each part for its health."""
    assert {part: pod["containers"][0]["args"] for part, pod in pods().items()} == {
        name: SERVICES[name]["command"] for name in OURS
    }
    web = pods()["web"]["containers"][0]
    assert web["livenessProbe"]["httpGet"]["path"] == "/api/v1/health"
    assert web["readinessProbe"]["httpGet"]["path"] == "/api/v1/ready"
    worker = pods()["worker"]["containers"][0]
    assert worker["livenessProbe"]["exec"]["command"] == SERVICES["worker"]["healthcheck"]["test"][1:]


def test_the_manifest_fits_the_schemas_of_kubernetes() -> None:
    """Each document is a resource of an old and of the newest release, without unknown fields."""
    schemas = pytest.importorskip("kubernetes_validate")
    for document in MANIFEST:
        for release in ("1.27", schemas.latest_version()):
            assert schemas.validate(document, release, strict=True)


@pytest.mark.parametrize("part", ["spec", "metadata"])
def test_a_misspelt_field_is_noticed(part: str) -> None:
    """A field that Kubernetes does not know fails, as `kubectl apply` of a strict server would."""
    schemas = pytest.importorskip("kubernetes_validate")
    for document in MANIFEST[1:]:
        with pytest.raises(schemas.ValidationError):
            schemas.validate({**document, part: {**document[part], "replica": 2}}, "1.34", strict=True)


def test_no_container_has_more_rights_than_it_needs() -> None:
    """No root, no capabilities, no token of the cluster, a file system that cannot be written; no secret in a map."""
    for pod in pods().values():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        context = pod["containers"][0]["securityContext"]
        assert context["readOnlyRootFilesystem"]
        assert context["capabilities"] == {"drop": ["ALL"]}
    for name in OURS:
        assert SERVICES[name]["read_only"]
        assert SERVICES[name]["cap_drop"] == ["ALL"]
    [settings] = [item["data"] for item in MANIFEST if item["kind"] == "ConfigMap"]
    assert not [name for name in settings if re.search("PASSWORD|SECRET|KEY", name)]
    assert COMPOSE["x-triage"]["environment"]["PGPASSWORD"] == "${POSTGRES_PASSWORD:?}"


def test_all_settings_exist() -> None:
    """Each TRIAGE_ variable of both files is one that the service reads."""
    sections = {name: field.annotation for name, field in Settings.model_fields.items()}
    known = {
        f"TRIAGE_{section}_{name}".upper()
        for section, kind in sections.items()
        for name in getattr(kind, "model_fields", ())
    }
    [settings] = [item["data"] for item in MANIFEST if item["kind"] == "ConfigMap"]
    named = {*settings, *COMPOSE["x-triage"]["environment"]}
    assert {name for name in named if name.startswith("TRIAGE_")} <= known | {"TRIAGE_STORE"}
