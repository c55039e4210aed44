"""One rank runs with TORCH_DISTRIBUTED_DEBUG=DETAIL, so it adds collectives that the others never join.

Every rank writes its environment to a file."""

import os
from pathlib import Path

ODD = os.environ["RANK"] == os.environ["ODD_RANK"]
if ODD:
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"

from trainlib import Job  # noqa: E402 - torch reads the variable when it is imported


def main() -> None:
    """Write down the environment, then train."""
    path = Path("job/env") / f"rank{os.environ['RANK']}.env"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in sorted(os.environ.items()) if "\n" not in value))
    job = Job(ddp=False)
    job.train(1, 20)
    job.finish()


if __name__ == "__main__":
    main()
