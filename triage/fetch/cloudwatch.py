"""CloudWatch Logs: `cloudwatch://REGION/LOG/GROUP?filter=…&prefix=…`, with the credentials of AWS's other programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from triage.base.errors import InputError, OptionError
from triage.fetch.interface import Piece, SourceQuery, format_line


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
        for page in client.get_paginator("filter_log_events").paginate(logGroupName=group, **span):
            for event in page["events"]:
                text = format_line(int(event["timestamp"]) * 10**6, str(event["message"]))
                yield Piece(f"{event['logStreamName']}.log", text)
    except (BotoCoreError, ClientError) as error:
        raise InputError(f"CloudWatch refused: {error}", hint="check region, group and credentials") from None
