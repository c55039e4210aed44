"""Options of a command over the environment over the file over defaults; which of them gave a value is kept."""

from __future__ import annotations

import os
import tomllib
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from triage.base.errors import OptionError
from triage.catalog import setting
from triage.settings.model import Settings
from triage.settings.section import Section
from triage.store.place import OFF

# Variables older than the sections, which every command understands, and what they set.
SHORT: Mapping[str, tuple[str, str]] = types.MappingProxyType({"TRIAGE_STORE": ("store", "path")})


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and for `section.field` where its value came from in words; what is not in `origins` is a default."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None

    def rows(self) -> list[tuple[str, Any, str]]:
        """(name, value as JSON has it, origin) of every setting. What a secret is stays hidden."""
        found = []
        for section, values in self.settings.model_dump(mode="json").items():
            for field, value in values.items():
                name = f"{section}.{field}"
                found.append((name, value, self.origins.get(name, "default")))
        return found


def load(options: Mapping[str, Any] | None = None) -> Loaded:
    """Read everything once. `options` maps `section.field` to a value given on the command line (None: not given).
    Raises OptionError.
    """
    path = setting.config_file()
    document = _read(path)
    origins: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, info in Settings.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            values[name] = _section(name, kind, document.pop(name, {}), path, dict(options or {}), origins)
    values["sources"] = document.pop("sources", {})
    origins.update(
        {f"sources.{name}": f"file {path}" for name in values["sources"]} if isinstance(values["sources"], dict) else {}
    )
    document.pop("catalogs", None)
    if document:
        raise OptionError(
            f"there is no section or name {min(document)!r}", hint="`triage config show` lists all", path=str(path)
        )
    try:
        return Loaded(
            Settings(**values), types.MappingProxyType(origins), path if path is not None and path.is_file() else None
        )
    except ValidationError as error:
        raise _refused(error, "", path) from None


def _read(path: Path | None) -> dict[str, Any]:
    if path is None or not (path.is_file() or os.environ.get(setting.CONFIG)):
        return {}
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OptionError(
            f"cannot be read: {reason}", hint=f"mend it, or set {setting.CONFIG} to another file", path=str(path)
        ) from None


def _section(
    name: str, kind: type[Section], written: Any, path: Path | None, options: dict[str, Any], origins: dict[str, str]
) -> dict[str, Any]:
    """The values of one section that were set, checked; their origins are added."""
    if not isinstance(written, dict):
        raise OptionError(f"`{name}` is not a section", hint=f"write [{name}] and its values below it", path=str(path))
    found = dict(written)
    origins.update({f"{name}.{field}": f"file {path}" for field in found})
    prefix = str(kind.model_config.get("env_prefix", ""))
    try:
        said = EnvSettingsSource(kind)()
    except ValueError as error:
        raise OptionError(
            f"a variable {prefix}… cannot be understood: {error}", hint="lists and tables are written as JSON"
        ) from None
    found.update(said)
    origins.update({f"{name}.{field}": f"environment {prefix}{field.upper()}" for field in said})
    for variable, (section, field) in SHORT.items():
        if section == name and os.environ.get(variable, OFF).lower() != OFF:
            found[field] = os.environ[variable]
            origins[f"{name}.{field}"] = f"environment {variable}"
    if name == "catalog" and (directories := setting.configured()):
        found["directories"] = directories
        origins["catalog.directories"] = f"file {path}, environment {setting.VARIABLE}"
    for key, value in options.items():
        section, _, field = key.partition(".")
        if section == name and value is not None:
            found[field] = value
            origins[key] = "command line"
    try:
        kind(**found)
    except ValidationError as error:
        raise _refused(error, name, path) from None
    return found


def _refused(error: ValidationError, section: str, path: Path | None) -> OptionError:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(part for part in (section, *map(str, first["loc"])) if part)
    hint = "`triage config show` lists every name with its value and where it came from"
    said = "there is no such setting" if first["type"] == "extra_forbidden" else first["msg"]
    return OptionError(f"setting {where}: {said[:1].lower()}{said[1:]}", hint=hint, path=str(path) if path else None)
