"""An incident as an archive, and its deletion, through the API, the pages and the command line."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

from starlette.testclient import TestClient

from triage.cli import main
from triage.render import json_reader
from triage.store import Store

HTML = {"Accept": "text/html"}


def test_a_bundle_has_the_report_and_the_quoted_lines(client: TestClient, store: Store) -> None:
    """The archive is the same each time; its report reads back, and its evidence has the quoted lines."""
    (incident, *_) = store.search.list_incidents()
    answer = client.get(f"/api/v1/incidents/{incident.id}/bundle")
    assert answer.headers["content-type"] == "application/zip"
    assert incident.id in answer.headers["content-disposition"]
    assert answer.content == client.get(f"/api/v1/incidents/{incident.id}/bundle?again=1").content
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    files = {Path(name).name: archive.read(name).decode() for name in archive.namelist()}
    assert {"README.txt", "report.json", "report.txt", "evidence.txt"} <= set(files)
    stored = store.incidents.get(incident.id)
    assert json_reader.read(files["report.json"]).verdict == incident.verdict
    assert json.loads(files["report.json"])["incident"]["id"] == incident.id
    root = stored.diagnosis.root_cause
    assert root is not None
    assert root.evidence[0].text.split("\n")[0] in files["evidence.txt"]
    assert f"/api/v1/incidents/{incident.id}/bundle" in client.get(f"/incidents/{incident.id}", headers=HTML).text
    assert client.get("/api/v1/incidents/i-nothing/bundle").status_code == 404


def test_an_administrator_deletes_an_incident(client: TestClient, store: Store) -> None:
    """A deletion needs a reason; afterwards every address of the incident is 404 and the audit log has the deletion."""
    first, second, *_ = store.search.list_incidents()
    assert client.delete(f"/api/v1/incidents/{first.id}").status_code == 422
    answer = client.delete(f"/api/v1/incidents/{first.id}", params={"because": "ticket 17"})
    assert (answer.status_code, answer.json()) == (200, {"id": first.id})
    for end in ("", "/report", "/evidence", "/similar", "/bundle"):
        assert client.get(f"/api/v1/incidents/{first.id}{end}").status_code == 404
    (entry,) = client.get("/api/v1/audit", params={"subject": first.id}).json()["entries"]
    assert (entry["action"], entry["details"]) == ("delete", {"because": "ticket 17"})
    page = client.post(f"/incidents/{second.id}/delete", data={"because": "ticket 18"}, headers=HTML)
    assert "Incident deleted" in page.text
    assert client.get("/api/v1/incidents").json()["total"] == 1


def test_the_command_line_bundles_and_deletes(path: Path, store: Store, tmp_path: Path) -> None:
    """`triage bundle` writes the archive that the API gives, and `triage delete` deletes with a reason only."""
    (incident, *_) = store.search.list_incidents()
    archive = tmp_path / "one.zip"
    assert main(["bundle", incident.id, "-o", str(archive), "--store", str(path)]) == 0
    assert zipfile.ZipFile(archive).testzip() is None
    assert main(["delete", incident.id, "--store", str(path)]) == 2
    assert main(["delete", incident.id, "--because", "ticket 17", "--store", str(path)]) == 0
    assert incident.id not in [item.id for item in store.search.list_incidents()]
