"""The tools as a server of the Model Context Protocol, by its official package."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import triage
from triage.assistant.answers import Answers
from triage.assistant.shapes import NOTICE
from triage.base.errors import OptionError, TriageError
from triage.render.safe import safe_line

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_ABOUT = (
    "triage finds the rank and the line where a multi-rank training job began to fail. Cite evidence by source and line. "
    "Say how sure a diagnosis is (`sure`), and that the cause is not known when the verdict is `unknown`. "
)


def server(answers: Answers, *, allow_write: bool = False) -> MCPServer[Any]:
    """A server with the tools; the one that writes is there only with `allow_write`. Raises OptionError where `mcp` is
    not installed.
    """
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp_types import ToolAnnotations
    except ModuleNotFoundError as error:
        raise OptionError(f"this needs the package {error.name}", hint="pip install 'triage-kb[mcp]'") from None
    made: MCPServer[Any] = MCPServer(
        "triage", instructions=_ABOUT + NOTICE, version=triage.__version__, log_level="WARNING"
    )
    reading = (answers.diagnose, answers.search, answers.similar, answers.incident, answers.explain, answers.signature)
    for tool in reading:
        made.add_tool(_told(tool), annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    if allow_write:
        writing = ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )
        made.add_tool(_told(answers.ingest), annotations=writing)
    return made


def _told(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The tool, whose errors tell the assistant what to do next."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def call(*arguments: Any, **named: Any) -> dict[str, Any]:
        try:
            return tool(*arguments, **named)
        except TriageError as error:
            raise ToolError(safe_line(f"{error}; {error.hint}")) from None

    return call
