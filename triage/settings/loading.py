"""Load the settings. The command line overrides the environment, then the file, then the defaults."""

from __future__ import annotations

import os
import tomllib
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import EnvSettingsSource

from triage.base.errors import OptionError
from triage.catalog import configured_catalogs
from triage.settings.notifications import (
    ChannelSettings,
    IssueSettings,
    RoutingSettings,
    SlackSettings,
    WebhookSettings,
)
from triage.settings.remote import RemoteSettings
from triage.settings.sections import (
    CatalogSettings,
    RetentionSettings,
    Section,
    Source,
    StoreSettings,
    TaskSettings,
    VisibilitySettings,
    WebSettings,
)
from triage.store.location import OFF

# Older variables that every command reads, and the setting that each of them is for.
SHORT_VARIABLES: Mapping[str, tuple[str, str]] = types.MappingProxyType({"TRIAGE_STORE": ("store", "path")})


class Settings(BaseModel):
    """All settings, one field per section; `sources` has one table `[sources.NAME]` per source."""

    model_config = ConfigDict(frozen=True)

    store: StoreSettings = Field(default_factory=StoreSettings)
    catalog: CatalogSettings = Field(default_factory=CatalogSettings)
    web: WebSettings = Field(default_factory=WebSettings)
    tasks: TaskSettings = Field(default_factory=TaskSettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)
    visibility: VisibilitySettings = Field(default_factory=VisibilitySettings)
    remote: RemoteSettings = Field(default_factory=RemoteSettings)
    routing: RoutingSettings = Field(default_factory=RoutingSettings)
    slack: SlackSettings = Field(default_factory=SlackSettings)
    webhook: WebhookSettings = Field(default_factory=WebhookSettings)
    channel: ChannelSettings = Field(default_factory=ChannelSettings)
    issue: IssueSettings = Field(default_factory=IssueSettings)
    sources: Mapping[str, Source] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, the origin of each `section.field` that is not a default, and the file if there is one."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None

    def rows(self) -> list[tuple[str, Any, str]]:
        """Return (name, JSON value, origin) of every setting, with secrets hidden."""
        return [
            (f"{section}.{field}", value, self.origins.get(f"{section}.{field}", "default"))
            for section, values in self.settings.model_dump(mode="json").items()
            for field, value in values.items()
        ]


def load(options: Mapping[str, Any] | None = None) -> LoadedSettings:
    """Load all settings.

    `options` maps `section.field` to a value from the command line (None: not set). Raises OptionError.
    """
    path = configured_catalogs.find_config_file()
    document = _read_file(path)
    origins: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, info in Settings.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            values[name] = _load_section(name, kind, document.pop(name, {}), path, options or {}, origins)
    values["sources"] = document.pop("sources", {})
    if isinstance(values["sources"], dict):
        origins.update({f"sources.{name}": f"file {path}" for name in values["sources"]})
    document.pop("catalogs", None)
    if document:
        raise OptionError(
            f"there is no section or setting {min(document)!r}",
            hint="`triage config show` lists all settings",
            path=str(path),
        )
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise _option_error(error, "", path) from None
    return LoadedSettings(settings, types.MappingProxyType(origins), path if path and path.is_file() else None)


def _read_file(path: Path | None) -> dict[str, Any]:
    if path is None or not (path.is_file() or os.environ.get(configured_catalogs.CONFIG)):
        return {}
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OptionError(
            f"cannot read the settings: {reason}",
            hint=f"fix the file, or set {configured_catalogs.CONFIG} to another one",
            path=str(path),
        ) from None


def _load_section(
    name: str,
    kind: type[Section],
    file_values: Any,
    path: Path | None,
    options: Mapping[str, Any],
    origins: dict[str, str],
) -> dict[str, Any]:
    """Return the values of one section that are set, after validating them. Adds their origins to `origins`."""
    if not isinstance(file_values, dict):
        raise OptionError(f"`{name}` is not a section", hint=f"write [{name}] and its values below it", path=str(path))
    values = dict(file_values)
    origins.update({f"{name}.{field}": f"file {path}" for field in values})
    for field, value, origin in _overrides(name, kind, path, options):
        values[field] = value
        origins[f"{name}.{field}"] = origin
    try:
        kind(**values)
    except ValidationError as error:
        raise _option_error(error, name, path) from None
    return values


def _overrides(
    name: str, kind: type[Section], path: Path | None, options: Mapping[str, Any]
) -> list[tuple[str, Any, str]]:
    """Return (field, value, origin) from the environment and the command line; later ones win."""
    prefix = str(kind.model_config.get("env_prefix", ""))
    try:
        variables = EnvSettingsSource(kind)()
    except ValueError as error:
        raise OptionError(f"cannot read a variable {prefix}…: {error}", hint="write lists and tables as JSON") from None
    overrides = [(field, value, f"environment {prefix}{field.upper()}") for field, value in variables.items()]
    for variable, (section, field) in SHORT_VARIABLES.items():
        if section == name and os.environ.get(variable, OFF).lower() != OFF:
            overrides.append((field, os.environ[variable], f"environment {variable}"))
    if name == "catalog" and (directories := configured_catalogs.list_configured_catalogs()):
        overrides.append(("directories", directories, f"file {path}, environment {configured_catalogs.VARIABLE}"))
    for key, value in options.items():
        section, _, field = key.partition(".")
        if section == name and value is not None:
            overrides.append((field, value, "command line"))
    return overrides


def _option_error(error: ValidationError, section: str, path: Path | None) -> OptionError:
    """Convert the first problem that pydantic reports."""
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(part for part in (section, *map(str, first["loc"])) if part)
    problem = "there is no such setting" if first["type"] == "extra_forbidden" else first["msg"]
    return OptionError(
        f"setting {name}: {problem[:1].lower()}{problem[1:]}",
        hint="`triage config show` lists every setting with its value and origin",
        path=str(path) if path else None,
    )
