"""How well the catalog diagnoses many jobs, as tables or JSON, for `triage catalog rate`."""

from __future__ import annotations

from typing import Any

from triage.catalog.rating import RatedJob, Rating
from triage.render.json import dump_json
from triage.render.phrases import format_count
from triage.render.sanitize import clip, sanitize_line
from triage.render.terminal import Paint, columns, join_sections, labelled
from triage.render.text import NARROWEST, WIDTH

SCHEMA = "triage.rating/1"


def as_json(rating: Rating) -> str:
    """Return one JSON object: sums, signatures, jobs."""
    agree, judged = rating.count_agreements()
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "jobs": len(rating.jobs),
        "verdicts": rating.count_verdicts(),
        "truth": {"judged": judged, "agree": agree, "disagree": judged - agree},
        "signatures": [
            {"signature": name, "root": root, "matched": matched} for name, root, matched in rating.count_hits()
        ],
        "feedback": [{"said": name, "agree": agree, "wrong": wrong} for name, agree, wrong in rating.feedback],
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
    return dump_json(document)


def as_text(rating: Rating, *, width: int | None = None, color: bool = False) -> str:
    """Return sums, then signatures by how often they were the root cause, then the jobs to look at."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    wrong = [
        f"- {sanitize_line(job.name)}: {sanitize_line(job.disagreement or job.headline)}"
        for job in rating.jobs
        if job.agrees is False
    ]
    opinions = [f"- {sanitize_line(name)}: {wrong} wrong, {agree} right" for name, agree, wrong in rating.feedback]
    return join_sections(
        [
            _sums(rating, room, paint),
            _signatures(rating, room, paint),
            _jobs("Unknown jobs", [job for job in rating.jobs if job.verdict == "unknown"], room, paint),
            _jobs("Unreadable", [job for job in rating.jobs if job.verdict == "unreadable"], room, paint),
            [paint("Feedback", "bold"), *labelled("", opinions, room, paint, margin=2)] if opinions else [],
            [paint("Disagree with the truth", "bold"), *labelled("", wrong, room, paint, margin=2)] if wrong else [],
        ]
    )


def _sums(rating: Rating, room: int, paint: Paint) -> list[str]:
    verdicts = ", ".join(
        f"{count} {verdict}" for verdict, count in rating.count_verdicts().items() if count or verdict != "unreadable"
    )
    lines = labelled("Jobs", [f"{len(rating.jobs)}: {verdicts}"], room, paint, "bold")
    agree, judged = rating.count_agreements()
    return [*lines, *labelled("Truth", [f"{agree} of {judged} agree"], room, paint, "bold")] if judged else lines


def _signatures(rating: Rating, room: int, paint: Paint) -> list[str]:
    rows = rating.count_hits()
    wide = max((len(name) for name, _, _ in rows), default=0)
    if not rows:
        return []
    head = paint(f"{'Signature':<{wide}}  {'root':>5}  {'matched':>5}", "bold")
    return [head, *(f"{sanitize_line(name):<{wide}}  {root:>5}  {matched:>5}" for name, root, matched in rows)]


def _jobs(heading: str, jobs: list[RatedJob], room: int, paint: Paint) -> list[str]:
    """Return name, cluster and headline of each job, the jobs of the largest cluster first."""
    if not jobs:
        return []
    size = {job.cluster: sum(other.cluster == job.cluster for other in jobs) for job in jobs}
    ordered = sorted(jobs, key=lambda job: (-size[job.cluster], job.cluster or "~", job.name))
    wide = min(max(columns(sanitize_line(job.name)) for job in jobs), room // 2)
    lines = []
    for job in ordered:
        start = f"  {clip(sanitize_line(job.name), wide):<{wide}}  {job.cluster or '-':<8}  "
        headline, left = sanitize_line(job.headline), max(room - columns(start), 8)
        lines.append(start + (headline if len(headline) <= left else headline[: left - 1] + "…"))
    return [paint(f"{heading} ({format_count(len(jobs), 'job')})", "bold"), *lines]
