"""Groups of commands that are built when one of them is asked for: no other command shall pay for them."""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command


def group(help: str, *modules: str, order: tuple[str, ...]) -> typer.Typer:  # noqa: A002
    """A group whose members are the COMMANDS of these modules of `triage.cli`, in this order."""

    class Late(TyperGroup):
        def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override, unused-ignore]
            self._fill()
            return super().list_commands(ctx)

        def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override, unused-ignore]
            self._fill()
            return super().get_command(ctx, cmd_name)

        def _fill(self) -> None:
            if self.commands:
                return
            members = typer.Typer(rich_markup_mode=None, add_completion=False)
            members.callback()(lambda: None)  # one command alone would not be a group
            for module in modules:
                for name, command in importlib.import_module(f"triage.cli.{module}").COMMANDS:
                    members.command(name)(command)
            built: Any = get_command(members)
            self.commands = {name: built.commands[name] for name in order}

    made = typer.Typer(cls=Late, rich_markup_mode=None, add_completion=False)

    def asked(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help(), err=True)
            raise typer.Exit(2)

    asked.__doc__ = help
    made.callback(invoke_without_command=True)(asked)
    return made


clusters = group(
    """Unknown failures that are one: look at them, name them, sort them.

    \b
    Examples:
      triage clusters list
      triage clusters name u-7f3a9c "Tokenizer file is gone"
    """,
    "clusters",
    order=(
        "list",
        "show",
        "name",
        "assign",
        "merge",
        "split",
        "reject",
        "ignore",
        "reopen",
        "promote",
        "log",
        "undo",
        "rekey",
    ),
)
db = group(
    """The store itself: prove it, shrink it, carry it elsewhere.

    \b
    Examples:
      triage db check
      triage db vacuum --older-than 180d
    """,
    "db",
    order=("check", "vacuum", "export", "import", "migrate"),
)
config = group(
    """What is set, by file, environment and command line.

    \b
    Examples:
      triage config show
    """,
    "config",
    order=("show",),
)
token = group(
    """Tokens for `triage serve`: make them, list them, revoke them.

    \b
    Examples:
      triage token create ci --scope read --scope ingest
      triage token list
    """,
    "token",
    order=("create", "list", "revoke"),
)
outbox = group(
    """What waits to be told to others: look, try again, give up, send.

    \b
    Examples:
      triage outbox list
      triage outbox retry --dead
    """,
    "outbox",
    order=("list", "retry", "drop", "send"),
)
post = group(
    """Send one report to one place, now. For CI.

    \b
    Example:
      triage post github report.json
    """,
    "post",
    order=("github", "gitlab", "webhook"),
)
bot = group(
    """Programs that stay: they send what waits and hear what people answer.

    \b
    Example:
      triage bot slack
    """,
    "bot",
    order=("slack",),
)
