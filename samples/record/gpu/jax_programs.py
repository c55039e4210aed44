"""Programs of JAX, a process a rank, all on the first GPU: each works for itself, they share only the coordinator."""

from __future__ import annotations

import logging
import os
import signal
import time

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ODD = int(os.environ.get("ODD_RANK", "1"))
log = logging.getLogger("trainer")


def train(first: int = 1, last: int = 4) -> None:
    import jax.numpy as jnp

    for number in range(first, last + 1):
        total = jnp.ones((64, 64)).sum()
        log.info("step %d loss %.4f", number, float(total) / 1000 - 0.1 * number)
        time.sleep(0.2)


def jax_task_killed():
    train()
    if RANK == ODD:
        os.kill(os.getpid(), signal.SIGKILL)
    train(5, 400)


def jax_out_of_memory():
    import jax.numpy as jnp

    train()
    if RANK == ODD:
        jnp.ones((300 << 28,)).block_until_ready()
    train(5, 200)


def jax_shapes_differ():
    import jax.numpy as jnp

    train()
    if RANK == ODD:
        jnp.ones((4, 8)) @ jnp.ones((4, 8))
    train(5, 200)


def main() -> None:
    """Join and run the program that KIND names."""
    import jax

    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank {RANK}] %(levelname)s %(name)s: %(message)s")
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    jax.distributed.initialize(address, WORLD, RANK, heartbeat_timeout_seconds=10)
    log.info("joined: process %d of %d, %d devices", RANK, WORLD, jax.device_count())
    globals()[os.environ["KIND"]]()
    log.info("training finished, 0 errors")


if __name__ == "__main__":
    main()
