"""Hand out one incident as an archive, and delete it for good."""

from __future__ import annotations

from starlette.responses import Response

from triage.render.bundle import make_bundle
from triage.service.access import Principal
from triage.service.dependencies import ServiceState
from triage.service.work import job_files
from triage.store import Store
from triage.store.deletion import delete_incident


def bundle_response(store: Store, incident: str) -> Response:
    """Return the archive of an incident, which a browser saves. Raises NotFoundError."""
    stored = store.incidents.get(incident)
    documents = store.service_data.list_documents(store.incidents.find_number(stored.incident.id))
    headers = {"Content-Disposition": f'attachment; filename="triage-{stored.incident.id}.zip"'}
    return Response(make_bundle(stored, documents), media_type="application/zip", headers=headers)


def delete_for_good(state: ServiceState, user: Principal, incident: str, because: str) -> str:
    """Delete an incident and the uploaded files that only it has; return its id."""
    store = state.store
    deleted = delete_incident(store.connections, store.incidents, incident, actor=user.name, because=because)
    store.service_data.delete_uploads(deleted.uploads)
    root = job_files.upload_directory(state.settings)
    for digest in deleted.uploads:
        job_files.blob_path(root, digest).unlink(missing_ok=True)
    return deleted.id
