"""`triage token`: who may use the service from afar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer

from triage.cli import options

Scopes = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        "-s",
        metavar="SCOPE",
        help="read, ingest, curate or admin; may be repeated. Default: read.",
        show_default=False,
    ),
]


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who or what will use it.", show_default=False)],
    scope: Scopes = None,
    expires: Annotated[
        str, typer.Option("--expires", metavar="TIME", help="How long it may be used, like 90d or 12h; never.")
    ] = "365d",
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Make a token and print it. It is shown this once; the store keeps a hash.

    \b
    Examples:
      triage token create dashboard
      triage token create ci --scope read --scope ingest --expires 90d
      triage token create anna -s read -s ingest -s curate
    """
    from triage.base.errors import OptionError
    from triage.cli import streams
    from triage.cli.failure import say

    try:
        until = None if expires == "never" else time.time() + (options.seconds(expires) or 0.0)
    except OptionError:
        raise OptionError(f"--expires {expires!r} is no time", hint="write 90d, 12h or never") from None
    streams.check(None)
    with options.stored(store, create=True) as opened:
        secret, made = opened.tokens.create(name, scope or ["read"], actor=options.actor(by), expires_at=until)
    streams.deliver(secret + "\n")
    say(f"token {made.id} for {made.name}: {', '.join(made.scopes)}; it is not shown again")


def list_(
    every: Annotated[bool, typer.Option("--all", help="Also those that were revoked.")] = False,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write it.")
    ] = options.PlainFormat.text,
    store: options.StoreFile = None,
) -> None:
    """List tokens: what they may do, until when, and when they were last used.

    \b
    Example:
      triage token list
    """
    import json

    from triage.cli import streams
    from triage.render.layout import Paint
    from triage.render.table import as_text, day, iso

    streams.check(None)
    with options.stored(store) as opened:
        found = opened.tokens.listed(revoked=every)
    if format is options.PlainFormat.json:
        names = ("created_at", "expires_at", "used_at", "revoked_at")
        items = [
            {
                "id": t.id,
                "name": t.name,
                "prefix": t.prefix,
                "scopes": list(t.scopes),
                **{name: iso(getattr(t, name)) for name in names},
            }
            for t in found
        ]
        streams.deliver(json.dumps({"schema": "triage.tokens/1", "tokens": items}, indent=2) + "\n", utf8=True)
        return
    now = time.time()
    rows = [
        (
            *(str(t.id), t.prefix + "…", ",".join(t.scopes)),
            *(day(at) if at else "never" for at in (t.expires_at, t.used_at)),
            "revoked" if t.revoked_at else "usable" if t.alive(now) else "expired",
            t.name,
        )
        for t in found
    ]
    head = ("number", "begins with", "scopes", "expires", "last used", "state", "name")
    streams.deliver("\n".join(as_text(head, rows, 120, Paint(False)) if rows else ["no tokens"]) + "\n")


def revoke(
    token: Annotated[
        str, typer.Argument(metavar="NAME", help="Its name, its number, or how it begins.", show_default=False)
    ],
    by: options.By = None,
    store: options.StoreFile = None,
) -> None:
    """Switch a token off, and the sessions that were opened with it.

    \b
    Example:
      triage token revoke ci
    """
    from triage.cli import streams

    streams.check(None)
    with options.stored(store) as opened:
        gone = opened.tokens.revoke(token, actor=options.actor(by))
    streams.deliver(f"token {gone.id} ({gone.name}) is revoked\n")


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (("create", create), ("list", list_), ("revoke", revoke))
