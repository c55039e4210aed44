"""The OpenAPI document is complete, its examples are right, and the service does what it says, whatever is asked."""

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

from triage.service import identify
from triage.service.app import create_app
from triage.settings import Settings
from triage.settings.sources import Source
from triage.settings.store import Store as StoreSection
from triage.settings.web import Web
from triage.store import Store

EXAMPLES_EACH = int(os.environ.get("TRIAGE_EXAMPLES", "2"))


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield f"{method} {path}", operation


def whole(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """A schema with what it refers to."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found = document["components"]["schemas"][name] if name else schema
    return {**found, "components": document["components"]}


def test_everything_is_described(app: FastAPI) -> None:
    """Each operation has a tag, a text, its role, described parameters, errors in the one shape, and an id of its own."""
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


def test_examples_are_there_and_right(app: FastAPI) -> None:
    """What is sent and what comes back has an example, and the example fits its schema."""
    document = app.openapi()
    seen = 0
    for name, operation in operations(document):
        contents = [operation["requestBody"]["content"]] if "requestBody" in operation else []
        contents += [answer["content"] for status, answer in operation["responses"].items() if status < "300"]
        for content in contents:
            for kind, part in content.items():
                schema = whole(part.get("schema", {}), document)
                example = part.get("example", schema.get("example"))
                if kind in ("multipart/form-data", "application/octet-stream", "application/xml") or name.endswith(
                    "/report"
                ):
                    continue
                assert example is not None, f"{name} {kind}"
                jsonschema.validate(example, schema)
                seen += 1
    assert seen > 45


@pytest.fixture(scope="module")
def asked(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """The service as others reach it, with things in it that can be asked for; its tokens are in app.state."""
    place = tmp_path_factory.mktemp("asked")
    (place / "jobs" / "1234").mkdir(parents=True)
    path = place / "triage.db"
    path.write_bytes(stored.read_bytes())
    web = Web(host="0.0.0.0", hosts=("*",), changes_a_minute=10**6, requests_a_minute=10**6)
    wanted = Settings(store=StoreSection(path=path), web=web, sources={"slurm": Source(path=place / "jobs")})
    with Store.open(path) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(identify, "WRONG_A_MINUTE", 10**6)
        token, _ = store.tokens.create("all", ["read", "ingest", "curate", "admin"], actor="test")
        app = create_app(wanted, store)
        app.state.token = token
        app.state.known = {
            "incident": [item.id for item in store.search.listed()],
            "cluster": [item.id for item in store.clusters.listed()],
            "task_id": [store.tasks.add("ingest", {"place": {}}, actor="all").id],
            "signature": ["host.sigkill"],
            "source": ["slurm"],
            "number": [0],
            "entry": [1],
        }
        yield app


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Half of the time things are asked for that are there, unless what is asked shall be wrong."""
    for name, value in (path_parameters or {}).items() if KNOWN else ():
        known = KNOWN.get(name)
        if known and hashlib.sha256(str(value).encode()).digest()[0] % 2:
            path_parameters[name] = known[len(str(value)) % len(known)]  # type: ignore[index]
    return path_parameters


KNOWN: dict[str, list[Any]] = {}


def looks_right(case: Any) -> bool:
    """Has it a value of a wrong type that nobody can see in what is sent? In a form all is text; a query has no
    objects, and no lists of one.
    """
    form = case.body if case.media_type == "multipart/form-data" and isinstance(case.body, dict) else {}
    return any(isinstance(value, (bool, int, float)) for value in form.values()) or any(
        isinstance(value, dict) or (isinstance(value, list) and len(value) < 2) for value in (case.query or {}).values()
    )


def test_it_does_what_the_document_says(asked: FastAPI) -> None:
    """ASVS 2.2.1, 4.1.1: no 5xx; status, content type, headers and schema as documented; nothing is answered without a
    sign-in.
    """
    headers = {"Authorization": f"Bearer {asked.state.token}"}
    wanted = settings(
        max_examples=EXAMPLES_EACH,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    count = 0
    for result in schemathesis.openapi.from_asgi("/api/v1/openapi.json", asked).get_all_operations():
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            KNOWN.clear()
            KNOWN.update(asked.state.known if mode is GenerationMode.POSITIVE else {})

            @wanted
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:
                nonlocal count
                count += 1
                # What has the right form may still be refused: a cluster is not merged with itself.
                left_out = [positive_data_acceptance, *([negative_data_rejection] if looks_right(case) else [])]
                case.call_and_validate(headers=headers, excluded_checks=left_out)

            with contextlib.suppress(Unsatisfiable):  # nothing about it could be wrong
                ask()
    assert count > 150
