"""A replay as a torchrun script that needs nothing but torch."""

from __future__ import annotations

import pprint
from collections.abc import Mapping, Sequence

from triage.artifacts.flight.replay import Replay, Step
from triage.render import words
from triage.render.safe import safe_line

_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32", "Short": "int16",
    "Byte": "uint8", "Char": "int8", "Bool": "uint8", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip


def script(replay: Replay, *, origin: str, name: str = "repro.py") -> str:
    """The text of the script."""
    head = _head(replay, origin, name)
    groups = pprint.pformat(
        {safe_line(label): list(members) for label, members in replay.groups.items()}, width=132, sort_dicts=False
    )
    parts = [
        f'"""{head}"""\n',
        _IMPORTS,
        f"# Global ranks of each process group.\nGROUPS = {groups}\n",
        "# What each rank called, oldest first: operation, elements in, elements out, dtype, group, rank that sends, receives or is the root.",
        f"CALLS = {_programs(replay.calls)}\n",
        "# The same as it should have been: with --fix-rank, the ranks at fault make the calls of the others, and all go on together.",
        f"FIXED = {_programs(replay.fixed)}\n",
        _BODY,
    ]
    return "\n".join(parts)


def _head(replay: Replay, origin: str, name: str) -> str:
    fault = replay.fault
    told = _quiet(fault.text) if fault else "The dumps show no fault; this only replays what they hold."
    ranks = max((rank for rank in replay.calls), default=0) + 1
    run = f"    torchrun --nproc-per-node {ranks} {_quiet(name)} --backend gloo"
    lines = [
        f"Replays the last collectives of {_quiet(origin)}, each rank in its own order. Written by triage repro.",
        "",
        told,
        "",
    ]
    if fault and replay.hangs:
        lines += ["The program alone is enough to hang, on any backend:", run]
        if replay.passes:
            lines += [
                "and it goes through with the ranks at fault corrected:",
                f"{run} --fix-rank {','.join(map(str, fault.ranks))}",
            ]
    elif fault:
        lines += [
            "The calls fit together: on another network this goes through, and where it hangs, the network or a device is at fault:",
            run,
        ]
    else:
        lines += [run]
    lines += [
        "",
        "Change one setting at a time with --env NAME=VALUE; --check-determinism N compares N runs of one reduction.",
    ]
    return "\n".join(lines) + "\n"


def _quiet(text: str) -> str:
    """Text for a docstring or a comment of the script: no line ends, quotes or backslashes from a dump."""
    return safe_line(text).replace("\\", "/").replace('"', "'")


def _programs(program: Mapping[int, Sequence[Step]]) -> str:
    """Ranks with equal calls share one list."""
    shared: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for rank, steps in program.items():
        shared.setdefault(tuple(map(_step, steps)), []).append(rank)
    out = ["{"]
    for lines, ranks in shared.items():
        out.append(f"    # {words.ranks(ranks)}")
        out.append(f"    {tuple(ranks)!r}: [")
        out += [f"        {call},  # {comment}" for call, comment in lines]
        out.append("    ],")
    return "\n".join([*out, "}"])


def _step(step: Step) -> tuple[str, str]:
    who = step.peer if step.peer is not None else step.root
    dtype = _DTYPES.get(step.dtype, "float32")
    call = (safe_line(step.op), step.inputs, step.outputs, dtype, safe_line(step.group), who)
    return repr(call), _quiet(f"#{step.number} {step.place}").strip()


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
    parser.add_argument("--timeout", type=float, default=20, help="seconds without progress after which it is called a hang")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="set before torch starts, e.g. NCCL_ALGO=Ring")
    parser.add_argument("--fix-rank", default="", metavar="RANKS", help="make these ranks do what they should have done, e.g. 3 or 1,5")
    parser.add_argument("--check-determinism", type=int, default=0, metavar="N", help="reduce the same data N times, print checksums")
    return parser.parse_args()


args = arguments()
os.environ.update(dict(setting.split("=", 1) for setting in args.env))
import torch  # noqa: E402 - after the settings
import torch.distributed as dist  # noqa: E402

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FIX = [int(rank) for rank in args.fix_rank.split(",") if rank]
DEVICE = {"nccl": "cuda", "hccl": "npu", "gloo": "cpu"}[args.backend]


def calls_of(rank):
    """The calls of a rank. With --fix-rank the corrected ranks go another way, and the others go on behind the hang."""
    table = FIXED if FIX else CALLS
    return next((calls for ranks, calls in table.items() if rank in ranks), [])


def tensor(elements, dtype):
    return torch.ones(elements, dtype=getattr(torch, dtype), device=DEVICE)


