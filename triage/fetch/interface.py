"""What a source gets and yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, unquote, urlsplit

from triage.base.errors import OptionError


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """An address in parts, and the span of time in seconds since 1970."""

    scheme: str
    host: str
    path: str
    parameters: Mapping[str, str]
    since: float
    until: float

    @property
    def base_url(self) -> str:
        """The address of the service: https, and http for `SCHEME+http`."""
        return f"{'http' if self.scheme.endswith('+http') else 'https'}://{self.host}"

    def require(self, name: str, example: str) -> str:
        """Return a parameter. Raises OptionError if it is missing."""
        value = self.parameters.get(name, "")
        if not value:
            raise OptionError(f"the address has no {name}", hint=f"write it as {example}")
        return value


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text of one file, or why there is none of it."""

    name: str
    text: str
    problem: str = ""


Source = Callable[[SourceQuery], Iterator[Piece]]


def parse_query(address: str, since: float, until: float) -> SourceQuery:
    """Take an address apart. Raises OptionError for one with a password, which processes and histories show."""
    if address.startswith("https://wandb.ai/"):  # a link that was copied from the browser
        address = address.replace("https", "wandb", 1)
    parts = urlsplit(address)
    if "@" in parts.netloc:
        raise OptionError(
            f"an address of {parts.scheme} must hold no user or password",
            hint="give them in the environment; docs/fetching.md names the variables",
        )
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    return SourceQuery(parts.scheme, parts.netloc, unquote(parts.path).strip("/"), parameters, since, until)


def format_line(nanoseconds: int, text: str) -> str:
    """Return a line behind its time, as `kubectl logs --timestamps` writes it."""
    seconds, fraction = divmod(nanoseconds, 10**9)
    when = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    lines = text.rstrip("\n").split("\n")
    return "".join(f"{when}.{fraction:09d}Z {line}\n" for line in lines)
