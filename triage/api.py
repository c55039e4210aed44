"""The questions of `import triage` to the store and the catalog; `ingest` and `explain` stand in the package itself.

`store` is the file of a store; without it the one that the command line uses. Raises StoreError or NotFoundError where
there is none.
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
    from triage.model.diagnosis import Diagnosis
    from triage.model.store import Remembered
    from triage.store.search import Hit, Likeness

Place = str | os.PathLike[str] | None


def remember(diagnosis: Diagnosis, store: Place = None) -> Diagnosis:
    """Keep a diagnosis in the store, made if need be. Gives it as it is kept: clusters have the ids of the store."""
    with Store.open(store) as opened:
        return opened.incidents.add(diagnosis).diagnosis


def search(words: str, *, store: Place = None, limit: int = 20) -> list[Hit]:
    """Incidents whose diagnosis has all the words, else some of them, best first."""
    with Store.open(store, create=False) as opened:
        return opened.search.text(words, limit=limit)


def similar(incident: str, *, store: Place = None, limit: int = 20) -> list[Likeness]:
    """Incidents of the same cause and what people said of them. `incident` is an id or its first digits."""
    with Store.open(store, create=False) as opened:
        return opened.search.similar(incident, limit=limit)


def incident(incident: str, *, store: Place = None) -> Remembered:
    """One incident: its diagnosis, what people said, what it was held for before."""
    with Store.open(store, create=False) as opened:
        return opened.incidents.get(incident)


def signature(signature_id: str, *, catalogs: Sequence[Path] = ()) -> Signature:
    """What the catalog, with those of your own, holds about a signature: meaning, impact, what to do, and what it looks
    for.
    """
    known = {item.id: item for item in load(tuple(catalogs)).signatures}
    if signature_id not in known:
        import difflib

        near = difflib.get_close_matches(signature_id, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`triage catalog list` names them all"
        raise NotFoundError(f"the catalog has no signature {signature_id}", hint=hint)
    return known[signature_id]