def run(op, inputs, outputs, dtype, group, who, groups):
    """One collective, and wait for it."""
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
        return dist.gather(tensor(inputs, dtype), [tensor(inputs, dtype) for _ in members] if RANK == root else None, root, group=handle)
    if op == "scatter":
        return dist.scatter(tensor(outputs, dtype), [tensor(outputs, dtype) for _ in members] if RANK == root else None, root, group=handle)
    if "all_to_all" in op or "alltoall" in op:
        size = inputs - inputs % len(members)
        return dist.all_to_all_single(tensor(size, dtype), tensor(size, dtype), group=handle)
    if "reduce_scatter" in op:
        return dist.reduce_scatter(tensor(outputs, dtype), [tensor(outputs, dtype) for _ in members], group=handle)
    if "gather" in op:
        return dist.all_gather([tensor(inputs, dtype) for _ in members], tensor(inputs, dtype), group=handle)
    return dist.all_reduce(tensor(inputs, dtype), group=handle)


def check_determinism(groups, store):
    """The same reduction of the same data again and again; on every rank and in every step the checksum must be one."""
    sizes = [call[1] for call in calls_of(RANK) if "reduce" in call[0]] or [1 << 16]
    for step in range(args.check_determinism):
        data = torch.randn(max(sizes), generator=torch.Generator().manual_seed(RANK)).to(DEVICE)
        dist.all_reduce(data)
        words = data.cpu().view(torch.int32).to(torch.int64)
        checksum = int((words * torch.arange(1, len(words) + 1)).sum()) & 0xFFFFFFFFFFFFFFFF
        print(f"[rank{RANK}]: step {step} checksum 0x{checksum:016x}", flush=True)
        store.set(f"checksum/{step}/{RANK}", f"{checksum:016x}")


def differing(store):
    """Calls of one number that were not one call, told by what each rank said before it called."""
    found = []
    for group, members in GROUPS.items():
        for number in range(max((len(calls_of(rank)) for rank in members), default=0)):
            said = {rank: store.get(f"call/{group}/{number}/{rank}").decode() for rank in members if store.check([f"call/{group}/{number}/{rank}"])}
            if len(set(said.values())) > 1:
                found.append(f"MISMATCH in {group}: " + "; ".join(f"rank {rank}: {call}" for rank, call in said.items()))
                break
    for step in range(args.check_determinism):
        sums = {store.get(f"checksum/{step}/{rank}").decode() for rank in range(WORLD) if store.check([f"checksum/{step}/{rank}"])}
        if len(sums) > 1 or (step and sums != {store.get("checksum/0/0").decode()}):
            found.append(f"NOT DETERMINISTIC: step {step} has checksums {sorted(sums)}")
    return found


def watch(store):
    """Rank 0 waits until all are done, somebody fails, or nothing moves; then it says where every rank stands."""
    before, moved = None, time.monotonic()
    while True:
        time.sleep(0.2)
        now = [store.get(f"at/{rank}").decode() for rank in range(WORLD)]
        if now != before:
            before, moved = now, time.monotonic()
        done = all(place == "done" for place in now)
        if done or any(place.startswith("failed") for place in now) or time.monotonic() - moved > args.timeout:
            break
    wrong = differing(store)
    for line in wrong:
        print(line, flush=True)
    if not done:
        print("\\n".join(f"{'HANG' if place[:6] != 'failed' else 'FAILED'} rank {rank}: {place}" for rank, place in enumerate(now)), flush=True)
    print("REPRODUCED" if wrong or not done else "PASSED", flush=True)
    store.set("over", "1" if wrong or not done else "0")


def leave(store):
    """Every rank ends when rank 0 has seen enough, whatever call it stands in."""
    while not store.check(["over"]):  # a blocking wait would keep the store from the others
        time.sleep(0.2)
    code = int(store.get("over"))
    time.sleep(0.5 if RANK == 0 else 0)
    os._exit(code)


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
    groups = {name: dist.group.WORLD if sorted(members) == list(range(WORLD)) and name == "default_pg" else dist.new_group(members)
              for name, members in GROUPS.items()}
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
            store.set(f"at/{RANK}", f"{op} {inputs} {dtype} of {group}, call {number + 1} of this group here")
            if op not in ("send", "recv"):
                store.set(f"call/{group}/{number}/{RANK}", f"{op} {0 if op in ('gather', 'scatter') else inputs} {dtype}")
            run(op, inputs, outputs, dtype, group, who, groups)
        store.set(f"at/{RANK}", "done")
    except Exception as error:
        store.set(f"at/{RANK}", f"failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300])
    threading.Event().wait()


if __name__ == "__main__":
    if FIX and not FIXED:
        raise SystemExit("--fix-rank: the dumps do not tell what these ranks should have done")
    main()
'''
