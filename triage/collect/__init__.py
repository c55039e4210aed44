"""What a diagnosis needs, gathered on a node while the job still hangs: bounded in time and size, without secrets."""

from triage.collect.bundle import Collected, collect

__all__ = ["Collected", "collect"]
