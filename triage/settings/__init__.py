"""The settings of an operator: one frozen model per section, from a TOML file, the environment and the command line.

    loaded = load()
    loaded.settings.web.port, loaded.origins["web.port"]

Only commands that need settings import this package: it needs pydantic-settings (`pip install 'triage-kb[web]'`).
"""

from __future__ import annotations

from triage.settings.loading import LoadedSettings, Settings, load

__all__ = ["LoadedSettings", "Settings", "load"]
