"""How the catalog did on many jobs, as tables or as JSON: the answer of `triage catalog rate`."""

from __future__ import annotations

import json
from typing import Any

from triage.catalog.rate import Rated, Rating
from triage.render.json import escaped
from triage.render.layout import Paint, columns, labelled
from triage.render.safe import clip, safe_line
from triage.render.text import NARROWEST, WIDTH
from triage.render.words import plural

SCHEMA = "triage.rating/1"


def as_json(rating: Rating) -> str:
    """One JSON object: sums, signatures, jobs."""
    agree, judged = rating.judged()
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "jobs": len(rating.jobs),
        "verdicts": rating.verdicts(),
        "truth": {"judged": judged, "agree": agree, "disagree": judged - agree},
        "signatures": [{"signature": name, "root": root, "matched": seen} for name, root, seen in rating.hits()],
        "feedback": [{"said": name, "agree": agree, "wrong": wrong} for name, agree, wrong in rating.said],
        "results": [
            {
                "job": job.name,
                "verdict": job.verdict,
                "root": job.root,
                "ranks": list(job.ranks),
                "cluster": job.cluster,
                "headline": job.headline,
                "signatures": list(job.signatures),
                "agrees": job.agrees,
                "disagreement": job.disagreement,
            }
            for job in rating.jobs
        ],
    }
    return escaped(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


def as_text(rating: Rating, *, width: int | None = None, color: bool = False) -> str:
    """Sums, then signatures by how often they were the root, then the jobs that ask for a look."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    sections = [_sums(rating, room, paint), _signatures(rating, room, paint)]
    sections.append(_jobs("Unknown jobs", [job for job in rating.jobs if job.verdict == "unknown"], room, paint))
    sections.append(_jobs("Unreadable", [job for job in rating.jobs if job.verdict == "unreadable"], room, paint))
    wrong = [
        f"- {safe_line(job.name)}: {safe_line(job.disagreement or job.headline)}"
        for job in rating.jobs
        if job.agrees is False
    ]
    said = [f"- {safe_line(name)}: {wrong} wrong, {agree} right" for name, agree, wrong in rating.said]
    sections.append([paint("People said", "bold"), *labelled("", said, room, paint, margin=2)] if said else [])
    sections.append(
        [paint("Disagree with the truth", "bold"), *labelled("", wrong, room, paint, margin=2)] if wrong else []
    )
    return "\n\n".join("\n".join(line.rstrip() for line in section) for section in sections if section) + "\n"


def _sums(rating: Rating, room: int, paint: Paint) -> list[str]:
    said = ", ".join(
        f"{count} {verdict}" for verdict, count in rating.verdicts().items() if count or verdict != "unreadable"
    )
    lines = labelled("Jobs", [f"{len(rating.jobs)}: {said}"], room, paint, "bold")
    agree, judged = rating.judged()
    return [*lines, *labelled("Truth", [f"{agree} of {judged} agree"], room, paint, "bold")] if judged else lines


def _signatures(rating: Rating, room: int, paint: Paint) -> list[str]:
    rows = rating.hits()
    wide = max((len(name) for name, _, _ in rows), default=0)
    if not rows:
        return []
    head = paint(f"{'Signature':<{wide}}  {'root':>5}  {'seen':>5}", "bold")
    return [head, *(f"{safe_line(name):<{wide}}  {root:>5}  {seen:>5}" for name, root, seen in rows)]


def _jobs(heading: str, jobs: list[Rated], room: int, paint: Paint) -> list[str]:
    """Name, cluster and headline; jobs of one cluster stand together, the largest cluster first."""
    if not jobs:
        return []
    size = {job.cluster: sum(other.cluster == job.cluster for other in jobs) for job in jobs}
    ordered = sorted(jobs, key=lambda job: (-size[job.cluster], job.cluster or "~", job.name))
    wide = min(max(columns(safe_line(job.name)) for job in jobs), room // 2)
    lines = []
    for job in ordered:
        start = f"  {clip(safe_line(job.name), wide):<{wide}}  {job.cluster or '-':<8}  "
        headline, left = safe_line(job.headline), max(room - columns(start), 8)
        lines.append(start + (headline if len(headline) <= left else headline[: left - 1] + "…"))
    return [paint(f"{heading} ({plural(len(jobs), 'job')})", "bold"), *lines]
