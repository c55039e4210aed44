"""Workers of a Dask cluster: `--dask ADDRESS`, or the file in which its scheduler wrote its address."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triage.base.errors import OptionError
from triage.base.executor_work import PATIENCE, ExecutorWorkers

_RETRIES = 3
_CONNECT_SECONDS = 15


@contextmanager
def dask_workers(address: str, patience: float | None = PATIENCE) -> Iterator[ExecutorWorkers]:
    """Connect to a scheduler and give its workers; the connection ends with the block.

    Raises OptionError if Dask is not installed or the scheduler cannot be reached.
    """
    try:
        import distributed
    except ImportError:
        raise OptionError("--dask needs Dask", hint="pip install 'triage-kb[dask]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said at the end
    connect: Any = distributed.Client  # it has no types
    place = {"scheduler_file": address} if os.path.isfile(address) else {"address": address}
    try:
        client = connect(**place, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OptionError(
            f"cannot connect to a Dask scheduler: {reason}",
            hint="give its address, like tcp://host:8786, or its scheduler file",
            path=address,
        ) from None
    with client:
        yield ExecutorWorkers(client.get_executor(pure=False, retries=_RETRIES), patience)
