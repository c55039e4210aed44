"""What `import triage` offers of the store and the catalog; `ingest` and `explain` are in the package itself.

`store` is the file of a store, by default the one that the command line uses. Raises StoreError or NotFoundError when
it does not exist.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from triage.base.errors import NotFoundError
from triage.catalog.load import load
from triage.store import Store

if TYPE_CHECKING:
    from triage.catalog.model import Signature
    from triage.model import Diagnosis, StoredIncident
    from triage.store.search import SearchHit, SimilarIncident

Place = str | os.PathLike[str] | None


def remember(diagnosis: Diagnosis, store: Place = None) -> Diagnosis:
    """Store a diagnosis and return it with the cluster ids of the store. Creates the store if there is none."""
    with Store.open(store) as opened:
        return opened.incidents.add(diagnosis).diagnosis


def search(query: str, *, store: Place = None, limit: int = 20) -> list[SearchHit]:
    """Return incidents whose diagnosis contains all terms of the query, else some of them; best first."""
    with Store.open(store, create=False) as opened:
        return opened.search.search_text(query, limit=limit)


def similar(incident: str, *, store: Place = None, limit: int = 20) -> list[SimilarIncident]:
    """Return incidents with the same cause, and their feedback. `incident` is an id or its first digits."""
    with Store.open(store, create=False) as opened:
        return opened.search.find_similar(incident, limit=limit)


def incident(incident: str, *, store: Place = None) -> StoredIncident:
    """Return an incident with its diagnosis, feedback and history."""
    with Store.open(store, create=False) as opened:
        return opened.incidents.get(incident)


def signature(signature_id: str, *, catalogs: Sequence[Path] = ()) -> Signature:
    """Return a signature of the shipped catalog or your own: meaning, impact, remediation and pattern."""
    known = {item.id: item for item in load(tuple(catalogs)).signatures}
    if signature_id not in known:
        import difflib

        near = difflib.get_close_matches(signature_id, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`triage catalog list` names them all"
        raise NotFoundError(f"the catalog has no signature {signature_id}", hint=hint)
    return known[signature_id]
