"""`triage list`, `search`, `similar` and `stats`: what the store remembers, found again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from triage.cli import options

if TYPE_CHECKING:
    from triage.catalog.model import Signature as Entry
    from triage.model.store import Cluster
    from triage.store import Store
    from triage.store.search import Filter, Hit

CLUSTERS = 2000  # of more than these, those that matter most are compared by meaning

Format = Annotated[options.TableFormat, typer.Option("--format", "-f", help="How to write it.")]
Verdict = Annotated[options.Verdict | None, typer.Option("--verdict", help="Only these.", show_default=False)]
Signature = Annotated[
    str | None,
    typer.Option(
        "--signature",
        "-s",
        metavar="ID",
        help="Only where this signature matched.",
        autocompletion=options.signature_ids,
        show_default=False,
    ),
]
Cluster = Annotated[
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
    int | None, typer.Option("--rank", metavar="N", help="Only where this rank began it.", show_default=False)
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="WHEN", help="Failed since: 7d, 12h, 2025-11-21.", show_default=False)
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="Failed before, written likewise.", show_default=False)
]
JobName = Annotated[
    str | None,
    typer.Option("--job", metavar="TEXT", help="Only jobs with this in their name or path.", show_default=False),
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=100_000, help="At most so many.")]


def list_(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Words that they must hold.", show_default=False)
    ] = None,
    verdict: Verdict = None,
    signature: Signature = None,
    cluster: Cluster = None,
    domain: Domain = None,
    host: Host = None,
    rank: Rank = None,
    since: Since = None,
    until: Until = None,
    job: JobName = None,
    wrong: Annotated[
        bool, typer.Option("--wrong", help="Only those of which somebody said that they are wrong.")
    ] = False,
    limit: Limit = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="PLACE", help="Go on where a page ended (`next` in JSON).", show_default=False),
    ] = None,
    format: Format = options.TableFormat.text,  # noqa: A002
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
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
    from triage.cli import streams
    from triage.render import incidents

    streams.check(output)
    with options.stored(store) as opened:
        wanted = _filter(locals())
        found = opened.search.listed(wanted, limit=limit, after=after)
        total = opened.search.count(wanted)
        cursor = opened.search.cursor(found[-1]) if len(found) == limit else None
    if format is options.TableFormat.json:
        streams.deliver(incidents.listing_as_json(found, total, cursor), output, utf8=True)
    elif format is options.TableFormat.csv:
        streams.deliver(incidents.listing_as_csv(found), output, utf8=True)
    else:
        streams.deliver(
            incidents.listing(
                found, total, width=streams.width(width, output), color=streams.color(color.value, output)
            ),
            output,
        )


def search(
    text: Annotated[
        list[str], typer.Argument(metavar="TEXT...", help='Words; "in quotes" they stay together.', show_default=False)
    ],
    meaning: Annotated[bool, typer.Option("--meaning", help="By what is meant; needs the extra torch.")] = False,
    limit: Limit = 20,
    catalog: options.Catalogs = None,
    format: Format = options.TableFormat.text,  # noqa: A002
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """Search signatures, guides and stored incidents.

    What has all the words comes first; when nothing has, what has some of them. The last word may go on.
    With --meaning a description in your own words finds signatures, guides and clusters, and the incidents that they
    caused.

    \b
    Examples:
      triage search retry exceeded mlx5
      triage search --meaning "one machine lost its graphics card"
      triage search '"connection closed" node17'
      triage search pinned memory --format json
    """
    from triage.cli import lookup, streams
    from triage.render import incidents
    from triage.store import meaning as meant
    from triage.store.clusters import STANDING

    streams.check(output)
    words = " ".join(text)
    known = lookup.load(catalog)
    found: list[Hit] = []
    with _stored_if_any(store) as opened:
        if meaning:
            clusters = [] if opened is None else opened.clusters.listed(states=STANDING, limit=CLUSTERS)
            causes = meant.causes(known, clusters, words, limit)
            found = [] if opened is None else opened.search.caused([item.id for item in causes], limit=limit)
            others = [_row(item) for item in causes]
        else:
            numbers, found = meant.everywhere(meant.index(known), opened.search if opened else None, words, limit)
            others = [_row(known[number]) for number in numbers]
    if format is options.TableFormat.json:
        streams.deliver(incidents.hits_as_json(found, others, words), output, utf8=True)
    elif format is options.TableFormat.csv:
        streams.deliver(incidents.hits_as_csv(found, others), output, utf8=True)
    else:
        columns, painted = streams.width(width, output), streams.color(color.value, output)
        streams.deliver(incidents.hits(found, others, words, width=columns, color=painted), output)


def similar(
    id: options.IncidentId,  # noqa: A002
    limit: Limit = 20,
    format: Format = options.TableFormat.text,  # noqa: A002
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """Find incidents with the same cause, and what was done then.

    Those that somebody spoke about come first, then those on the same host, then the latest.

    \b
    Example:
      triage similar i-4f2a9c
    """
    from triage.cli import streams
    from triage.render import incidents

    streams.check(output)
    with options.stored(store) as opened:
        found = opened.search.similar(id, limit=limit)
    if format is options.TableFormat.json:
        streams.deliver(incidents.similar_as_json(id, found), output, utf8=True)
    elif format is options.TableFormat.csv:
        streams.deliver(incidents.similar_as_csv(found), output, utf8=True)
    else:
        columns, painted = streams.width(width, output), streams.color(color.value, output)
        streams.deliver(incidents.similar(id, found, width=columns, color=painted), output)


def stats(
    verdict: Verdict = None,
    signature: Signature = None,
    cluster: Cluster = None,
    domain: Domain = None,
    host: Host = None,
    rank: Rank = None,
    since: Since = None,
    until: Until = None,
    job: JobName = None,
    limit: Limit = 20,
    format: Format = options.TableFormat.text,  # noqa: A002
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """Count incidents by cause, week, and hosts and devices that return.

    A host or device comes back when it was to blame more than once.

    \b
    Examples:
      triage stats --since 30d
      triage stats --domain gpu --format csv
    """
    from triage.cli import streams
    from triage.render import incidents

    streams.check(output)
    with options.stored(store) as opened:
        found = opened.search.sums(_filter(locals()), limit=limit)
    if format is options.TableFormat.json:
        streams.deliver(incidents.sums_as_json(found), output, utf8=True)
    elif format is options.TableFormat.csv:
        streams.deliver(incidents.sums_as_csv(found), output, utf8=True)
    else:
        streams.deliver(
            incidents.sums(found, width=streams.width(width, output), color=streams.color(color.value, output)), output
        )


def _filter(given: dict[str, object]) -> Filter:
    """The filter from the options of a command, by their names."""
    from triage.store.search import Filter

    now = time.time()
    values: dict[str, Any] = {
        name: given.get(name) for name in ("signature", "cluster", "domain", "host", "rank", "job")
    }
    values |= {
        name: options.moment(str(given[name]), now) for name in ("since", "until") if given.get(name) is not None
    }
    verdict, text = given.get("verdict"), given.get("text")
    return Filter(
        verdict=verdict.value if isinstance(verdict, options.Verdict) else None,
        text=" ".join(text) if isinstance(text, list) and text else None,
        wrong=bool(given.get("wrong")),
        **values,
    )


@contextmanager
def _stored_if_any(given: Path | None) -> Iterator[Store | None]:
    """The store, or None where there is none yet: the catalog can be searched all the same."""
    from triage.store import Store, place

    path = place(given)
    if path is None or (given is None and not path.exists()):
        yield None
        return
    with Store.open(given, create=False) as opened:
        yield opened


def _row(item: Entry | Cluster) -> tuple[str, str, str]:
    """(kind, id, title)"""
    from triage.model.store import Cluster

    if isinstance(item, Cluster):
        return "cluster", item.id, item.name or item.title
    return ("guide" if item.role == "guide" else "signature"), item.id, item.title
