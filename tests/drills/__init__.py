"""Drills: faults at random moments, and after each of them the store has exactly what was reported as stored."""

from __future__ import annotations

from tests.drills import ingest, outbox, serve, store, watch
from tests.drills.site import Drill

DRILLS: tuple[Drill, ...] = (*ingest.DRILLS, *store.DRILLS, *serve.DRILLS, *outbox.DRILLS, *watch.DRILLS)
