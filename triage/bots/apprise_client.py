"""Send one message through the library apprise, and turn its failures into errors of the bots.

apprise reports only success or failure, and some of its services wait or repeat on their own. So the responses of its
HTTP client are observed: a 429 or 5xx ends the attempt at once, and its Retry-After goes to the outbox.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from triage.base.errors import OptionError
from triage.bots.http import read_retry_after
from triage.bots.interface import Held, RetryLater, Undelivered, Unsure

_ONE_AT_A_TIME = threading.Lock()
# Attributes of apprise's services for a key by which the receiver folds repeated deliveries into one.
_KEY_ATTRIBUTES = ("dedup", "alias")
_OF_GATEWAYS = (502, 504)  # the answer of the receiver was lost behind a gateway

REPEATED = "Sent again, because the answer to the first message was lost. If you see it twice, it is one failure."


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """What is sent. `key` stays the same when a delivery is repeated."""

    title: str
    body: str
    key: str


def send(
    url: str, message: ChannelMessage, *, is_failure: bool, timeout: float, is_repeat: bool = False, hold: bool = False
) -> None:
    """Send the message to an address of apprise. Raises RetryLater or Undelivered; no error contains the address.

    `is_repeat`: an earlier try may have arrived. Where the receiver does not fold the two, the message says so, or with
    `hold` it is not sent.
    """
    library = _import_library()
    service = library.Apprise.instantiate(url)
    if service is None:
        raise Undelivered(
            "apprise cannot read the address of the channel", hint="see https://github.com/caronc/apprise"
        )
    service.socket_connect_timeout = service.socket_read_timeout = timeout
    service.overflow_mode = library.OverflowMode.TRUNCATE  # several messages would be several notifications
    is_doubled = is_repeat and not _folds(service)
    if is_doubled and hold:
        raise Held(
            "nobody knows whether the message arrived: the answer to it was lost",
            hint="look into the channel; `triage outbox retry` sends it again",
        )
    for name in _KEY_ATTRIBUTES:
        if getattr(service, name, "") is None:
            setattr(service, name, message.key)
    apprise = library.Apprise(asset=library.AppriseAsset(async_mode=False))
    apprise.add(service)
    kind = library.NotifyType.FAILURE if is_failure else library.NotifyType.WARNING
    with _ONE_AT_A_TIME, _observe_responses() as exchange, _name_mails(message):
        is_sent = apprise.notify(
            body=neutralize(f"{REPEATED}\n\n{message.body}" if is_doubled else message.body),
            title=neutralize(message.title),
            notify_type=kind,
            body_format=library.NotifyFormat.TEXT,
        )
    if not is_sent:
        raise _describe_failure(str(service.service_name), exchange)


def _folds(service: Any) -> bool:
    """Whether the receiver makes one of two deliveries: by a key, or mailboxes by the Message-ID."""
    has_key = any(hasattr(service, name) for name in _KEY_ATTRIBUTES)
    return has_key or type(service).__module__.startswith("apprise.plugins.email")


def _import_library() -> Any:
    try:
        import apprise
    except ModuleNotFoundError as error:
        raise OptionError(
            f"the package {error.name} is not installed", hint="pip install 'triage-kb[channels]'"
        ) from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # it would log addresses with their secrets
    return apprise


@dataclass(slots=True)
class _Exchange:
    """The HTTP responses of an attempt, and whether it found no receiver to send anything to."""

    responses: list[Any]
    is_unreached: bool = False


@contextlib.contextmanager
def _observe_responses() -> Iterator[_Exchange]:
    """Yield what gets the HTTP responses; one that asks to come later ends the attempt."""
    import requests
    import urllib3

    exchange = _Exchange([])
    send = requests.Session.send

    def observe(session: Any, request: Any, **options: Any) -> Any:
        try:
            response = send(session, request, **options)
        except requests.ConnectionError as error:
            reason = getattr(error.args[0], "reason", None) if error.args else None
            exchange.is_unreached = isinstance(
                reason, (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
            )
            raise
        exchange.responses.append(response)
        if response.status_code == 429 or response.status_code >= 500:
            raise requests.RequestException("the receiver asks to come later")
        return response

    setattr(requests.Session, "send", observe)  # noqa: B010 - mypy refuses to assign to a method
    try:
        yield exchange
    finally:
        setattr(requests.Session, "send", send)  # noqa: B010


@contextlib.contextmanager
def _name_mails(message: ChannelMessage) -> Iterator[None]:
    """Give a mail the same Message-ID when its delivery is repeated: many mail servers show such mails once."""
    from apprise.plugins.email import base

    module: Any = base
    make_msgid = module.make_msgid
    name = hashlib.sha256(f"{message.key}\0{message.title}".encode()).hexdigest()[:32]

    def make_same(domain: str | None = None, **_: object) -> str:
        return f"<{name}@{domain or 'triage'}>"

    module.make_msgid = make_same
    try:
        yield
    finally:
        module.make_msgid = make_msgid


def _describe_failure(service: str, exchange: _Exchange) -> Undelivered:
    """Return the error for a failed delivery: permanent only if the receiver refused it."""
    responses = exchange.responses
    if not responses and exchange.is_unreached:
        return RetryLater(f"{service} was not reached")
    if not responses:
        return Unsure(f"{service} did not confirm the message")
    status = responses[-1].status_code
    headers = {name.lower(): value for name, value in responses[-1].headers.items()}
    if status < 400 or status in _OF_GATEWAYS:
        return Unsure(f"{service} answered {status}", wait=read_retry_after(headers))
    if status == 429 or status >= 500:
        return RetryLater(f"{service} answered {status}", wait=read_retry_after(headers))
    return Undelivered(
        f"{service} answered {status}",
        hint="check the address of the channel in the settings, then run `triage outbox retry`",
    )


def neutralize(text: str) -> str:
    """Let text from logs mention nobody and make no links, by invisible characters."""
    return text.replace("@", "@\u200b").replace("](", "]\u200b(")
