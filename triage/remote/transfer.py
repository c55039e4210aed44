"""Send requests: repeat those that fail for a moment, count them, and say without secrets why one failed."""

from __future__ import annotations

import errno
import os
import random
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from triage.base.request_totals import RequestTotals, add_cost
from triage.model.diagnosis import RemoteCost

T = TypeVar("T")
ATTEMPTS = 8
FIRST_DELAY = 0.1
LONGEST_DELAY = 10.0
_MOMENTARY_STATUSES = (408, 409, 425, 429)
_MOMENTARY_CODES = ("RequestTimeout", "SlowDown", "Throttling", "RequestLimitExceeded")
_STATUS_ERRORS = {401: errno.EACCES, 403: errno.EACCES, 404: errno.ENOENT, 410: errno.ENOENT, 416: errno.ENODATA}
_LASTING_ERRNOS = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ENODATA)
_LASTING_NAMES = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "TokenRetrievalError",
    "UnauthorizedSSOTokenError",
    "DefaultCredentialsError",
    "RefreshError",
    "AuthenticationException",
    "UnknownHostKeyError",
    "BadHostKeyException",
    "RefusedHostError",
)
"""Classes of errors, of packages that may not be there, that another attempt does not mend."""


class Transfer:
    """Sends requests from any thread, and counts them.

    A failed request is repeated ATTEMPTS times with longer and longer pauses. `sleep` is replaced by tests.
    """

    def __init__(self, sleep: Callable[[float], object] = time.sleep) -> None:
        self._sleep = sleep
        self._lock = threading.Lock()
        self._cost = RequestTotals()

    def cost(self) -> RemoteCost:
        """Return what was sent and received so far."""
        return RemoteCost(*self._cost)

    def _count(self, cost: RequestTotals) -> None:
        with self._lock:
            self._cost = self._cost.plus(cost)
        add_cost(cost)

    def call(self, request: Callable[[], T]) -> T:
        """Return the result of a request. Raises OSError with a text that holds no secret."""
        for attempt in range(ATTEMPTS):
            self._count(RequestTotals(requests=1, retries=int(attempt > 0)))
            try:
                return request()
            except ImportError:
                raise
            except Exception as error:  # each file system has its own errors
                number, reason, is_momentary = explain_failure(error)
                release_frames(error)
                if not is_momentary or attempt + 1 == ATTEMPTS:
                    attempts = f" after {attempt + 1} attempts" if attempt else ""
                    raise OSError(number, reason + attempts) from None
            delay = min(LONGEST_DELAY, FIRST_DELAY * 2**attempt)
            self._sleep(delay * random.uniform(0.5, 1.0))  # readers shall not all come back at once
        raise AssertionError("the last attempt returns or raises")

    def count_bytes(self, count: int) -> None:
        """Count bytes that were received."""
        self._count(RequestTotals(bytes=count))


class IncompleteError(Exception):
    """Fewer bytes came than were asked for: the connection was cut, or the object became shorter."""


def release_frames(error: BaseException) -> None:
    """Let go of what the functions hold that an error came through, such as half of a body.

    fsspec's functions refer to the error and the error to them, so only the garbage collector would free it; the
    command runs without one.
    """
    errors, known = [error], set[int]()
    while errors:
        one = errors.pop()
        known.add(id(one))
        traceback.clear_frames(one.__traceback__)
        errors.extend(other for other in (one.__cause__, one.__context__) if other and id(other) not in known)


def explain_failure(error: BaseException) -> tuple[int, str, bool]:
    """Return (errno, reason, whether another attempt may succeed). The reason never quotes an address."""
    cause = _first_cause(error)
    status = _http_status(cause)
    if isinstance(cause, IncompleteError):
        return errno.ENODATA, "fewer bytes came than the object has", True
    if status:
        number = _STATUS_ERRORS.get(status, errno.EIO)
        reason = os.strerror(number) if number in (errno.EACCES, errno.ENOENT) else f"the server answered {status}"
        return (
            number,
            reason + _code_of(cause),
            (
                status in _MOMENTARY_STATUSES
                or status >= 500
                or any(code in _code_of(cause) for code in _MOMENTARY_CODES)
            ),
        )
    if type(cause).__name__ in _LASTING_NAMES:
        return errno.EACCES, _lasting_reason(cause), False
    if isinstance(cause, FileNotFoundError):
        return errno.ENOENT, os.strerror(errno.ENOENT), False
    if isinstance(cause, PermissionError):
        return errno.EACCES, os.strerror(errno.EACCES), False
    if isinstance(cause, OSError) and cause.errno:
        is_lasting = cause.errno in _LASTING_ERRNOS
        return cause.errno, os.strerror(cause.errno), not is_lasting
    return errno.EIO, f"the connection failed ({type(cause).__name__})", True


def _first_cause(error: BaseException) -> BaseException:
    """Return the error of the package below: fsspec turns it into one of its own, sometimes a wrong one."""
    while error.__cause__ is not None and error.__cause__ is not error:
        error = error.__cause__
    by_address = getattr(error, "errors", None)  # paramiko tries each address of a host
    return next(iter(by_address.values())) if isinstance(by_address, dict) and by_address else error


def _http_status(error: BaseException) -> int:
    """Return the status that the server answered, 0 if none."""
    if type(error).__module__.startswith("aiohttp.http"):  # what aiohttp thinks of a connection that was cut
        return 0
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        names = ("status", "status_code", "code")  # of the error, or of the response of requests
        status = next(
            (value for part in (error, response) for name in names if (value := getattr(part, name, None))), 0
        )
    return int(status) if isinstance(status, int) or (isinstance(status, str) and status.isdigit()) else 0


def _code_of(error: BaseException) -> str:
    response: Any = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code", "") if isinstance(response, dict) else ""
    return f" ({code})" if code and not str(code).isdigit() else ""


def _lasting_reason(error: BaseException) -> str:
    if type(error).__name__ in ("RefusedHostError", "UnknownHostKeyError"):
        return str(error)
    return f"there are no usable credentials ({type(error).__name__})"
