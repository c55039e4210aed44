"""`triage config`: show the settings and where each value comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from triage.cli import options, streams

if TYPE_CHECKING:
    from triage.settings import LoadedSettings


def load_settings(overrides: Mapping[str, Any] | None = None) -> LoadedSettings:
    """Load the settings, overridden by options of the command line.

    Raises OptionError, also if pydantic-settings is not installed.
    """
    from triage.base.errors import OptionError

    try:
        from triage.settings import load
    except ModuleNotFoundError as error:
        raise OptionError(f"the package {error.name} is not installed", hint="pip install 'triage-kb[web]'") from None
    return load(overrides)


def show(
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
) -> None:
    """Show every setting with its value and the origin of the value. Secrets are not shown.

    \b
    Examples:
      triage config show
      triage config show --format json
    """
    streams.check_output(output)
    loaded = load_settings()
    rows = loaded.rows()
    if format == "json":
        items = [{"name": name, "value": value, "origin": origin} for name, value, origin in rows]
        document = {"schema": "triage.config/1", "file": str(loaded.file) if loaded.file else None, "settings": items}
        text = json.dumps(document, indent=2)
    else:
        name_width = max(len(name) for name, _, _ in rows)
        lines = [f"{name:<{name_width}} = {json.dumps(value)}  # {origin}" for name, value, origin in rows]
        text = "\n".join([f"file: {loaded.file}" if loaded.file else "no configuration file", *lines])
    streams.write_output(f"{text}\n", output, utf8=True)


COMMANDS = (("show", show),)
