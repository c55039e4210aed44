"""The OpenAPI document is complete, its examples are valid, and the service behaves as documented."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from triage.service import authentication
from triage.service.app import create_app
from triage.settings import Settings
from triage.settings.sections import Source, StoreSettings, WebSettings
from triage.store import Store

EXAMPLES_PER_OPERATION = int(os.environ.get("TRIAGE_EXAMPLES", "2"))


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (method and path, operation)."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield f"{method} {path}", operation


def with_components(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the components that it refers to."""
    name = schema.get("$ref", "").rpartition("/")[2]
    resolved = document["components"]["schemas"][name] if name else schema
    return {**resolved, "components": document["components"]}


def test_everything_is_described(app: FastAPI) -> None:
    """Each operation has a tag, a description, typed parameters, errors in the one shape, and a unique id."""
    document = app.openapi()
    wrong = []
    for name, operation in operations(document):
        wrong += [f"{name}: no text"] if len(operation["description"]) < 20 or not operation["tags"] else []
        wrong += [f"{name}: {item['name']}" for item in operation.get("parameters", ()) if not item.get("schema")]
        for status, answer in operation["responses"].items():
            if int(status) >= 400 and not (status == "503" and name.endswith("/ready")):
                wrong += [] if "Problem" in str(answer["content"]) else [f"{name}: {status}"]
    assert wrong == []
    identifiers = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(identifiers)) == len(identifiers) > 40
    assert set(document["components"]["securitySchemes"]) == {"token", "session"}


def test_examples_match_their_schemas(app: FastAPI) -> None:
    """Every request and response has an example that matches its schema."""
    document = app.openapi()
    count = 0
    for name, operation in operations(document):
        contents = [operation["requestBody"]["content"]] if "requestBody" in operation else []
        contents += [answer["content"] for status, answer in operation["responses"].items() if status < "300"]
        for content in contents:
            for kind, part in content.items():
                schema = with_components(part.get("schema", {}), document)
                example = part.get("example", schema.get("example"))
                if kind in (
                    "multipart/form-data",
                    "application/octet-stream",
                    "application/xml",
                    "application/zip",
                ) or name.endswith("/report"):
                    continue
                assert example is not None, f"{name} {kind}"
                jsonschema.validate(example, schema)
                count += 1
    assert count > 45


@pytest.fixture(scope="module")
def network_app(store_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """A service that other machines can reach, with data; app.state has a token and the ids of the data."""
    directory = tmp_path_factory.mktemp("openapi")
    (directory / "jobs" / "1234").mkdir(parents=True)
    path = directory / "triage.db"
    path.write_bytes(store_template.read_bytes())
    web = WebSettings(host="0.0.0.0", hosts=("*",), changes_a_minute=10**6, requests_a_minute=10**6)
    test_settings = Settings(
        store=StoreSettings(path=path), web=web, sources={"slurm": Source(path=directory / "jobs")}
    )
    with Store.open(path) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(authentication, "WRONG_TOKENS_A_MINUTE", 10**6)
        token, _ = store.tokens.create("all", ["read", "ingest", "curate", "admin"], actor="test")
        app = create_app(test_settings, store)
        app.state.token = token
        app.state.ids = {
            "incident": [item.id for item in store.search.list_incidents()],
            "cluster": [item.id for item in store.clusters.list_clusters()],
            "task_id": [store.tasks.add("ingest", {"place": {}}, actor="all").id],
            "signature": ["host.sigkill"],
            "source": ["slurm"],
            "number": [0],
            "entry": [1],
        }
        yield app


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Use existing ids in half of the valid requests."""
    for name, value in (path_parameters or {}).items() if EXISTING_IDS else ():
        ids = EXISTING_IDS.get(name)
        if ids and hashlib.sha256(str(value).encode()).digest()[0] % 2:
            path_parameters[name] = ids[len(str(value)) % len(ids)]  # type: ignore[index]
    return path_parameters


EXISTING_IDS: dict[str, list[Any]] = {}


def hides_wrong_types(case: Any) -> bool:
    """Return whether wrong types are invisible in the request: form values are texts, queries have no objects."""
    form = case.body if case.media_type == "multipart/form-data" and isinstance(case.body, dict) else {}
    return any(isinstance(value, (bool, int, float)) for value in form.values()) or any(
        isinstance(value, dict) or (isinstance(value, list) and len(value) < 2) for value in (case.query or {}).values()
    )


def test_responses_match_the_document(network_app: FastAPI) -> None:
    """ASVS 2.2.1, 4.1.1: random requests get no 5xx, and documented statuses, content types and schemas."""
    headers = {"Authorization": f"Bearer {network_app.state.token}"}
    hypothesis_settings = settings(
        max_examples=EXAMPLES_PER_OPERATION,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    count = 0
    for result in schemathesis.openapi.from_asgi("/api/v1/openapi.json", network_app).get_all_operations():
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            EXISTING_IDS.clear()
            EXISTING_IDS.update(network_app.state.ids if mode is GenerationMode.POSITIVE else {})

            @hypothesis_settings
            @given(case=operation.as_strategy(generation_mode=mode))
            def send(case: Any) -> None:
                nonlocal count
                count += 1
                # A valid form may still be refused: a cluster cannot be merged with itself.
                excluded = [positive_data_acceptance, *([negative_data_rejection] if hides_wrong_types(case) else [])]
                case.call_and_validate(headers=headers, excluded_checks=excluded)

            with contextlib.suppress(Unsatisfiable):  # the operation has no invalid requests
                send()
    assert count > 150
