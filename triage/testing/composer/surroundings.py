"""What else lies there: the kernel's logs, and files that say nothing of the failure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from triage.testing.composer.extra_files import write_extra_files
from triage.testing.composer.kernel_logs import write_kernel_logs
from triage.testing.composer.model import LogLine, Story, World


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Files beside those of the layout. `logs`: by path, lines in their order. `artifacts`: files that are no logs."""

    logs: Mapping[str, tuple[LogLine, ...]]
    artifacts: Mapping[str, bytes]


def draw_surroundings(story: Story, world: World, rng: random.Random) -> Surroundings:
    """Return the kernel's logs of the story, sometimes those of healthy nodes, what people stored, and other files."""
    kernel_logs = write_kernel_logs(story, world, rng)
    return Surroundings(kernel_logs, {**write_extra_files(world, rng), **story.artifacts})
