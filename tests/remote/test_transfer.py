"""triage.remote.transfer"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from triage.remote.transfer import Transfer


class Body:
    """What came of a body before the connection was cut."""


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Run without the garbage collector, as `triage ingest` does."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("is_translated", [False, True])
def test_what_a_failed_request_received_is_freed(is_translated: bool) -> None:
    """It is gone before the next attempt, although the error and the function that raised it refer to each other."""
    bodies: list[weakref.ref[Body]] = []

    def receive() -> None:
        body = Body()
        bodies.append(weakref.ref(body))
        error = ConnectionResetError("cut")  # this variable and the traceback of the error are a cycle
        raise error

    def request() -> int:
        if bodies:
            assert bodies[-1]() is None
        if len(bodies) == 3:
            return 3
        try:
            receive()
        except ConnectionResetError as error:
            if not is_translated:
                raise
            raise TimeoutError("the server sent nothing") from error
        raise AssertionError("it always fails")

    assert Transfer(sleep=lambda seconds: None).call(request) == 3


@pytest.mark.usefixtures("no_collector")
def test_the_last_failure_holds_nothing_either() -> None:
    """The error that is raised in the end names the reason, and holds nothing that was received."""
    bodies: list[weakref.ref[Body]] = []

    def request() -> None:
        body = Body()
        bodies.append(weakref.ref(body))
        error = PermissionError(13, "no")
        raise error

    with pytest.raises(OSError, match="Permission denied") as raised:
        Transfer().call(request)
    assert raised.value.errno == 13
    assert bodies[0]() is None
