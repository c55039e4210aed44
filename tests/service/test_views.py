"""Saved views, visits and subscriptions through the API and the pages, by role."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from triage.service.app import create_app
from triage.settings import Settings
from triage.settings.notifications import RoutingSettings
from triage.settings.sections import StoreSettings, WebSettings
from triage.store import Store

KILLED = "data.worker-killed"
HTML = {"Accept": "text/html"}


@pytest.fixture
def signed_in(path: Path, store: Store) -> Iterator[TestClient]:
    """A client of a service where people must sign in, and that posts to one target."""
    settings = Settings(
        store=StoreSettings(path=path),
        web=WebSettings(sign_in="required"),
        routing=RoutingSettings(subscriptions=("webhook:team",)),
    )
    with TestClient(create_app(settings, store), base_url="http://127.0.0.1") as client:
        yield client


def header(store: Store, name: str, *scopes: str) -> dict[str, str]:
    """Return the header of a person with a new token."""
    return {"Authorization": f"Bearer {store.tokens.create(name, ['read', *scopes], actor='test')[0]}"}


def test_a_view_is_saved_opened_and_deleted(signed_in: TestClient, store: Store) -> None:
    """A viewer's view is their own; its address lists what its filters say; a shared one needs a curator."""
    anna, ben = header(store, "anna"), header(store, "ben", "ingest", "curate")
    body = {"name": "Killed", "page": "causes", "query": {"q": "killed", "host": ""}}
    row = signed_in.post("/api/v1/views", json=body, headers=anna).json()
    assert (row["shared"], row["query"], row["address"]) == (False, {"q": "killed"}, "/causes?q=killed")
    assert signed_in.get(f"/api/v1{row['address']}", headers=anna).json()["total"] == 1
    assert signed_in.get("/api/v1/views", headers=ben).json() == {"views": []}
    assert signed_in.delete(f"/api/v1/views/{row['id']}", headers=ben).status_code == 404
    refused = signed_in.post("/api/v1/views", json={**body, "shared": True}, headers=anna)
    assert (refused.status_code, "curator" in refused.json()["error"]["message"]) == (403, True)
    shared = signed_in.post("/api/v1/views", json={**body, "shared": True}, headers=ben).json()
    assert [view["id"] for view in signed_in.get("/api/v1/views", headers=anna).json()["views"]] == [
        *sorted((shared["id"], row["id"]), key=lambda name: name != shared["id"])
    ]
    assert signed_in.delete(f"/api/v1/views/{shared['id']}", headers=anna).status_code == 403
    assert signed_in.delete(f"/api/v1/views/{row['id']}", headers=anna).json()["id"] == row["id"]


def test_an_unknown_filter_is_refused(client: TestClient) -> None:
    """A view with a parameter that its list does not have is an error that names the parameter."""
    body = {"name": "a", "page": "incidents", "query": {"assignee": "anna"}}
    answer = client.post("/api/v1/views", json=body)
    assert (answer.status_code, "assignee" in answer.json()["error"]["message"]) == (400, True)


def test_a_visit_is_remembered_for_who_signs_in(signed_in: TestClient, store: Store) -> None:
    """`new=visit` lists causes since the visit before this one; the page links to it from the second visit on."""
    anna = header(store, "anna")
    assert signed_in.get("/api/v1/me", headers=anna).json()["last_visit"] is None
    assert signed_in.get("/api/v1/causes?new=visit", headers=anna).json()["total"] == 2
    assert "last visit" not in signed_in.get("/causes", headers=anna | HTML).text
    store.connections.execute("UPDATE visit SET seen_at = seen_at - 3600")
    assert "New since your last visit" in signed_in.get("/causes?order=last", headers=anna | HTML).text
    assert signed_in.get("/api/v1/causes?new=visit", headers=anna).json()["total"] == 2
    store.connections.execute("UPDATE visit SET previous_at = 4102444800.0")
    assert signed_in.get("/api/v1/causes?new=visit&limit=9", headers=anna).json()["total"] == 0


def test_without_sign_in_no_visit_is_remembered(client: TestClient) -> None:
    """Where nobody signs in, `new=visit` says that no visit is remembered and what to write."""
    answer = client.get("/api/v1/causes?new=visit")
    assert (answer.status_code, "7d" in answer.json()["error"]["hint"]) == (400, True)
    assert client.get("/api/v1/me").json()["last_visit"] is None


def test_subscriptions_by_role_and_target(signed_in: TestClient, store: Store) -> None:
    """A submitter subscribes an allowed target to a cause or a view; a viewer does not; curators end any."""
    anna, ben, mira = header(store, "anna"), header(store, "ben", "ingest"), header(store, "mira", "ingest", "curate")
    body = {"to": "webhook:team", "cause": KILLED}
    assert signed_in.post("/api/v1/subscriptions", json=body, headers=anna).status_code == 403
    row = signed_in.post("/api/v1/subscriptions", json=body, headers=ben).json()
    assert (row["cause"], row["to"], row["owner"]) == (KILLED, "webhook:team", "ben")
    other = signed_in.post("/api/v1/subscriptions", json={**body, "to": "webhook:else"}, headers=ben)
    assert (other.status_code, "webhook:team" in other.json()["error"]["hint"]) == (400, True)
    view = {"name": "node", "page": "incidents", "query": {"host": "node1"}}
    view_id = signed_in.post("/api/v1/views", json=view, headers=ben).json()["id"]
    by_view = {"to": "webhook:team", "view": view_id}
    second = signed_in.post("/api/v1/subscriptions", json=by_view, headers=ben).json()
    assert second["filter"] == {"host": "node1"}
    listed = signed_in.get("/api/v1/subscriptions", headers=anna).json()
    assert (len(listed["subscriptions"]), listed["targets"]) == (2, ["webhook:team"])
    assert signed_in.delete(f"/api/v1/subscriptions/{row['id']}", headers=mira).status_code == 200
    assert "webhook:team" in signed_in.get("/views", headers=anna | HTML).text
    entries = signed_in.get("/api/v1/audit", params={"subject": KILLED}, headers=mira).json()["entries"]
    assert [entry["action"] for entry in entries] == ["unsubscribe", "subscribe"]


def test_a_view_is_subscribed_if_posts_know_its_filters(signed_in: TestClient, store: Store) -> None:
    """The order of a list is no filter; a view with a status is not offered, and refused."""
    ben = header(store, "ben", "ingest", "curate")

    def save(name: str, **query: str) -> str:
        view = {"name": name, "page": "causes", "query": query}
        return str(signed_in.post("/api/v1/views", json=view, headers=ben).json()["id"])

    ordered, by_status = save("hosts", host="node1", order="week"), save("mine", status="open", assignee="ben")
    save("words", q="killed")
    page = signed_in.get("/views", headers=ben | HTML).text
    assert page.count(f'name="view" value="{ordered}"') == 1
    assert f'name="view" value="{by_status}"' not in page
    assert "Posts cannot be filtered by assignee." in page
    assert "Posts cannot be filtered by words." in page
    row = signed_in.post("/api/v1/subscriptions", json={"to": "webhook:team", "view": ordered}, headers=ben).json()
    assert row["filter"] == {"host": "node1"}
    refused = signed_in.post("/api/v1/subscriptions", json={"to": "webhook:team", "view": by_status}, headers=ben)
    assert refused.status_code == 400
