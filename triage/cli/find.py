"""`triage causes`, `list`, `search`, `similar` and `stats`: search the stored incidents."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from triage.cli import lookup, options, streams

if TYPE_CHECKING:
    from triage.catalog.model import Signature
    from triage.model.store import Cluster
    from triage.store import Store
    from triage.store.search import Filter, SearchHit

MAX_CLUSTERS = 2000  # clusters that are compared by meaning, the most important ones first

VerdictOption = Annotated[
    Literal["known", "unknown", "inconclusive", "clean"] | None,
    typer.Option("--verdict", help="Only this verdict.", show_default=False),
]
SignatureOption = Annotated[
    str | None,
    typer.Option(
        "--signature",
        "-s",
        metavar="ID",
        help="Only where this signature matched.",
        autocompletion=options.complete_signature_ids,
        show_default=False,
    ),
]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", metavar="ID", help="Only of this cluster.", show_default=False)
]
Domain = Annotated[
    str | None,
    typer.Option("--domain", metavar="NAME", help="Only causes of this domain, like nccl.", show_default=False),
]
Host = Annotated[
    str | None, typer.Option("--host", metavar="NAME", help="Only jobs that ran on this host.", show_default=False)
]
Rank = Annotated[
    int | None, typer.Option("--rank", metavar="N", help="Only with this rank as root cause.", show_default=False)
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="WHEN", help="Failed since: 7d, 12h, 2025-11-21.", show_default=False)
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="Failed before, in the same form.", show_default=False)
]
JobName = Annotated[
    str | None,
    typer.Option("--job", metavar="TEXT", help="Only jobs with this in their name or path.", show_default=False),
]
Facts = Annotated[
    list[str] | None,
    typer.Option(
        "--fact",
        metavar="NAME=VALUE",
        help="Only jobs with this fact, as partition=a100 or torch=2.5.1; may be repeated.",
        show_default=False,
    ),
]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="PLACE", help="Continue after a page (`next` in JSON).", show_default=False),
]
ListText = Annotated[
    list[str] | None, typer.Argument(metavar="[TEXT]...", help="Words to search for.", show_default=False)
]
SearchText = Annotated[
    list[str],
    typer.Argument(metavar="TEXT...", help='Words to search for; "quoted" words stay together.', show_default=False),
]
CauseKind = Annotated[
    Literal["signature", "cluster"] | None,
    typer.Option("--kind", help="Only signatures, or only clusters of unknown failures.", show_default=False),
]
CauseHost = Annotated[
    str | None, typer.Option("--host", metavar="NAME", help="Only causes that this host failed of.", show_default=False)
]
CauseStatus = Annotated[
    Literal["waiting", "open", "acknowledged", "fixed", "regressed", "ignored"] | None,
    typer.Option(
        "--status", help="Only with this status; waiting is open, acknowledged or regressed.", show_default=False
    ),
]
Assignee = Annotated[
    str | None, typer.Option("--assignee", metavar="NAME", help="Only of this person.", show_default=False)
]
New = Annotated[
    str | None,
    typer.Option(
        "--new", metavar="WHEN", help="Only causes that first came since: 7d, 12h, 2025-11-21.", show_default=False
    ),
]
CauseOrder = Annotated[
    Literal["week", "last", "count", "first"],
    typer.Option("--order", help="First: most this week, latest failure, most in all, or newest cause."),
]


def causes(
    text: ListText = None,
    kind: CauseKind = None,
    domain: Domain = None,
    host: CauseHost = None,
    status: CauseStatus = None,
    assignee: Assignee = None,
    new: New = None,
    order: CauseOrder = "week",
    limit: options.Limit = 50,
    format: options.TableFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """List what ended jobs: signatures and clusters, with the failures of this week and in all.

    Times and weeks are those of the failures. A time with a question mark is that of the ingest, because the files have
    none. `triage list --signature ID` or `--cluster ID` lists the incidents.

    \b
    Examples:
      triage causes
      triage causes --kind cluster --order first
      triage causes --new 1d --status waiting
      triage causes --host node17 --format json
    """
    from triage.render import causes as rendered
    from triage.store.causes import CauseFilter

    streams.check_output(output)
    with options.open_store(store) as opened:
        since = options.parse_time(new, time.time()) if new is not None else None
        condition = CauseFilter(kind, domain, host, " ".join(text or ()) or None, status, assignee, since)
        page = opened.causes.list_causes(condition, order=order, limit=limit)
    streams.write_format(
        format,
        output,
        json=lambda: rendered.listing_as_json(page.causes, page.total),
        csv=lambda: rendered.listing_as_csv(page.causes),
        text=lambda: rendered.listing(page.causes, page.total, **streams.text_style(width, color, output)),
    )


def list_(
    text: ListText = None,
    verdict: VerdictOption = None,
    signature: SignatureOption = None,
    cluster: ClusterOption = None,
    domain: Domain = None,
    host: Host = None,
    rank: Rank = None,
    since: Since = None,
    until: Until = None,
    job: JobName = None,
    wrong: Annotated[bool, typer.Option("--wrong", help="Only diagnoses that were marked as wrong.")] = False,
    fact: Facts = None,
    limit: options.Limit = 50,
    after: After = None,
    format: options.TableFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """List the incidents of the store, the latest failure first.

    \b
    Examples:
      triage list --since 7d --verdict unknown
      triage list --host node17 --format csv -o node17.csv
      triage list --signature cuda.out-of-memory "optimizer step"
    """
    from triage.render import incidents

    streams.check_output(output)
    with options.open_store(store) as opened:
        condition = _build_filter(locals())
        rows = opened.search.list_incidents(condition, limit=limit, after=after)
        total = opened.search.count_incidents(condition)
        cursor = opened.search.cursor_after(rows[-1]) if len(rows) == limit else None
    streams.write_format(
        format,
        output,
        json=lambda: incidents.listing_as_json(rows, total, cursor),
        csv=lambda: incidents.listing_as_csv(rows),
        text=lambda: incidents.listing(rows, total, **streams.text_style(width, color, output)),
    )


def search(
    text: SearchText,
    meaning: Annotated[bool, typer.Option("--meaning", help="Search by meaning; needs the extra torch.")] = False,
    limit: options.Limit = 20,
    catalog: options.Catalogs = None,
    format: options.TableFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """Search signatures, guides and stored incidents.

    Results with all words come first; if there are none, results with some of the words. The last word may be the
    start of a longer one. With --meaning, a description in your own words finds signatures, guides and clusters, and
    the incidents they caused.

    \b
    Examples:
      triage search retry exceeded mlx5
      triage search --meaning "one machine lost its graphics card"
      triage search '"connection closed" node17'
      triage search pinned memory --format json
    """
    from triage.render import incidents
    from triage.store import meaning_search
    from triage.store.clusters import STANDING

    streams.check_output(output)
    query = " ".join(text)
    signatures = lookup.load_signatures(catalog)
    hits: list[SearchHit] = []
    with _open_store_if_any(store) as opened:
        if meaning:
            clusters = [] if opened is None else opened.clusters.list_clusters(states=STANDING, limit=MAX_CLUSTERS)
            causes = meaning_search.search_by_meaning(signatures, clusters, query, limit)
            hits = [] if opened is None else opened.search.list_by_cause([item.id for item in causes], limit=limit)
            others = [_as_row(item) for item in causes]
        else:
            index = meaning_search.build_index(signatures)
            numbers, hits = meaning_search.search_text(index, opened.search if opened else None, query, limit)
            others = [_as_row(signatures[number]) for number in numbers]
    streams.write_format(
        format,
        output,
        json=lambda: incidents.hits_as_json(hits, others, query),
        csv=lambda: incidents.hits_as_csv(hits, others),
        text=lambda: incidents.hits(hits, others, query, **streams.text_style(width, color, output)),
    )


def similar(
    id: options.IncidentId,  # noqa: A002
    limit: options.Limit = 20,
    format: options.TableFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """Find incidents with the same cause, with their feedback.

    Incidents with feedback come first, then those on the same host, then the latest.

    \b
    Example:
      triage similar i-4f2a9c
    """
    from triage.render import incidents

    streams.check_output(output)
    with options.open_store(store) as opened:
        rows = opened.search.find_similar(id, limit=limit)
    streams.write_format(
        format,
        output,
        json=lambda: incidents.similar_as_json(id, rows),
        csv=lambda: incidents.similar_as_csv(rows),
        text=lambda: incidents.similar(id, rows, **streams.text_style(width, color, output)),
    )


def stats(
    verdict: VerdictOption = None,
    signature: SignatureOption = None,
    cluster: ClusterOption = None,
    domain: Domain = None,
    host: Host = None,
    rank: Rank = None,
    since: Since = None,
    until: Until = None,
    job: JobName = None,
    limit: options.Limit = 20,
    format: options.TableFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """Count incidents by cause and week, and list hosts that fail repeatedly.

    A host or device is listed if it was the root cause more than once.

    \b
    Examples:
      triage stats --since 30d
      triage stats --domain gpu --format csv
    """
    from triage.render import incidents

    streams.check_output(output)
    with options.open_store(store) as opened:
        totals = opened.search.compute_stats(_build_filter(locals()), limit=limit)
    streams.write_format(
        format,
        output,
        json=lambda: incidents.sums_as_json(totals),
        csv=lambda: incidents.sums_as_csv(totals),
        text=lambda: incidents.sums(totals, **streams.text_style(width, color, output)),
    )


def _build_filter(arguments: dict[str, Any]) -> Filter:
    """Return the filter of a command from its arguments by name."""
    from triage.evidence.job_facts import parse_labels
    from triage.store.search import Filter

    now = time.time()
    values = {name: arguments[name] for name in ("signature", "cluster", "domain", "host", "rank", "job")}
    for name in ("since", "until"):
        if arguments[name] is not None:
            values[name] = options.parse_time(arguments[name], now)
    text, facts = arguments.get("text"), parse_labels(arguments.get("fact") or ())
    return Filter(
        verdict=arguments["verdict"],
        text=" ".join(text) if text else None,
        wrong=arguments.get("wrong", False),
        facts=tuple((name, text) for name, texts in facts.items() for text in texts),
        **values,
    )


@contextmanager
def _open_store_if_any(path: str | None) -> Iterator[Store | None]:
    """Open the store, or yield None if there is none yet: the catalog can be searched without it."""
    from triage.store import Store, store_location

    location = store_location(path)
    if location is None or (path is None and not location.exists()):
        yield None
        return
    with Store.open(path, create=False) as opened:
        yield opened


def _as_row(item: Signature | Cluster) -> tuple[str, str, str]:
    """Return (kind, id, title)."""
    from triage.model.store import Cluster

    if isinstance(item, Cluster):
        return "cluster", item.id, item.name or item.title
    return ("guide" if item.role == "guide" else "signature"), item.id, item.title
