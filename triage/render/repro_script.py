"""A replay of collectives as a torchrun script that needs nothing but torch."""

from __future__ import annotations

import pprint
from collections.abc import Mapping, Sequence

from triage.artifacts.flight.replay import Replay, Step
from triage.base.rank_ranges import format_ranks
from triage.render.sanitize import sanitize_line

_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Byte": "uint8",
    "Char": "int8",
    "Bool": "uint8",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}


def script(replay: Replay, *, origin: str, name: str = "repro.py") -> str:
    """Return the text of the script."""
    head = _head(replay, origin, name)
    groups = pprint.pformat(
        {sanitize_line(label): list(members) for label, members in replay.groups.items()}, width=132, sort_dicts=False
    )
    parts = [
        f'"""{head}"""\n',
        _IMPORTS,
        f"# Global ranks of each process group.\nGROUPS = {groups}\n",
        "# The calls of each rank, oldest first: operation, elements in, elements out, dtype, group,\n"
        "# and the rank that sends, receives or is the root.",
        f"CALLS = {_format_programs(replay.calls)}\n",
        "# The corrected calls, for --fix-rank: the ranks at fault make the calls of the others, and all continue.",
        f"FIXED = {_format_programs(replay.fixed)}\n",
        _BODY,
    ]
    return "\n".join(parts)


def _head(replay: Replay, origin: str, name: str) -> str:
    fault = replay.fault
    summary = _comment_text(fault.text) if fault else "The dumps show no fault; this only replays them."
    ranks = max((rank for rank in replay.calls), default=0) + 1
    run = f"    torchrun --nproc-per-node {ranks} {_comment_text(name)} --backend gloo"
    lines = [
        f"Replay the last collectives of {_comment_text(origin)}, each rank in its own order. Written by triage repro.",
        "",
        summary,
        "",
    ]
    if fault and replay.hangs:
        lines += ["The program alone causes the hang, on any backend:", run]
        if replay.passes:
            lines += [
                "and it passes with the ranks at fault corrected:",
                f"{run} --fix-rank {','.join(map(str, fault.ranks))}",
            ]
    elif fault:
        lines += [
            "The calls fit together: on another network this passes;",
            "where it hangs, the network or a device is at fault:",
            run,
        ]
    else:
        lines += [run]
    lines += [
        "",
        "Change one setting at a time with --env NAME=VALUE; --check-determinism N compares N runs of one reduction.",
    ]
    return "\n".join(lines) + "\n"


def _comment_text(text: str) -> str:
    """Return text for a docstring or a comment: no line ends, quotes or backslashes of a dump."""
    return sanitize_line(text).replace("\\", "/").replace('"', "'")


def _format_programs(program: Mapping[int, Sequence[Step]]) -> str:
    """Return the calls by rank as Python source; ranks with equal calls share one list."""
    shared: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for rank, steps in program.items():
        shared.setdefault(tuple(map(_format_step, steps)), []).append(rank)
    out = ["{"]
    for lines, ranks in shared.items():
        calls = (f"        {call},  # {comment}" for call, comment in lines)
        out += [f"    # {format_ranks(ranks)}", f"    {tuple(ranks)!r}: [", *calls, "    ],"]
    return "\n".join([*out, "}"])


def _format_step(step: Step) -> tuple[str, str]:
    who = step.peer if step.peer is not None else step.root
    dtype = _DTYPES.get(step.dtype, "float32")
    call = (sanitize_line(step.op), step.inputs, step.outputs, dtype, sanitize_line(step.group), who)
    return repr(call), _comment_text(f"#{step.number} {step.place}").strip()


_IMPORTS = """
import argparse
import os
import threading
import time
from datetime import timedelta
"""

