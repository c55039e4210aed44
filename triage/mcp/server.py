"""Serve the tools over the Model Context Protocol, with its official package."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import triage
from triage.base.errors import OptionError, TriageError
from triage.mcp.responses import NOTICE
from triage.mcp.tools import Tools
from triage.render.sanitize import sanitize_line

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_INSTRUCTIONS = (
    "triage finds the rank and the line where a multi-rank training job began to fail. Cite evidence by source and "
    "line. Say how sure a diagnosis is (`sure`), and that the cause is not known when the verdict is `unknown`. "
)


def build_server(tools: Tools, *, allow_write: bool = False) -> MCPServer[Any]:
    """Return a server with the tools; the tool that writes needs `allow_write`.

    Raises OptionError if the package `mcp` is not installed.
    """
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp_types import ToolAnnotations
    except ModuleNotFoundError as error:
        raise OptionError(f"the package {error.name} is not installed", hint="pip install 'triage-kb[mcp]'") from None
    server: MCPServer[Any] = MCPServer(
        "triage", instructions=_INSTRUCTIONS + NOTICE, version=triage.__version__, log_level="WARNING"
    )
    readers = (tools.diagnose, tools.search, tools.similar, tools.incident, tools.explain, tools.signature)
    for tool in readers:
        server.add_tool(_with_hints(tool), annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    if allow_write:
        annotations = ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )
        server.add_tool(_with_hints(tools.ingest), annotations=annotations)
    return server


def _with_hints(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return the tool with errors that include their hints."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def call(*arguments: Any, **named: Any) -> dict[str, Any]:
        try:
            return tool(*arguments, **named)
        except TriageError as error:
            raise ToolError(sanitize_line(f"{error}; {error.hint}")) from None

    return call
