"""`triage clusters`: what a curator does with failures that no signature knows."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.base.errors import OptionError
from triage.cli import options

if TYPE_CHECKING:
    from triage.clusters import Near
    from triage.model.evidence import Evidence
    from triage.model.store import Cluster
    from triage.store import Store


class State(str, Enum):  # noqa: UP042
    """The states of `triage.store.clusters.STATES`, and groups of them."""

    waiting = "waiting"
    open = "open"
    named = "named"
    ignored = "ignored"
    promoted = "promoted"
    merged = "merged"
    all = "all"


class Engine(str, Enum):  # noqa: UP042
    letters = "letters"
    meaning = "meaning"
    none = "none"


Id = Annotated[str, typer.Argument(metavar="ID", help="The cluster, like u-7f3a9c, or its name.", show_default=False)]
Because = Annotated[str, typer.Option("--because", "-b", metavar="TEXT", help="Why.", show_default=False)]
Format = Annotated[options.PlainFormat, typer.Option("--format", "-f", help="How to write it.")]


def list_(
    state: Annotated[State, typer.Option("--state", help="Which; waiting are open and named ones.")] = State.waiting,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=100_000, help="At most so many.")] = 50,
    format: Annotated[  # noqa: A002
        options.TableFormat, typer.Option("--format", "-f", help="How to write it.")
    ] = options.TableFormat.text,
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """List clusters by what matters: growing, recent, many jobs, many ranks.

    \b
    Examples:
      triage clusters list
      triage clusters list --state ignored --format json
    """
    from triage.cli import streams
    from triage.render import clusters
    from triage.store.clusters import OPEN, STATES

    streams.check(output)
    states = {State.waiting: OPEN, State.all: STATES}.get(state, (state.value,))
    with options.stored(store) as opened:
        found = opened.clusters.listed(states=states, limit=limit)
    if format is options.TableFormat.json:
        streams.deliver(clusters.listing_as_json(found), output, utf8=True)
    elif format is options.TableFormat.csv:
        streams.deliver(clusters.listing_as_csv(found), output, utf8=True)
    else:
        streams.deliver(
            clusters.listing(found, width=streams.width(width, output), color=streams.color(color.value, output)),
            output,
        )


def show(
    id: Id,  # noqa: A002
    engine: Annotated[
        Engine, typer.Option("--near", help="How near clusters are found: by letters, by meaning, or not at all.")
    ] = Engine.letters,
    format: Format = options.PlainFormat.text,  # noqa: A002
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    store: options.StoreFile = None,
) -> None:
    """Show a cluster: fingerprints and why, lines, near clusters, incidents, log.

    Near clusters are only ranked, with the words that stand on one side only; `merge` or `reject` decides.

    \b
    Examples:
      triage clusters show u-7f3a9c
      triage clusters show u-7f3a9c --near meaning
    """
    from triage.cli import streams
    from triage.render import clusters
    from triage.store.search import Filter

    streams.check(output)
    with options.stored(store) as opened:
        found = opened.clusters.get(id)
        exemplars = opened.clusters.exemplars(found.id)
        members = opened.search.listed(Filter(cluster=found.id), limit=20)
        log = opened.audit.listed(subject=found.id)
        near, note = _near(opened, found.id, engine)
        page = clusters.Page(found, exemplars, members, log, opened.clusters.reasons(found.id), near, note)
    if format is options.PlainFormat.json:
        streams.deliver(clusters.page_as_json(page), output, utf8=True)
    else:
        streams.deliver(
            clusters.page(page, width=streams.width(width, output), color=streams.color(color.value, output)), output
        )


def _near(opened: Store, cluster: str, engine: Engine) -> tuple[list[tuple[Near, Cluster]], str]:
    """The near clusters; without the package that letters need a note says so, and meaning, which was asked for, is an
    error.
    """
    from triage.clusters.suggest import tfidf

    if engine is Engine.none:
        return [], ""
    if engine is Engine.meaning:
        from triage.clusters import meaning

        found = opened.clusters.near(cluster, similarity=meaning.similarity)
    else:
        try:
            found = opened.clusters.near(cluster, similarity=tfidf)
        except OptionError as error:
            return [], f"{error.message} ({error.hint})"
    return [(item, opened.clusters.get(item.cluster)) for item in found], ""


def name(
    id: Id,  # noqa: A002
    words: Annotated[str, typer.Argument(metavar="NAME", help="What it is, in a few words.", show_default=False)],
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="What is known about it.", show_default=False)
    ] = "",
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Give a cluster a name; every incident in it is known by it.

    \b
    Example:
      triage clusters name u-7f3a9c "Tokenizer file is gone"
    """
    with options.stored(store) as opened:
        entry = opened.moves.name(id, words, actor=options.actor(by), note=note)
        _done(f"{opened.clusters.id(id)} is called {words!r}", entry)