_BODY = '''
def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="nccl", choices=["nccl", "hccl", "gloo"])
    add = parser.add_argument
    add("--timeout", type=float, default=20, help="seconds without progress that count as a hang")
    add("--env", action="append", default=[], metavar="NAME=VALUE", help="set before torch starts, e.g. NCCL_ALGO=Ring")
    add("--fix-rank", default="", metavar="RANKS", help="correct the calls of these ranks, e.g. 3 or 1,5")
    add("--check-determinism", type=int, default=0, metavar="N", help="reduce the same data N times, print checksums")
    return parser.parse_args()


args = arguments()
os.environ.update(dict(setting.split("=", 1) for setting in args.env))
import torch  # noqa: E402 - after the settings
import torch.distributed as dist  # noqa: E402

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FIX = [int(rank) for rank in args.fix_rank.split(",") if rank]
DONE = "finished the run"
DEVICE = {"nccl": "cuda", "hccl": "npu", "gloo": "cpu"}[args.backend]


def calls_of(rank):
    """Return the calls of a rank; with --fix-rank the corrected ones, which continue after the hang."""
    table = FIXED if FIX else CALLS
    return next((calls for ranks, calls in table.items() if rank in ranks), [])


def tensor(elements, dtype):
    return torch.ones(elements, dtype=getattr(torch, dtype), device=DEVICE)


def run(op, inputs, outputs, dtype, group, who, groups):
    """Run one collective and wait for it."""
    members, handle = GROUPS[group], groups[group]
    root = members[0] if who is None else who
    if op in ("send", "recv"):
        return (dist.send if op == "send" else dist.recv)(tensor(inputs or outputs, dtype), who, group=handle)
    if op.startswith(("barrier", "all_reduce_barrier")):
        return dist.barrier(group=handle)
    if op in ("broadcast", "_broadcast_oop"):
        return dist.broadcast(tensor(inputs, dtype), root, group=handle)
    if op in ("reduce", "_reduce_oop"):
        return dist.reduce(tensor(inputs, dtype), root, group=handle)
    if op == "gather":
        parts = [tensor(inputs, dtype) for _ in members] if RANK == root else None
        return dist.gather(tensor(inputs, dtype), parts, root, group=handle)
    if op == "scatter":
        parts = [tensor(outputs, dtype) for _ in members] if RANK == root else None
        return dist.scatter(tensor(outputs, dtype), parts, root, group=handle)
    if "all_to_all" in op or "alltoall" in op:
        size = inputs - inputs % len(members)
        return dist.all_to_all_single(tensor(size, dtype), tensor(size, dtype), group=handle)
    if "reduce_scatter" in op:
        return dist.reduce_scatter(tensor(outputs, dtype), [tensor(outputs, dtype) for _ in members], group=handle)
    if "gather" in op:
        return dist.all_gather([tensor(inputs, dtype) for _ in members], tensor(inputs, dtype), group=handle)
    return dist.all_reduce(tensor(inputs, dtype), group=handle)


def check_determinism(groups, store):
    """Reduce the same data again and again; all ranks and steps must have the same checksum."""
    sizes = [call[1] for call in calls_of(RANK) if "reduce" in call[0]] or [1 << 16]
    for step in range(args.check_determinism):
        data = torch.randn(max(sizes), generator=torch.Generator().manual_seed(RANK)).to(DEVICE)
        dist.all_reduce(data)
        values = data.cpu().view(torch.int32).to(torch.int64)
        checksum = int((values * torch.arange(1, len(values) + 1)).sum()) & 0xFFFFFFFFFFFFFFFF
        print(f"[rank{RANK}]: step {step} checksum 0x{checksum:016x}", flush=True)
        store.set(f"checksum/{step}/{RANK}", f"{checksum:016x}")


def find_differences(store):
    """Return calls of one number that differ between ranks, from what each rank stored before its call."""
    differences = []
    for group, members in GROUPS.items():
        for number in range(max((len(calls_of(rank)) for rank in members), default=0)):
            keys = {rank: f"call/{group}/{number}/{rank}" for rank in members}
            calls = {rank: store.get(key).decode() for rank, key in keys.items() if store.check([key])}
            if len(set(calls.values())) > 1:
                listed = "; ".join(f"rank {rank}: {call}" for rank, call in calls.items())
                differences.append(f"MISMATCH in {group}: {listed}")
                break
    for step in range(args.check_determinism):
        keys = [f"checksum/{step}/{rank}" for rank in range(WORLD)]
        sums = {store.get(key).decode() for key in keys if store.check([key])}
        if len(sums) > 1 or (step and sums != {store.get("checksum/0/0").decode()}):
            differences.append(f"NOT DETERMINISTIC: step {step} has checksums {sorted(sums)}")
    return differences


def watch(store):
    """Wait on rank 0 until all ranks are done, one fails, or nothing moves; then print where every rank is.

    `triage ingest` reads these lines.
    """
    before, moved = None, time.monotonic()
    while True:
        time.sleep(0.2)
        now = [store.get(f"at/{rank}").decode() for rank in range(WORLD)]
        if now != before:
            before, moved = now, time.monotonic()
        done = all(place == DONE for place in now)
        if done or any(place.startswith("failed") for place in now) or time.monotonic() - moved > args.timeout:
            break
    differences = find_differences(store)
    for line in differences:
        print(line, flush=True)
    if not done:
        for rank, place in enumerate(now):
            print(f"[rank{rank}]: {place}", flush=True)
    is_reproduced = bool(differences) or not done
    print("REPRODUCED" if is_reproduced else "PASSED", flush=True)
    failing = [rank for rank, place in enumerate(now) if place != DONE] or [0] if is_reproduced else []
    store.set("over", ",".join(map(str, failing)))


def leave(store):
    """End this rank when rank 0 is finished, whatever call it waits in; with 1 if it does."""
    while not store.check(["over"]):  # a blocking wait would keep the store from the others
        time.sleep(0.2)
    failing = store.get("over").decode().split(",")
    time.sleep(0.5 if RANK == 0 else 0)
    os._exit(int(str(RANK) in failing))


def main():
    limit = timedelta(seconds=args.timeout * 3)
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if DEVICE != "cpu":
        if DEVICE == "npu":
            import torch_npu  # noqa: F401
        getattr(torch, DEVICE).set_device(int(os.environ.get("LOCAL_RANK", RANK)))
    dist.init_process_group(args.backend, timeout=limit)
    store = dist.PrefixStore("repro", dist.TCPStore(host, port + 1, WORLD, RANK == 0))
    store.set(f"at/{RANK}", "start")
    groups = {}
    for name, members in GROUPS.items():
        is_world = sorted(members) == list(range(WORLD)) and name == "default_pg"
        groups[name] = dist.group.WORLD if is_world else dist.new_group(members)
    dist.barrier()
    threading.Thread(target=leave, args=(store,), daemon=True).start()
    if RANK == 0:
        threading.Thread(target=watch, args=(store,), daemon=True).start()
    try:
        if args.check_determinism:
            check_determinism(groups, store)
        counts = {}
        for op, inputs, outputs, dtype, group, who in calls_of(RANK):
            number = counts[group] = counts.get(group, -1) + (op not in ("send", "recv"))
            if op in ("send", "recv"):
                store.set(f"at/{RANK}", f"waits in {op} {inputs} {dtype} of {group}, with rank {who}")
            else:
                store.set(f"at/{RANK}", f"waits in {op} {inputs} {dtype} of {group}, call #{number + 1}")
                elements = 0 if op in ("gather", "scatter") else inputs
                store.set(f"call/{group}/{number}/{RANK}", f"{op} {elements} {dtype}")
            run(op, inputs, outputs, dtype, group, who, groups)
        store.set(f"at/{RANK}", DONE)
    except Exception as error:
        message = str(error).splitlines()[0] if str(error) else ""
        store.set(f"at/{RANK}", f"failed: {type(error).__name__}: {message}"[:300])
    threading.Event().wait()


if __name__ == "__main__":
    if FIX and not FIXED:
        raise SystemExit("--fix-rank: the dumps do not show what these ranks should have called")
    main()
'''
