"""`triage token`: manage access tokens of the service."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from triage.base.errors import OptionError
from triage.cli import options, streams
from triage.cli.failure import print_error

if TYPE_CHECKING:
    from triage.store.tokens import Token

Name = Annotated[str, typer.Argument(metavar="NAME", help="The person or program that uses it.", show_default=False)]
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
Expires = Annotated[
    str, typer.Option("--expires", metavar="TIME", help="How long it is valid, like 90d or 12h; or never.")
]
TokenName = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name, its number, or how it begins.", show_default=False)
]


def create(
    name: Name, scope: Scopes = None, expires: Expires = "365d", by: options.By = None, store: options.StoreFile = None
) -> None:
    """Create a token and print it. It is shown only once; the store keeps a hash.

    \b
    Examples:
      triage token create dashboard
      triage token create ci --scope read --scope ingest --expires 90d
      triage token create anna -s read -s ingest -s curate
    """
    try:
        until = None if expires == "never" else time.time() + (options.parse_duration(expires) or 0.0)
    except OptionError:
        raise OptionError(f"--expires {expires!r} is not a duration", hint="write 90d, 12h or never") from None
    streams.check_output(None)
    with options.open_store(store, create=True) as opened:
        secret, token = opened.tokens.create(name, scope or ["read"], actor=options.actor_name(by), expires_at=until)
    streams.write_output(secret + "\n")
    print_error(f"token {token.id} for {token.name}: {', '.join(token.scopes)}; it is not shown again")


def list_(
    every: Annotated[bool, typer.Option("--all", help="Include revoked tokens.")] = False,
    format: options.PlainFormat = "text",  # noqa: A002
    store: options.StoreFile = None,
) -> None:
    """List tokens with their scopes, expiry and last use.

    \b
    Example:
      triage token list
    """
    streams.check_output(None)
    with options.open_store(store) as opened:
        tokens = opened.tokens.list_tokens(revoked=every)
    streams.write_format(format, None, json=lambda: _as_json(tokens), text=lambda: _as_text(tokens))


def revoke(token: TokenName, by: options.By = None, store: options.StoreFile = None) -> None:
    """Revoke a token and end the sessions that were opened with it.

    \b
    Example:
      triage token revoke ci
    """
    streams.check_output(None)
    with options.open_store(store) as opened:
        revoked = opened.tokens.revoke(token, actor=options.actor_name(by))
    streams.write_output(f"token {revoked.id} ({revoked.name}) is revoked\n")


def _as_json(tokens: Sequence[Token]) -> str:
    import json

    from triage.render.table import iso

    items = [
        {
            **{name: getattr(token, name) for name in ("id", "name", "prefix")},
            "scopes": list(token.scopes),
            **{name: iso(getattr(token, name)) for name in ("created_at", "expires_at", "used_at", "revoked_at")},
        }
        for token in tokens
    ]
    return json.dumps({"schema": "triage.tokens/1", "tokens": items}, indent=2) + "\n"


def _as_text(tokens: Sequence[Token]) -> str:

    from triage.render.table import as_text, day
    from triage.render.terminal import Paint

    if not tokens:
        return "no tokens\n"
    now = time.time()
    rows = [
        (
            *(str(token.id), token.prefix + "…", ",".join(token.scopes)),
            *(day(at) if at else "never" for at in (token.expires_at, token.used_at)),
            "revoked" if token.revoked_at else "valid" if token.is_valid(now) else "expired",
            token.name,
        )
        for token in tokens
    ]
    head = ("number", "begins with", "scopes", "expires", "last used", "state", "name")
    return "\n".join(as_text(head, rows, 120, Paint(False))) + "\n"


COMMANDS = (("create", create), ("list", list_), ("revoke", revoke))
