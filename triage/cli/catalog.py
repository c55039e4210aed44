"""`triage catalog`: what is known, and whether a signature file is sound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from triage.cli import options

if TYPE_CHECKING:
    from triage.catalog.problems import Problem


class Late(TyperGroup):
    """Builds its commands when one of them is asked for: no other command shall pay for them."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override, unused-ignore]
        self._fill()
        return super().list_commands(ctx)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override, unused-ignore]
        self._fill()
        return super().get_command(ctx, cmd_name)

    def _fill(self) -> None:
        if self.commands:
            return
        from triage.cli import contribute, publish

        members = typer.Typer(rich_markup_mode=None, add_completion=False)
        for name, command in (*COMMANDS, *contribute.COMMANDS, *publish.COMMANDS):
            members.command(name)(command)
        built: Any = get_command(members)
        self.commands = {name: built.commands[name] for name in ORDER}


ORDER = ("list", "show", "check", "new", "explain", "test", "rate", "graph", "docs", "diff", "mutate", "schema")
group = typer.Typer(cls=Late, rich_markup_mode=None, add_completion=False)


@group.callback(invoke_without_command=True)
def catalog(context: typer.Context) -> None:
    """The signatures: list them, read one, write and check your own."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def list_(
    domain: Annotated[
        str | None,
        typer.Option("--domain", metavar="NAME", help="Only those of one domain, like nccl.", show_default=False),
    ] = None,
    catalog: options.Catalogs = None,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the list.")
    ] = options.PlainFormat.text,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
) -> None:
    """List the signatures: id, role, title; and the file of those that do not ship.

    \b
    Examples:
      triage catalog list --domain cuda
      triage catalog list --catalog my-signatures/ --format json
    """
    from triage.catalog import files
    from triage.cli import lookup, streams
    from triage.render import signature

    streams.check(None)
    known = [item for item in lookup.load(catalog) if domain is None or item.domain == domain]
    if format is options.PlainFormat.json:
        streams.deliver(signature.listing_as_json(known), utf8=True)
    else:
        shipped = f"{files.shipped_directory() or ''}/"
        streams.deliver(
            signature.listing(
                known, shipped=shipped, width=streams.width(width, None), color=streams.color(color.value, None)
            )
        )


def show(
    id: options.SignatureId,  # noqa: A002
    catalog: options.Catalogs = None,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write it.")
    ] = options.PlainFormat.text,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
) -> None:
    """Show one signature: what it means, what to do, what it looks for.

    \b
    Example:
      triage catalog show cuda.out-of-memory
    """
    from triage.cli import lookup, streams
    from triage.render import signature

    streams.check(None)
    found = lookup.named(id, lookup.load(catalog))
    if format is options.PlainFormat.json:
        streams.deliver(signature.as_json(found), utf8=True)
    else:
        streams.deliver(
            signature.as_text(found, width=streams.width(width, None), color=streams.color(color.value, None))
        )


def check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Files or directories. Default: the shipped catalog.", show_default=False),
    ] = None,
    format: Annotated[  # noqa: A002
        options.CheckFormat, typer.Option("--format", "-f", help="How to write what is wrong.")
    ] = options.CheckFormat.text,
) -> None:
    """Prove signature files: readable, sound, true to their samples, silent on healthy jobs.

    Exit status: 0 when nothing is wrong (warnings are allowed), 1 when there are errors.

    \b
    Examples:
      triage catalog check my-signatures/cuda/new-mode.yaml
      triage catalog check my-signatures/ --format github
    """
    from triage.cli import streams
    from triage.cli.proof import prove
    from triage.render import problems

    streams.check(None)
    found = prove(paths or ())
    streams.deliver(problems.WRITERS[format.value](found), utf8=format is options.CheckFormat.json)
    if _has_errors(found):
        raise typer.Exit(1)


def schema(
    table: Annotated[bool, typer.Option("--table", help="The schema of a table of codes.")] = False,
    output: options.Output = None,
) -> None:
    """Write the JSON Schema of a signature file, for your editor.

    \b
    Example:
      triage catalog schema -o signatures/schema.json
    """
    import json

    from triage.catalog import schema, tables
    from triage.cli import streams

    streams.check(output)
    found = tables.json_schema() if table else schema.json_schema()
    streams.deliver(json.dumps(found, indent=2, ensure_ascii=False) + "\n", output, utf8=True)


def _has_errors(problems: Sequence[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("list", list_),
    ("show", show),
    ("check", check),
    ("schema", schema),
)
