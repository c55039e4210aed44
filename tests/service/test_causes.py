"""Causes through the API: lists, the work on them by role, and comments."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from triage.store import Store

KILLED = "data.worker-killed"


def test_causes_are_listed_and_filtered(client: TestClient) -> None:
    """The list has the causes of the stored incidents, each filter narrows it, and one cause is the row of the list."""
    document = client.get("/api/v1/causes").json()
    assert document["total"] == len(document["causes"]) == 2
    (row,) = client.get("/api/v1/causes", params={"q": "worker killed"}).json()["causes"]
    assert (row["id"], row["kind"], row["status"]) == (KILLED, "signature", "open")
    assert client.get("/api/v1/causes", params={"new": "1d"}).json()["total"] == 2
    assert client.get("/api/v1/causes", params={"new": "2100-01-01"}).json()["total"] == 0
    assert row == client.get(f"/api/v1/causes/{KILLED}").json()
    (incident,) = client.get("/api/v1/incidents", params={"cause": KILLED}).json()["incidents"]
    assert incident["at"] == row["last_at"]
    for unknown in ("u-ffffff", "data.no-such"):
        answer = client.get(f"/api/v1/causes/{unknown}")
        assert (answer.status_code, answer.json()["error"]["message"]) == (404, f"the store has no cause {unknown}")


def test_a_cause_is_fixed_and_comes_back(client: TestClient) -> None:
    """A fix before the last failure makes the cause regressed, one after it fixed; the audit log has both."""
    before = {"status": "fixed", "fixed_in": "2.6.1", "date": "2020-01-01", "assignee": "anna"}
    row = client.post(f"/api/v1/causes/{KILLED}/work", json=before).json()
    assert (row["status"], row["since_fix"], row["fixed_in"], row["assignee"]) == ("regressed", 1, "2.6.1", "anna")
    row = client.post(f"/api/v1/causes/{KILLED}/work", json={"status": "fixed", "date": "2030-01-01"}).json()
    assert (row["status"], row["assignee"]) == ("fixed", "anna")
    entries = client.get("/api/v1/audit", params={"subject": KILLED}).json()["entries"]
    assert [entry["action"] for entry in entries] == ["work", "work"]
    assert client.get("/api/v1/causes", params={"status": "waiting"}).json()["total"] == 1


def test_several_causes_change_together_or_not_at_all(client: TestClient) -> None:
    """A bulk change has an audit entry for each cause; with one that does not exist nothing changes."""
    ids = [row["id"] for row in client.get("/api/v1/causes").json()["causes"]]
    body = {"causes": [*ids, "u-ffffff"], "status": "acknowledged"}
    assert client.post("/api/v1/causes/work", json=body).status_code == 404
    assert client.get("/api/v1/causes", params={"status": "acknowledged"}).json()["total"] == 0
    assert len(client.post("/api/v1/causes/work", json={**body, "causes": ids}).json()["entries"]) == 2
    assert client.get("/api/v1/causes", params={"status": "acknowledged"}).json()["total"] == 2


def test_comments_are_listed_in_their_order(client: TestClient) -> None:
    """Comments have their writer and their order."""
    for text in ("node17 is drained", "it came back"):
        assert client.post(f"/api/v1/causes/{KILLED}/comments", json={"text": text}).status_code == 201
    comments = client.get(f"/api/v1/causes/{KILLED}/comments").json()["comments"]
    assert [(item["actor"], item["text"]) for item in comments] == [
        ("local", "node17 is drained"),
        ("local", "it came back"),
    ]


@pytest.mark.parametrize(
    ("scopes", "comment", "work"),
    [(["read"], 403, 403), (["read", "ingest"], 201, 403), (["read", "ingest", "curate"], 201, 200)],
)
def test_roles_decide_who_may_work(app: FastAPI, store: Store, scopes: list[str], comment: int, work: int) -> None:
    """Submitters may comment, curators may also change the work; viewers only read."""
    token, _ = store.tokens.create("ann", scopes, actor="tests")
    with TestClient(app, base_url="http://127.0.0.1:8321", headers={"Authorization": f"Bearer {token}"}) as client:
        assert client.get(f"/api/v1/causes/{KILLED}").status_code == 200
        answer = client.post(f"/api/v1/causes/{KILLED}/comments", json={"text": "seen twice"})
        assert answer.status_code == comment
        assert client.post(f"/api/v1/causes/{KILLED}/work", json={"assignee": "ann"}).status_code == work
        assert client.post("/api/v1/causes/work", json={"causes": [KILLED], "ticket": "T-7"}).status_code == work
