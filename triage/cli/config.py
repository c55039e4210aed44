"""`triage config`: what is set, and where it was set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from triage.cli import options

if TYPE_CHECKING:
    from triage.settings import Loaded


def loaded(given: Mapping[str, Any] | None = None) -> Loaded:
    """The settings, with options of the command line laid over them. Raises OptionError, also where pydantic-settings
    is missing.
    """
    from triage.base.errors import OptionError

    try:
        from triage.settings import load
    except ModuleNotFoundError as error:
        raise OptionError(f"this needs the package {error.name}", hint="pip install 'triage-kb[web]'") from None
    return load(given)


def show(
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write it.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
) -> None:
    """Show every setting with its value and where the value comes from. Secrets are not shown.

    \b
    Examples:
      triage config show
      triage config show --format json
    """
    import json

    from triage.cli import streams

    streams.check(output)
    found = loaded()
    rows = found.rows()
    if format is options.PlainFormat.json:
        items = [{"name": name, "value": value, "origin": origin} for name, value, origin in rows]
        text = (
            json.dumps(
                {"schema": "triage.config/1", "file": str(found.file) if found.file else None, "settings": items},
                indent=2,
            )
            + "\n"
        )
    else:
        wide = max(len(name) for name, _, _ in rows)
        lines = [f"{name:<{wide}} = {json.dumps(value)}  # {origin}" for name, value, origin in rows]
        head = f"file: {found.file}" if found.file else "no configuration file"
        text = "\n".join([head, *lines]) + "\n"
    streams.deliver(text, output, utf8=True)


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (("show", show),)
