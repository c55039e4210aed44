"""Lists of incidents and single incidents through the API."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from triage.service.incident_queries import parse_time


def test_pages_together_are_the_whole_list(client: TestClient) -> None:
    """Following `next` returns every incident once, in the order of the whole list."""
    whole = client.get("/api/v1/incidents").json()
    incidents, after = [], None
    while True:
        page = client.get("/api/v1/incidents", params={"limit": 1, **({"after": after} if after else {})}).json()
        incidents += page["incidents"]
        after = page["next"]
        if after is None:
            break
    assert incidents == whole["incidents"]
    assert len(incidents) == whole["total"] == 3


def test_incident_is_the_json_report(client: TestClient) -> None:
    """An incident is the object that `triage show --format json` prints."""
    first = client.get("/api/v1/incidents", params={"verdict": "known"}).json()["incidents"][0]
    report = client.get(f"/api/v1/incidents/{first['id']}").json()
    assert (report["schema"], report["verdict"], report["incident"]["id"]) == (
        "triage.diagnosis/2",
        "known",
        first["id"],
    )


def test_missing_incident_is_a_404(client: TestClient) -> None:
    """A missing incident is a 404 error with a code, a message and a hint."""
    answer = client.get("/api/v1/incidents/i-ffff")
    assert answer.status_code == 404
    assert set(answer.json()["error"]) == {"status", "code", "message", "hint", "fields"}


@pytest.mark.parametrize(("now", "since"), [(7200.0, 3600.0), (7259.9, 3600.0), (7260.0, 3660.0)])
def test_a_span_ends_at_the_last_full_minute(now: float, since: float) -> None:
    """Requests of one minute for the last hour have the same filter, so that they share its counts."""
    assert parse_time("1h", now) == since
