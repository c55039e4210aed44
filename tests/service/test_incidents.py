"""Lists of incidents and one of them, through the API."""

from __future__ import annotations

from starlette.testclient import TestClient


def test_pages_of_a_list_are_the_list(client: TestClient) -> None:
    """Following `next` gives every incident once, in the order of the whole list."""
    whole = client.get("/api/v1/incidents").json()
    found, after = [], None
    while True:
        page = client.get("/api/v1/incidents", params={"limit": 1, **({"after": after} if after else {})}).json()
        found += page["incidents"]
        after = page["next"]
        if after is None:
            break
    assert found == whole["incidents"]
    assert len(found) == whole["total"] == 3


def test_an_incident_is_its_report(client: TestClient) -> None:
    """The same object that `triage show --format json` prints."""
    first = client.get("/api/v1/incidents", params={"verdict": "known"}).json()["incidents"][0]
    found = client.get(f"/api/v1/incidents/{first['id']}").json()
    assert (found["schema"], found["verdict"], found["incident"]["id"]) == ("triage.diagnosis/1", "known", first["id"])


def test_what_is_not_there_is_told_in_the_one_shape(client: TestClient) -> None:
    """404 with a code, a message and the next step."""
    answer = client.get("/api/v1/incidents/i-ffff")
    assert answer.status_code == 404
    assert set(answer.json()["error"]) == {"status", "code", "message", "hint", "fields"}
