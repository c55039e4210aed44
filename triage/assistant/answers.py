"""The tools: each takes what an assistant asks and gives a dict. The docstrings are what the assistant reads about
them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from triage import api, pipeline
from triage.assistant import shapes
from triage.base.errors import InputError, OptionError
from triage.base.options import Options
from triage.catalog.load import load
from triage.store import Store, meaning, place

Paths = Annotated[
    list[str], Field(min_length=1, max_length=100, description="Files, directories or archives of one job.")
]
Words = Annotated[str, Field(min_length=1, max_length=1000, description='Words; "in quotes" they stay together.')]
Incident = Annotated[str, Field(min_length=1, max_length=100, description="Id of an incident, as search gives it.")]
Signature = Annotated[
    str, Field(min_length=1, max_length=200, description="Id of a signature, like cuda.out-of-memory.")
]
Limit = Annotated[int, Field(ge=1, le=50, description="At most so many.")]


@dataclass(frozen=True, slots=True)
class Answers:
    """`roots`: only what lies below these directories is read. `store`: None is the one of the command line."""

    roots: tuple[Path, ...]
    options: Options = field(default_factory=Options)
    store: Path | None = None

    def diagnose(self, paths: Paths) -> dict[str, Any]:
        """Say on which rank and line a training job began to fail, what it is and what to do. Reads the files and
        changes nothing.
        """
        return self._told(**shapes.report(pipeline.ingest(self._within(paths), self.options), self._catalog()))

    def ingest(self, paths: Paths) -> dict[str, Any]:
        """Diagnose a job and remember it in the store, so that it is found again. The same files are one incident."""
        diagnosis = pipeline.ingest(self._within(paths), self.options)
        with Store.open(self.store) as opened:
            stored = opened.incidents.add(diagnosis)
        return self._told(incident=stored.id, new=stored.new, **shapes.report(stored.diagnosis, self._catalog()))

    def search(self, words: Words, limit: Limit = 10) -> dict[str, Any]:
        """Find past incidents and signatures of the catalog by words."""
        with self._opened() as opened:
            known = list(self._catalog().values())
            numbers, hits = meaning.everywhere(meaning.index(known), opened.search if opened else None, words, limit)
        found = [
            {
                **shapes.row(hit.incident),
                "snippet": {"untrusted": shapes.text(hit.snippet.replace("\x02", "").replace("\x03", ""))},
            }
            for hit in hits
        ]
        return self._told(
            catalog=[{"signature": known[number].id, "title": known[number].title} for number in numbers],
            incidents=found,
        )

    def similar(self, incident: Incident, limit: Limit = 10) -> dict[str, Any]:
        """Find past incidents with the same cause as this one, and what people said and did then."""
        found = api.similar(incident, store=self.store, limit=limit)
        rows = [
            {
                **shapes.row(item.incident),
                "why": {"untrusted": shapes.text(item.why)},
                "said": {"untrusted": [shapes.text(s) for s in item.said]},
            }
            for item in found
        ]
        return self._told(similar=rows)

    def incident(self, incident: Incident) -> dict[str, Any]:
        """Show a past incident: its diagnosis with evidence, and what people said of it."""
        known = api.incident(incident, store=self.store)
        said = [shapes.said(item) for item in known.feedback]
        return self._told(incident=known.incident.id, feedback=said, **shapes.report(known.diagnosis, self._catalog()))

    def explain(self, paths: Paths, signature: Signature) -> dict[str, Any]:
        """Say why a signature did or did not decide about a job: which clauses held, on which lines, and what came
        near.
        """
        found = pipeline.explain(self._within(paths), signature, self.options)
        return self._told(
            signature=found.signature,
            matched=found.matched,
            clauses=[{"text": text, "held": held, "hits": hits} for text, held, hits in found.clauses],
            evidence=shapes.first(found.evidence, shapes.FINDINGS, shapes.proof),
            near_misses=[
                {"untrusted": {"place": where, "text": shapes.text(text)}}
                for where, text in found.near_misses[: shapes.FINDINGS]
            ],
            outcome={"untrusted": shapes.text(found.outcome)},
        )

    def signature(self, signature: Signature) -> dict[str, Any]:
        """Show what the catalog knows of a signature: meaning, impact, what to do, references."""
        found = api.signature(signature, catalogs=self.options.catalogs)
        kind = {
            "signature": found.id,
            "role": found.role,
            "severity": found.severity,
            "status": found.status,
            "revision": found.revision,
        }
        return self._told(**kind, **shapes.advice(found))

    def _within(self, paths: Sequence[str]) -> list[str]:
        """The paths, if they lie below the roots. Raises OptionError."""
        for path in paths:
            real = Path(os.path.realpath(path))
            if not any(real.is_relative_to(root) for root in self.roots):
                allowed = ", ".join(map(str, self.roots))
                raise OptionError(
                    f"{path} does not lie below {allowed}",
                    hint="start `triage mcp` with --root DIR for other directories",
                )
            if not real.exists():
                raise InputError(
                    f"{path}: there is no such file or directory", hint="give paths as this machine has them"
                )
        return [os.path.realpath(path) for path in paths]

    def _catalog(self) -> dict[str, Any]:
        return {item.id: item for item in load(self.options.catalogs).signatures}

    @contextmanager
    def _opened(self) -> Iterator[Store | None]:
        path = place(self.store)
        if path is None or not path.exists():
            yield None
            return
        with Store.open(self.store, create=False) as opened:
            yield opened

    @staticmethod
    def _told(**answer: Any) -> dict[str, Any]:
        return {"notice": shapes.NOTICE, **answer}
