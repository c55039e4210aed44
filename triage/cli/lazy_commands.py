"""Command groups that import and build their commands only when one of them is called, so that others start fast."""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command


def build_group(help: str, *modules: str, order: tuple[str, ...]) -> typer.Typer:  # noqa: A002
    """Return a group with the COMMANDS of these modules of `triage.cli`, in this order."""

    class LazyGroup(TyperGroup):
        def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override, unused-ignore]
            self._build_commands()
            return super().list_commands(ctx)

        def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override, unused-ignore]
            self._build_commands()
            return super().get_command(ctx, cmd_name)

        def _build_commands(self) -> None:
            if self.commands:
                return
            members = typer.Typer(rich_markup_mode=None, add_completion=False)
            members.callback()(lambda: None)  # without a callback, a single command would not become a group
            for module in modules:
                for name, command in importlib.import_module(f"triage.cli.{module}").COMMANDS:
                    members.command(name)(command)
            built: Any = get_command(members)
            self.commands = {name: built.commands[name] for name in order}

    group = typer.Typer(cls=LazyGroup, rich_markup_mode=None, add_completion=False)

    def show_help_without_command(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help(), err=True)
            raise typer.Exit(2)

    show_help_without_command.__doc__ = help
    group.callback(invoke_without_command=True)(show_help_without_command)
    return group


_CLUSTER_COMMANDS = (
    *("list", "show", "name", "assign", "merge", "split", "reject", "ignore", "reopen", "promote", "log", "undo"),
    "rekey",
)
_CATALOG_COMMANDS = (
    *("list", "show", "check", "new", "explain", "test", "rate", "graph", "docs", "diff", "mutate", "schema"),
)
GROUPS: tuple[tuple[str, typer.Typer], ...] = (
    (
        "catalog",
        build_group(
            """List and show signatures; write, check and test your own.

            \b
            Examples:
              triage catalog show cuda.out-of-memory
              triage catalog check my-signatures/
            """,
            "catalog",
            "contribute",
            "publish",
            order=_CATALOG_COMMANDS,
        ),
    ),
    (
        "clusters",
        build_group(
            """Manage clusters of similar unknown failures.

            \b
            Examples:
              triage clusters list
              triage clusters name u-7f3a9c "Tokenizer file is gone"
            """,
            "clusters",
            order=_CLUSTER_COMMANDS,
        ),
    ),
    (
        "db",
        build_group(
            """Check, shrink, export and import the store.

            \b
            Examples:
              triage db check
              triage db vacuum --older-than 180d
            """,
            "db",
            order=("check", "vacuum", "retention", "export", "import", "copy", "migrate"),
        ),
    ),
    (
        "config",
        build_group(
            """Show the settings from file, environment and command line.

            \b
            Examples:
              triage config show
            """,
            "config",
            order=("show",),
        ),
    ),
    (
        "token",
        build_group(
            """Create, list and revoke tokens for `triage serve`.

            \b
            Examples:
              triage token create ci --scope read --scope ingest
              triage token list
            """,
            "token",
            order=("create", "list", "revoke"),
        ),
    ),
    (
        "outbox",
        build_group(
            """List, retry, drop and send notifications.

            \b
            Examples:
              triage outbox list
              triage outbox retry --dead
            """,
            "outbox",
            order=("list", "retry", "drop", "send"),
        ),
    ),
    (
        "post",
        build_group(
            """Post one report to one place, without the outbox. For CI.

            \b
            Example:
              triage post github report.json
            """,
            "post",
            order=("github", "gitlab", "webhook"),
        ),
    ),
    (
        "bot",
        build_group(
            """Run a bot that sends notifications and handles answers.

            \b
            Example:
              triage bot slack
            """,
            "bot",
            order=("slack",),
        ),
    ),
)
