"""`triage clusters`: curate failures that no signature matches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from triage.base.errors import OptionError
from triage.cli import lookup, options, streams

if TYPE_CHECKING:
    from triage.catalog.wording_draft import WordingDraft
    from triage.clusters import NearestCluster
    from triage.model import Cluster, Evidence
    from triage.store import Store


Engine = Literal["wording", "meaning", "none"]
Id = Annotated[str, typer.Argument(metavar="ID", help="The cluster, like u-7f3a9c, or its name.", show_default=False)]
Because = Annotated[str, typer.Option("--because", "-b", metavar="TEXT", help="The reason.", show_default=False)]
StateOption = Annotated[
    Literal["waiting", "open", "named", "ignored", "promoted", "merged", "all"],
    typer.Option("--state", help="Only this state; waiting means open or named."),
]
Near = Annotated[Engine, typer.Option("--near", help="Find clusters of similar wording, of similar meaning, or none.")]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="What is known about it.", show_default=False)]
Target = Annotated[
    str | None, typer.Argument(metavar="[CLUSTER]", help="The target; default: a new cluster.", show_default=False)
]
SameClusters = Annotated[
    list[str], typer.Argument(metavar="ID ID...", help="Clusters of the same failure.", show_default=False)
]
Keys = Annotated[
    list[str],
    typer.Option("--key", "-k", metavar="KEY", help="A fingerprint to move; may be repeated.", show_default=False),
]
Other = Annotated[str, typer.Argument(metavar="OTHER", help="A cluster of another failure.", show_default=False)]
NewSignature = Annotated[
    str, typer.Argument(metavar="SIGNATURE", help="The id of the new signature: <domain>.<slug>.", show_default=False)
]
Title = Annotated[
    str | None,
    typer.Option(
        "--title", "-t", metavar="TEXT", help="What happened. Default: the cluster's name.", show_default=False
    ),
]

LogOf = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Only of this cluster or incident.", show_default=False)
]
EntryNumber = Annotated[
    int, typer.Argument(metavar="N", help="The number of the entry in the log.", show_default=False)
]


def list_(
    state: StateOption = "waiting",
    limit: options.Limit = 50,
    format: options.TableFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """List clusters, the most important first: growing, recent, many jobs, many ranks.

    \b
    Examples:
      triage clusters list
      triage clusters list --state ignored --format json
    """
    from triage.render import clusters
    from triage.store.clusters import OPEN, STATES

    streams.check_output(output)
    states = {"waiting": OPEN, "all": STATES}.get(state, (state,))
    with options.open_store(store) as opened:
        rows = opened.clusters.list_clusters(states=states, limit=limit)
    streams.write_format(
        format,
        output,
        json=lambda: clusters.listing_as_json(rows),
        csv=lambda: clusters.listing_as_csv(rows),
        text=lambda: clusters.listing(rows, **streams.text_style(width, color, output)),
    )


def show(
    id: Id,  # noqa: A002
    engine: Near = "wording",
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """Show a cluster: fingerprints, lines, near signatures and clusters, incidents, log.

    Near clusters are suggestions, with the words in which they differ; decide with `merge` or `reject`. Where the lines
    look like a new wording of a signature, the change of its file is drafted.

    \b
    Examples:
      triage clusters show u-7f3a9c
      triage clusters show u-7f3a9c --near meaning
    """
    from triage.render import clusters
    from triage.store.search import Filter

    streams.check_output(output)
    with options.open_store(store) as opened:
        cluster = opened.clusters.get(id)
        exemplars = opened.clusters.list_exemplars(cluster.id)
        members = opened.search.list_incidents(Filter(cluster=cluster.id), limit=20)
        entries = opened.audit.list_entries(subject=cluster.id)
        near, note = _find_near(opened, cluster.id, engine)
        reasons = opened.clusters.list_reasons(cluster.id)
    wordings = _draft_wordings([fact for _, _, facts in exemplars for fact in facts])
    details = clusters.ClusterDetails(cluster, exemplars, members, entries, reasons, near, note, wordings)
    streams.write_format(
        format,
        output,
        json=lambda: clusters.page_as_json(details),
        text=lambda: clusters.page(details, **streams.text_style(width, color, output)),
    )


def _draft_wordings(facts: Sequence[Evidence]) -> tuple[WordingDraft, ...]:
    from triage.catalog.near_misses import NearMissIndex
    from triage.catalog.wording_draft import draft_wordings
    from triage.cli import lookup

    texts = list(dict.fromkeys(fact.text for fact in facts))
    return draft_wordings(texts, NearMissIndex(lookup.load_signatures(())))


def _find_near(opened: Store, cluster: str, engine: Engine) -> tuple[list[tuple[NearestCluster, Cluster]], str]:
    """Return near clusters and a note.

    Without the package for wording, the default, the note says so; for meaning, which was asked for, it is an error.
    """
    from triage.clusters.suggestions import tfidf

    if engine == "none":
        return [], ""
    if engine == "meaning":
        from triage.clusters import meaning

        near = opened.clusters.find_near(cluster, similarity=meaning.similarity)
    else:
        try:
            near = opened.clusters.find_near(cluster, similarity=tfidf)
        except OptionError as error:
            return [], f"{error.message} ({error.hint})"
    return [(item, opened.clusters.get(item.cluster)) for item in near], ""


def name(
    id: Id,  # noqa: A002
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is, in a few words.", show_default=False)],
    note: Note = "",
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Give a cluster a name; every incident in it gets this name.

    \b
    Example:
      triage clusters name u-7f3a9c "Tokenizer file is gone"
    """
    with options.open_store(store) as opened:
        entry = opened.cluster_actions.name(id, name, actor=options.actor_name(by), note=note)
        _confirm(f"cluster {opened.clusters.find_id(id)} named {name!r}", entry)


