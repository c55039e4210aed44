"""The environment lacks a module, on all ranks, before any rank joins the group."""

from fused_rotary import apply_rotary  # type: ignore[import-not-found]
from trainlib import Job


def main() -> None:
    """Train with fused kernels, which are not installed."""
    job = Job()
    apply_rotary(job.model)
    job.train(1, 10)


if __name__ == "__main__":
    main()
