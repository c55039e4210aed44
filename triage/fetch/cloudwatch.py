"""CloudWatch Logs: `cloudwatch://REGION/LOG/GROUP?filter=…&prefix=…`, with the credentials of AWS's other programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from triage.base.errors import InputError, OptionError
from triage.bots.interface import RetryLater
from triage.fetch.interface import Piece, SourceQuery, format_line
from triage.fetch.requests import repeat


def fetch(query: SourceQuery) -> Iterator[Piece]:
    """Yield the events of a group; each stream is a file."""
    try:
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise OptionError("cloudwatch:// needs the package botocore", hint="pip install 'triage-kb[remote]'") from None
    if not query.path:
        raise OptionError("the address has no log group", hint="write cloudwatch://eu-central-1/my/log-group")
    group = f"/{query.path}" if query.parameters.get("group") != "relative" else query.path
    span: dict[str, Any] = {"startTime": round(query.since * 1000), "endTime": round(query.until * 1000)}
    for name, option in (("filterPattern", "filter"), ("logStreamNamePrefix", "prefix")):
        if query.parameters.get(option):
            span[name] = query.parameters[option]
    try:
        config = Config(retries={"max_attempts": 8, "mode": "adaptive"})
        client = botocore.session.get_session().create_client("logs", region_name=query.host, config=config)
        for events in _pages(client, {"logGroupName": group, **span}):
            for event in events:
                text = format_line(int(event["timestamp"]) * 10**6, str(event["message"]))
                yield Piece(f"{event['logStreamName']}.log", text)
    except (BotoCoreError, ClientError) as error:
        raise InputError(f"CloudWatch refused: {error}", hint="check region, group and credentials") from None


def _pages(client: Any, query: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Yield the events of each page. botocore reads a response that was cut as one without events: it is read again."""

    def ask() -> dict[str, Any]:
        page: dict[str, Any] = client.filter_log_events(**query)
        if "events" not in page:
            raise RetryLater("the response was cut")
        return page

    while True:
        page = repeat(ask)
        yield page["events"]
        token = page.get("nextToken")
        if token in (None, query.get("nextToken")):
            return
        query = {**query, "nextToken": token}
