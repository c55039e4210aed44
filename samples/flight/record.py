"""Record the Flight Recorder samples: `python samples/flight/record.py --python TORCH_PYTHON [KIND …]`.

Every job runs under torch 2.13.0 with gloo, with one process for each rank. Paths in the stacks are replaced by neutral
ones, together with the lengths of their strings in the pickle. TRUTH lists the fault of each kind, written by hand.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
# kind: (ranks, rule, ranks at fault, group, seq, since, environment). The barrier before the job is #1 of the default
# group.
TRUTH: dict[str, tuple[int, str | None, list[int], str, int, int | None, dict[str, str]]] = {
    "healthy": (4, None, [], "", 0, None, {}),
    "never_joined": (4, "never-joined", [2], "default_pg", 10, None, {}),
    "two_never_joined": (8, "never-joined", [1, 5], "default_pg", 10, None, {}),
    "other_call": (4, "divergent-call", [1], "default_pg", 10, None, {}),
    "swapped": (4, "divergent-call", [3], "default_pg", 10, None, {}),
    "other_size": (4, "shape-mismatch", [3], "default_pg", 10, None, {}),
    "other_type": (4, "dtype-mismatch", [2], "default_pg", 10, None, {}),
    "rank_zero_only": (4, "rank-conditional", [0], "default_pg", 8, 8, {}),
    "extra_call": (4, "rank-conditional", [2], "default_pg", 6, 4, {}),
    "one_batch_more": (4, "extra-collective", [1], "default_pg", 6, None, {}),
    "skipped": (5, "divergent-call", [3], "default_pg", 11, 7, {}),
    "group_order": (4, "group-order", [2], "grp_b (2)", 4, None, {}),
    "wrong_group": (4, "wrong-group", [1], "grp_b (2)", 5, None, {}),
    "cascade": (6, "never-joined", [3], "tp1 (2)", 4, None, {}),
    "never_in_group": (4, "never-joined", [2], "tp0 (1)", 1, None, {}),
    "all_in_one": (4, "stuck-in-collective", [0, 1, 2, 3], "default_pg", 11, None, {"PAUSE": "0.3"}),
    "died": (4, "never-joined", [1], "default_pg", 10, None, {}),
    "half_and_half": (4, "divergent-call", [0, 1, 2, 3], "default_pg", 10, None, {}),
    "small_ring": (4, "never-joined", [2], "default_pg", 62, None, {"TORCH_FR_BUFFER_SIZE": "20"}),
    "queued": (4, "never-joined", [1], "default_pg", 10, None, {}),
    # Gloo does not record this barrier: the dumps hold nothing of the hang.
    "monitored_barrier": (4, None, [], "", 0, None, {}),
    # DETAIL waits in a barrier of its own, which is not recorded either.
    "never_joined_detail": (4, None, [], "", 0, None, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
}


def neutralise_paths(data: bytes, python: str) -> bytes:
    """Replace the recorder's paths. In a pickle a string is X, four bytes of length, and the text."""
    prefixes = {
        str(Path(python).parents[1]).encode(): b"/opt/train/venv",
        str(HERE.resolve()).encode(): b"/home/user/job",
    }
    base = subprocess.run(
        [python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, check=True
    ).stdout.strip()
    prefixes[base] = b"/opt/python"
    for old, new in prefixes.items():
        pattern = re.compile(rb"X(....)" + re.escape(old), re.S)
        data = pattern.sub(
            lambda m, o=old, n=new: b"X" + (int.from_bytes(m[1], "little") - len(o) + len(n)).to_bytes(4, "little") + n,
            data,
        )
    return data


def record(kind: str, python: str) -> None:
    """Run the job of one kind, and store its dumps."""
    size, _, _, _, _, _, environment = TRUTH[kind]
    target = HERE / kind
    with tempfile.TemporaryDirectory() as scratch:
        env = {
            **os.environ,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(29000 + os.getpid() % 900),
            "WORLD_SIZE": str(size),
            "OUT": scratch,
            "OMP_NUM_THREADS": "1",
            **environment,
        }
        command = [python, str(HERE / "faults.py"), kind.removesuffix("_detail")]
        ranks = [
            subprocess.Popen(command, env={**env, "RANK": str(rank)}, stderr=subprocess.DEVNULL) for rank in range(size)
        ]
        deadline = time.time() + 240
        try:
            for rank in ranks:
                rank.wait(max(1, deadline - time.time()))
        finally:
            for rank in ranks:
                rank.kill()
        target.mkdir(exist_ok=True)
        for old in target.glob("fr_rank_*"):
            old.unlink()
        for file in sorted(Path(scratch).glob("fr_rank_*")):
            (target / file.name).write_bytes(neutralise_paths(file.read_bytes(), python))


def truth(kind: str) -> str:
    """Return the text of TRUTH.yaml for one kind."""
    size, rule, ranks, group, seq, since, environment = TRUTH[kind]
    lines = [
        f"rule: {rule or 'null'}",
        f"ranks: {ranks}",
        f"group: {group!r}",
        f"seq: {seq}",
        f"since: {since if since else 'null'}",
    ]
    lines += [f"world_size: {size}", "torch: 2.13.0", "backend: gloo", f"environment: {environment}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Record the kinds that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--truth-only", action="store_true")
    parser.add_argument("kinds", nargs="*", metavar="KIND", default=list(TRUTH))
    args = parser.parse_args()
    for kind in args.kinds:
        print(kind, flush=True)
        if not args.truth_only:
            record(kind, args.python)
        (HERE / kind).mkdir(exist_ok=True)
        (HERE / kind / "TRUTH.yaml").write_text(truth(kind))


if __name__ == "__main__":
    main()
