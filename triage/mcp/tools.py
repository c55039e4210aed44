"""The tools of `triage mcp`. The assistant reads the docstrings of the methods as descriptions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from triage import api, pipeline
from triage.base.errors import InputError, OptionError
from triage.base.options import Options
from triage.catalog.load import load
from triage.mcp import responses
from triage.store import Store, meaning_search, store_location

Paths = Annotated[
    list[str], Field(min_length=1, max_length=100, description="Files, directories or archives of one job.")
]
SearchText = Annotated[
    str, Field(min_length=1, max_length=1000, description='Words to search for; "quoted" words stay together.')
]
Incident = Annotated[str, Field(min_length=1, max_length=100, description="Id of an incident, from search.")]
Signature = Annotated[
    str, Field(min_length=1, max_length=200, description="Id of a signature, like cuda.out-of-memory.")
]
Limit = Annotated[int, Field(ge=1, le=50, description="Maximum number of results.")]


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools. Only files below `roots` are read; without `store` the store of the command line is used."""

    roots: tuple[Path, ...]
    options: Options = field(default_factory=Options)
    store: str | None = None

    def diagnose(self, paths: Paths) -> dict[str, Any]:
        """Find the rank and the line where a training job began to fail, the cause, and what to do. Changes nothing."""
        return self._respond(**responses.report(pipeline.ingest(self._resolve(paths), self.options), self._catalog()))

    def ingest(self, paths: Paths) -> dict[str, Any]:
        """Diagnose a job and store it, so that later searches find it. The same files are one incident."""
        diagnosis = pipeline.ingest(self._resolve(paths), self.options)
        with Store.open(self.store) as opened:
            stored = opened.incidents.add(diagnosis)
        report = responses.report(stored.diagnosis, self._catalog())
        return self._respond(incident=stored.id, new=stored.is_new, **report)

    def search(self, query: SearchText, limit: Limit = 10) -> dict[str, Any]:
        """Search past incidents and signatures of the catalog."""
        with self._open_store() as opened:
            signatures = list(self._catalog().values())
            index = meaning_search.build_index(signatures)
            numbers, hits = meaning_search.search_text(index, opened.search if opened else None, query, limit)
        return self._respond(
            catalog=[{"signature": signatures[number].id, "title": signatures[number].title} for number in numbers],
            incidents=[responses.search_hit(hit) for hit in hits],
        )

    def similar(self, incident: Incident, limit: Limit = 10) -> dict[str, Any]:
        """Find past incidents with the same cause as this one, with their feedback."""
        similar = api.similar(incident, store=self.store, limit=limit)
        return self._respond(similar=[responses.similar_incident(item) for item in similar])

    def incident(self, incident: Incident) -> dict[str, Any]:
        """Show a past incident: its diagnosis with evidence, and its feedback."""
        stored = api.incident(incident, store=self.store)
        feedback = [responses.feedback(item) for item in stored.feedback]
        report = responses.report(stored.diagnosis, self._catalog())
        return self._respond(incident=stored.incident.id, feedback=feedback, **report)

    def explain(self, paths: Paths, signature: Signature) -> dict[str, Any]:
        """Explain why a signature did or did not decide about a job: its clauses, their lines, and near misses."""
        return self._respond(**responses.explanation(pipeline.explain(self._resolve(paths), signature, self.options)))

    def signature(self, signature: Signature) -> dict[str, Any]:
        """Show a signature of the catalog: meaning, impact, what to do, references."""
        entry = api.signature(signature, catalogs=self.options.catalogs)
        fields = {name: getattr(entry, name) for name in ("role", "severity", "status", "revision")}
        return self._respond(signature=entry.id, **fields, **responses.advice(entry))

    def _resolve(self, paths: Sequence[str]) -> list[str]:
        """Return the real paths. Raises OptionError for a path outside the roots, InputError for a missing one."""
        for path in paths:
            real = Path(os.path.realpath(path))
            if not any(real.is_relative_to(root) for root in self.roots):
                allowed = ", ".join(map(str, self.roots))
                raise OptionError(
                    f"{path} is not below {allowed}",
                    hint="start `triage mcp` with --root DIR to allow other directories",
                )
            if not real.exists():
                raise InputError(f"{path}: no such file or directory", hint="give paths of this machine")
        return [os.path.realpath(path) for path in paths]

    def _catalog(self) -> dict[str, Any]:
        return {item.id: item for item in load(self.options.catalogs).signatures}

    @contextmanager
    def _open_store(self) -> Iterator[Store | None]:
        path = store_location(self.store)
        if path is None or not path.exists():
            yield None
            return
        with Store.open(self.store, create=False) as opened:
            yield opened

    @staticmethod
    def _respond(**fields: Any) -> dict[str, Any]:
        return {"notice": responses.NOTICE, **fields}