def assign(
    incident: options.IncidentId,
    into: Annotated[
        str | None,
        typer.Argument(metavar="[CLUSTER]", help="Where it belongs; none: a new cluster.", show_default=False),
    ] = None,
    because: Because = "",
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Put an incident's failure into another cluster, or into a new one.

    All incidents with the same fingerprint go with it, those to come too.

    \b
    Examples:
      triage clusters assign i-4f2a9c u-7f3a9c
      triage clusters assign i-4f2a9c
    """
    with options.stored(store) as opened:
        entry, target = opened.moves.assign(
            opened.incidents.number(incident), into, actor=options.actor(by), because=because
        )
        _done(f"it is in {target}", entry)


def merge(
    ids: Annotated[list[str], typer.Argument(metavar="ID ID...", help="Clusters that are one.", show_default=False)],
    because: Because = "",
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Make several clusters one. The oldest id stays, the others lead to it.

    \b
    Example:
      triage clusters merge u-7f3a9c u-00c41d
    """
    with options.stored(store) as opened:
        entry, kept = opened.moves.merge(ids, actor=options.actor(by), because=because)
        _done(f"they are {kept}", entry)


def split(
    id: Id,  # noqa: A002
    key: Annotated[
        list[str],
        typer.Option(
            "--key", "-k", metavar="KEY", help="A fingerprint that leaves; may be repeated.", show_default=False
        ),
    ],
    because: Because = "",
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Move fingerprints of a cluster into a new one, for good.

    `triage clusters show` lists the fingerprints.

    \b
    Example:
      triage clusters split u-7f3a9c --key 1:9a41
    """
    with options.stored(store) as opened:
        entry, new = opened.moves.split(id, key, actor=options.actor(by), because=because)
        _done(f"they are {new}", entry)


def reject(
    one: Id,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Another that it is not.", show_default=False)],
    because: Because = "",
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Say that two clusters are not one, so that nobody suggests it again.

    \b
    Example:
      triage clusters reject u-7f3a9c u-00c41d --because "another file"
    """
    with options.stored(store) as opened:
        _done("they stay apart", opened.moves.reject(one, other, actor=options.actor(by), because=because))


def ignore(id: Id, because: Because = "", by: options.By = None, store: options.StoreFile = None) -> None:  # noqa: A002
    """Take a cluster out of the list; it is still counted.

    \b
    Example:
      triage clusters ignore u-7f3a9c --because "students' sandbox"
    """
    with options.stored(store) as opened:
        _done("it is ignored", opened.moves.ignore(id, actor=options.actor(by), because=because))


def reopen(id: Id, because: Because = "", by: options.By = None, store: options.StoreFile = None) -> None:  # noqa: A002
    """Put a cluster back into the list.

    \b
    Example:
      triage clusters reopen u-7f3a9c
    """
    with options.stored(store) as opened:
        _done("it is open", opened.moves.reopen(id, actor=options.actor(by), because=because))


def promote(
    id: Id,  # noqa: A002
    signature: Annotated[
        str, typer.Argument(metavar="SIGNATURE", help="The id to give it: <domain>.<slug>.", show_default=False)
    ],
    title: Annotated[
        str | None,
        typer.Option(
            "--title", "-t", metavar="TEXT", help="What happened. Default: the cluster's name.", show_default=False
        ),
    ] = None,
    directory: Annotated[
        Path, typer.Option("--directory", "-d", metavar="DIR", help="The directory of signatures to put it into.")
    ] = Path("signatures"),
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Make a signature file of a cluster, with pattern and samples.

    The pattern is what its lines share; lines of near clusters become samples that must not match. `catalog check` is
    run on the file.
    What is left to you are the words. Exit status: 0, or 1 when the pattern also matches another cluster.

    \b
    Example:
      triage clusters promote u-7f3a9c data.tokenizer-gone
    """
    from triage.catalog.check import check
    from triage.catalog.promote import promote as write
    from triage.cli import lookup, streams
    from triage.render import problems

    streams.check(None)
    with options.stored(store) as opened:
        cluster = opened.clusters.get(id)
        members = [fact for _, _, facts in opened.clusters.exemplars(cluster.id) for fact in facts]
        others = _others(opened, cluster.id)
        known = [item.id for item in lookup.load([directory] if directory.is_dir() else ())]
        words = (title or cluster.name or cluster.title)[:80].strip()
        path, made = write(signature, words, cluster.id, members, others, directory, known)
        entry = opened.moves.promote(cluster.id, signature, actor=options.actor(by))
    found = [problem for problem in check([path]) if problem.severity != "info"]
    streams.deliver(f"{path}\n" + problems.WRITERS["text"](found))
    if made.conflicts:
        streams.deliver(
            "its pattern also matches other clusters:\n" + "".join(f"  {line}\n" for line in made.conflicts[:8])
        )
    _done("say what stands behind TODO, check it again, then `triage retriage` finds it in the past", entry)
    if made.conflicts:
        raise typer.Exit(1)


def log(
    id: Annotated[  # noqa: A002
        str | None, typer.Argument(metavar="[ID]", help="Only of this cluster or incident.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=100_000, help="At most so many.")] = 50,
    format: Format = options.PlainFormat.text,  # noqa: A002
    store: options.StoreFile = None,
) -> None:
    """Show who decided what, the latest first.

    \b
    Example:
      triage clusters log u-7f3a9c
    """
    from triage.cli import streams
    from triage.render import clusters

    streams.check(None)
    with options.stored(store) as opened:
        found = opened.audit.listed(subject=id, limit=limit)
    if format is options.PlainFormat.json:
        streams.deliver(clusters.log_as_json(found), utf8=True)
    else:
        streams.deliver("\n".join(clusters.entries(found) or ["nothing was decided"]) + "\n")


def rekey(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    format: Format = options.PlainFormat.text,  # noqa: A002
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Give stored clusters the fingerprints of new rules, and tell what no longer fits.

    Ids stay and nothing is merged or parted. One fingerprint in several clusters, and one that is several now, are told
    with what to do.
    The first ingest with new rules does the same; this shows it before, and what is still to decide afterwards.

    \b
    Examples:
      triage clusters rekey --dry-run
      triage clusters rekey --format json
    """
    from triage.cli import streams
    from triage.render import clusters

    streams.check(None)
    with options.stored(store) as opened:
        found = opened.clusters.rekey(actor=options.actor(by), dry_run=dry_run)
    if format is options.PlainFormat.json:
        streams.deliver(clusters.rekeyed_as_json(found, dry_run), utf8=True)
    else:
        streams.deliver(clusters.rekeyed(found, dry_run))


def undo(
    number: Annotated[int, typer.Argument(metavar="N", help="The number of the entry in the log.", show_default=False)],
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Take a decision back. Later ones that build on it must go first.

    \b
    Example:
      triage clusters undo 12
    """
    with options.stored(store) as opened:
        _done(f"entry {number} is taken back", opened.moves.undo(number, actor=options.actor(by)))


def _others(opened: Store, cluster: str) -> list[Evidence]:
    """Facts of the other clusters; those that share the most words with this one first."""
    mine = {word for key in opened.clusters.get(cluster).keys for word in key.headline.split()}
    near = sorted(opened.clusters.keys(), key=lambda item: (-len(mine & set(item[0].headline.split())), item[0].key))
    names = list(dict.fromkeys(name for _, name in near if name != cluster))[:50]
    return [fact for name in names for _, _, facts in opened.clusters.exemplars(name) for fact in facts]


def _done(said: str, entry: int) -> None:
    from triage.cli import streams

    streams.deliver(f"{said} (entry {entry}; `triage clusters undo {entry}` takes it back)\n")


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
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