def assign(
    incident: options.IncidentId,
    into: Target = None,
    because: Because = "",
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Move the failure of an incident to another cluster, or to a new one.

    All incidents with the same fingerprint move too, also future ones.

    \b
    Examples:
      triage clusters assign i-4f2a9c u-7f3a9c
      triage clusters assign i-4f2a9c
    """
    with options.open_store(store) as opened:
        number, actor = opened.incidents.find_number(incident), options.actor_name(by)
        entry, target = opened.cluster_actions.assign(number, into, actor=actor, because=because)
        _confirm(f"moved to {target}", entry)


def merge(ids: SameClusters, because: Because = "", by: options.By = None, store: options.StoreFile = None) -> None:
    """Merge several clusters. The oldest id stays, the others point to it.

    \b
    Example:
      triage clusters merge u-7f3a9c u-00c41d
    """
    with options.open_store(store) as opened:
        entry, target = opened.cluster_actions.merge(ids, actor=options.actor_name(by), because=because)
        _confirm(f"merged into {target}", entry)


def split(
    id: Id,  # noqa: A002
    key: Keys,
    because: Because = "",
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Move fingerprints of a cluster to a new one, permanently.

    `triage clusters show` lists the fingerprints.

    \b
    Example:
      triage clusters split u-7f3a9c --key 1:9a41
    """
    with options.open_store(store) as opened:
        entry, target = opened.cluster_actions.split(id, key, actor=options.actor_name(by), because=because)
        _confirm(f"moved to {target}", entry)


def reject(
    one: Id, other: Other, because: Because = "", by: options.By = None, store: options.StoreFile = None
) -> None:
    """Record that two clusters differ, so that they are not suggested again.

    \b
    Example:
      triage clusters reject u-7f3a9c u-00c41d --because "another file"
    """
    with options.open_store(store) as opened:
        entry = opened.cluster_actions.reject(one, other, actor=options.actor_name(by), because=because)
        _confirm("the clusters stay separate", entry)


def ignore(id: Id, because: Because = "", by: options.By = None, store: options.StoreFile = None) -> None:  # noqa: A002
    """Hide a cluster from the list; it is still counted.

    \b
    Example:
      triage clusters ignore u-7f3a9c --because "students' sandbox"
    """
    with options.open_store(store) as opened:
        _confirm("cluster ignored", opened.cluster_actions.ignore(id, actor=options.actor_name(by), because=because))


def reopen(id: Id, because: Because = "", by: options.By = None, store: options.StoreFile = None) -> None:  # noqa: A002
    """Put a cluster back into the list.

    \b
    Example:
      triage clusters reopen u-7f3a9c
    """
    with options.open_store(store) as opened:
        _confirm("cluster reopened", opened.cluster_actions.reopen(id, actor=options.actor_name(by), because=because))


def promote(
    id: Id,  # noqa: A002
    signature: NewSignature,
    title: Title = None,
    directory: options.SignatureDirectory = Path("signatures"),
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Write a signature file for a cluster, with pattern and samples.

    The pattern is what the lines of the cluster share; lines of near clusters become samples that must not match. The
    file is checked like with `catalog check`. Fill in the texts yourself. Exit status: 0, or 1 if the pattern also
    matches another cluster.

    \b
    Example:
      triage clusters promote u-7f3a9c data.tokenizer-gone
    """
    from triage.catalog.check import check_files
    from triage.catalog.promote import promote_cluster
    from triage.render import catalog_problems

    streams.check_output(None)
    with options.open_store(store) as opened:
        cluster = opened.clusters.get(id)
        members = [fact for _, _, facts in opened.clusters.list_exemplars(cluster.id) for fact in facts]
        others = opened.clusters.list_facts_of_others(cluster)
        taken = [item.id for item in lookup.load_signatures([directory] if directory.is_dir() else ())]
        text = (title or cluster.name or cluster.title)[:80].strip()
        path, promotion = promote_cluster(signature, text, cluster.id, members, others, directory, taken)
        entry = opened.cluster_actions.promote(cluster.id, signature, actor=options.actor_name(by))
    problems = [problem for problem in check_files([path]) if problem.severity != "info"]
    streams.write_output(f"{path}\n" + catalog_problems.WRITERS["text"](problems))
    if promotion.conflicts:
        lines = "".join(f"  {line}\n" for line in promotion.conflicts[:8])
        streams.write_output(f"its pattern also matches other clusters:\n{lines}")
    _confirm("replace each TODO, check the file again, then run `triage retriage` to update past incidents", entry)
    if promotion.conflicts:
        raise typer.Exit(1)


def log(
    id: LogOf = None,  # noqa: A002
    limit: options.Limit = 50,
    format: options.PlainFormat = "text",  # noqa: A002
    store: options.StoreFile = None,
) -> None:
    """Show the log of decisions, the latest first.

    \b
    Example:
      triage clusters log u-7f3a9c
    """
    from triage.render import clusters

    streams.check_output(None)
    with options.open_store(store) as opened:
        entries = opened.audit.list_entries(subject=id, limit=limit)
    streams.write_format(
        format,
        None,
        json=lambda: clusters.log_as_json(entries),
        text=lambda: "\n".join(clusters.entries(entries) or ["no decisions yet"]) + "\n",
    )


def rekey(
    dry_run: options.DryRun = False,
    format: options.PlainFormat = "text",  # noqa: A002
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Update the fingerprints of stored clusters to new rules.

    Ids stay, and nothing is merged or split. Shows fingerprints that are now in several clusters or became several,
    with what to do. The first ingest with new rules does the same; this command shows it before, and what is left to
    decide.

    \b
    Examples:
      triage clusters rekey --dry-run
      triage clusters rekey --format json
    """
    from triage.render import clusters

    streams.check_output(None)
    with options.open_store(store) as opened:
        result = opened.clusters.rekey(actor=options.actor_name(by), dry_run=dry_run)
    streams.write_format(
        format,
        None,
        json=lambda: clusters.rekeyed_as_json(result, dry_run),
        text=lambda: clusters.rekeyed(result, dry_run),
    )


def undo(number: EntryNumber, by: options.By = None, store: options.StoreFile = None) -> None:
    """Undo a decision. Undo later decisions that build on it first.

    \b
    Example:
      triage clusters undo 12
    """
    with options.open_store(store) as opened:
        _confirm(f"entry {number} undone", opened.cluster_actions.undo(number, actor=options.actor_name(by)))


def _confirm(message: str, entry: int) -> None:
    streams.write_output(f"{message} (entry {entry}; undo it with `triage clusters undo {entry}`)\n")


COMMANDS = (
    ("list", list_),
    ("show", show),
    ("name", name),
    ("assign", assign),
    ("merge", merge),
    ("split", split),
    ("reject", reject),
    ("ignore", ignore),
    ("reopen", reopen),
    ("promote", promote),
    ("log", log),
    ("undo", undo),
    ("rekey", rekey),
)
