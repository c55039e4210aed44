"""Faults that end in an uncaught Python exception of the program or of its libraries."""

from __future__ import annotations

import random
from dataclasses import replace

from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.uncaught import (
    BACKENDS,
    DIRECT_CAUSE,
    DURING_HANDLING,
    Call,
    Prelude,
    all_ranks,
    end_job,
    format_traceback,
    setup_calls,
    site_packages,
    train_until,
    training_calls,
    uncaught,
)
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import echoes, start, steps, traceback

KNOWN = frozenset({"known"})
_SOURCES = ("c4-en", "pes2o", "stack_rust", "wiki_de", "openwebmath")
_FIELDS = ("attention_mask", "prompt_ids", "bbox_3d", "speaker_id", "rewards")


def out_of_memory(world: World, rng: random.Random) -> Story:
    """One rank runs out of GPU memory in a step; the others lose their peer."""
    rank = rng.randrange(world.size)
    device, free = world.local(rank), rng.randrange(10, 900)
    error = (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU {device} has a total capacity of "
        f"79.10 GiB of which {free}.44 MiB is free. Process {world.pids[rank]} has 78.20 GiB memory in use. Of the "
        "allocated memory 71.02 GiB is allocated by PyTorch, and 5.11 GiB is reserved by PyTorch but unallocated."
    )
    count = rng.randrange(3, 12)
    at = 10.0 + count
    others, exits = echoes(world, rng, [rank], at)
    cause = traceback(world, rank, at, error, is_cause=True)
    lines = (*start(world, rng), *steps(world, rng, 10, count), cause, *others)
    truth = Truth(KNOWN, frozenset({"cuda.out-of-memory"}), frozenset({rank}), frozenset({world.node(rank)}))
    return Story(lines, truth, (Exit(rank, 1, at + 0.2), *exits))


def user_error(world: World, rng: random.Random) -> Story:
    """The program's own code raises a built-in exception on one rank."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    cause = uncaught(world, rank, before.at, program_error(world, rng))
    return end_job(world, rng, before, [cause], [None])


def program_error(world: World, rng: random.Random) -> str:
    """Return the traceback of an exception that the program's own code raised."""
    name, source, total = rng.choice(_FIELDS), rng.choice(_SOURCES), rng.randrange(900, 90_000)
    line, error = rng.choice((
        (f'target = batch["{name}"]', f"KeyError: '{name}'"),
        ("weight = self.mixture[source]", f"KeyError: '{source}'"),
        ("entry = self.index[position]", "IndexError: list index out of range"),
        ("value = float(row[column])", "ValueError: could not convert string to float: 'n/a'"),
        (
            'raise ValueError(f"sample {key}: {count} tokens, limit {limit}")',
            f"ValueError: sample {source}/{total:07d}: {rng.randrange(8193, 20_000)} tokens, limit 8192",
        ),
        (f"scale = self.stats.{name}", f"AttributeError: 'BatchStats' object has no attribute '{name}'"),
    ))  # fmt: skip
    function = rng.choice(("compute_loss", "collate", "prepare_batch", "select_targets"))
    inner = Call(f"{world.script.rpartition('/')[0]}/lib/steps.py", rng.randrange(20, 300), function, line)
    return format_traceback(world, training_calls(world, rng, f"out = {function}(batch)", inner), error)


def library_error(world: World, rng: random.Random) -> Story:
    """An in-house library wraps a first exception in its own class, on one rank."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    library, error = rng.choice((
        ("packstream", "packstream.errors.FrameDecodeError"),
        ("tokenpool", "tokenpool.TokenPoolExhausted"),
        ("featherdb", "featherdb.client.exceptions.SnapshotConflict"),
    ))  # fmt: skip
    base, block = f"{site_packages(world)}/{library}", rng.randrange(100, 99_999)
    first_error = rng.choice((
        "zlib.error: Error -3 while decompressing data: invalid distance too far back",
        f"KeyError: {block}",
        f"struct.error: unpack requires a buffer of {rng.randrange(8, 64) * 4} bytes",
    ))  # fmt: skip
    line = rng.randrange(80, 500)
    outer = Call(f"{base}/reader.py", line, "__next__", "frame = self._frames.read(block)")
    frame = Call(f"{base}/frame.py", rng.randrange(30, 90), "read", "header = self._unpack(raw)")
    first = format_traceback(world, [outer, frame], first_error)
    joint = rng.choice((DIRECT_CAUSE, DURING_HANDLING))
    inner = Call(f"{base}/reader.py", line + 2, "__next__", "raise self._wrap(error, block)" + (
        " from error" if joint == DIRECT_CAUSE else ""))  # fmt: skip
    calls = training_calls(world, rng, "batch = next(stream)", inner)
    text = (
        first + joint + format_traceback(world, calls, f"{error}: block {block} of {rng.choice(_SOURCES)} is unusable")
    )
    story = end_job(world, rng, before, [uncaught(world, rank, before.at, text)], [None])
    if not first_error.startswith("zlib"):
        return story
    # No signature knows the library, but what zlib says is the cause: the block is damaged.
    roots = frozenset({None, "data.unreadable-sample"})
    return replace(story, truth=replace(story.truth, verdicts=frozenset({"known", "unknown"}), roots=roots))


def import_failure(world: World, rng: random.Random) -> Story:
    """A module is missing, or was built for another torch, on all ranks; no process group exists yet."""
    tag = f"cpython-{world.python.replace('.', '')}-x86_64-linux-gnu.so"
    site = site_packages(world)
    name, error = rng.choice((
        ("flash_attn", f"ImportError: {site}/flash_attn_2_cuda.{tag}: undefined symbol: _ZN3c104cuda9SetDeviceEi"),
        ("apex", "ModuleNotFoundError: No module named 'apex'"),
        ("transformer_engine", f"ImportError: {site}/transformer_engine_torch.{tag}: undefined symbol: "
         "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
        ("einops", "ModuleNotFoundError: No module named 'einops'"),
        ("trainlib", "ImportError: cannot import name 'build_scheduler' from 'trainlib.optim' "
         f"({site}/trainlib/optim.py)"),
    ))  # fmt: skip
    statement = "from trainlib.optim import build_scheduler" if name == "trainlib" else f"import {name}"
    module = Call(f"{world.script.rpartition('/')[0]}/lib/model.py", rng.randrange(3, 20), "<module>", statement)
    text = format_traceback(world, setup_calls(world, rng, "from lib.model import build_model", module), error)
    before = Prelude(_first_records(world, rng), rng.uniform(4, 9))
    causes = [uncaught(world, rank, at, text, tagged=False) for rank, at in all_ranks(world, rng, before.at)]
    return end_job(world, rng, before, causes, ["python.import-error"])


def bad_arguments(world: World, rng: random.Random) -> Story:
    """The command line has an argument that the program rejects, so all ranks end with exit code 2."""
    name = world.script.rpartition("/")[2]
    option, value = rng.choice((("--seq-lenght", "4096"), ("--lr_warmup", "500"), ("--use-fp8", "1")))
    error = rng.choice((
        f"unrecognized arguments: {option} {value}",
        f"argument --precision: invalid choice: 'bf{rng.randrange(17, 32)}' (choose from 'fp32', 'bf16', 'fp16')",
        "the following arguments are required: --data-path",
        "argument --micro-batch-size: invalid int value: '2.5'",
    ))  # fmt: skip
    text = (
        f"usage: {name} [-h] --data-path DATA_PATH [--precision {{fp32,bf16,fp16}}]\n"
        f"{' ' * (8 + len(name))}[--micro-batch-size MICRO_BATCH_SIZE] [--seq-length SEQ_LENGTH]\n"
        f"{name}: error: {error}"
    )
    before = Prelude(_first_records(world, rng), rng.uniform(3, 6))
    causes = [
        Line(at, Writer("rank", rank), text, is_cause=True) for rank, at in all_ranks(world, rng, before.at)
    ]  # fmt: skip
    return end_job(world, rng, before, causes, ["python.bad-arguments"], status=2)


def _first_records(world: World, rng: random.Random) -> tuple[Line, ...]:
    """Return the first record of each rank of a program that has not yet made a process group."""
    return tuple(line for line in start(world, rng) if line.at < 3 and "NCCL INFO" not in line.text)


def nan_loss(world: World, rng: random.Random) -> Story:
    """The loss of one rank is not a number, and its program stops."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    value = rng.choice(("nan", "nan", "inf"))
    source, error = rng.choice((
        ("assert torch.isfinite(loss), f'loss is {loss.item()} at step {step}'",
         f"AssertionError: loss is {value} at step {before.step}"),
        ("raise FloatingPointError(message)", f"FloatingPointError: non-finite loss ({value}) in step {before.step}"),
        ("raise ValueError(f'Loss is {value}, stopping training')", f"ValueError: Loss is {value}, stopping training"),
    ))  # fmt: skip
    megatron = (
        f"AssertionError: Rank {rank}: found NaN in local forward loss calculation. Device: {world.local(rank)}, "
        f"node: {world.host(rank)}"
    )
    is_megatron = world.backend == "nccl" and rng.random() < 0.3
    if is_megatron:
        source, error = "assert not loss.isnan(), (", megatron
    text = format_traceback(world, training_calls(world, rng, source), error)
    cause = uncaught(world, rank, before.at, text, names_rank=is_megatron, names_host=is_megatron)
    return end_job(world, rng, before, [cause], ["numeric.nan-loss"])


def recursion(world: World, rng: random.Random) -> Story:
    """A function of the program calls itself without end, on one rank."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    file, line = world.script.replace(".py", "_tree.py"), rng.randrange(20, 80)
    deep = Call(file, line, "flatten", "leaves += flatten(part)")
    calls = training_calls(world, rng, "leaves = flatten(batch.tree)", deep, deep, deep)
    repeated = f"  [Previous line repeated {rng.randrange(960, 993)} more times]"
    error = "RecursionError: maximum recursion depth exceeded" + rng.choice(("", " in comparison"))
    text = format_traceback(world, calls, f"{repeated}\n{error}")
    return end_job(world, rng, before, [uncaught(world, rank, before.at, text)], ["python.recursion-error"])


FAULTS = (
    Fault("out-of-memory", out_of_memory, backends=("nccl",)),
    Fault("user-error", user_error, BACKENDS),
    Fault("library-error", library_error, BACKENDS),
    Fault("import-error", import_failure, BACKENDS),
    Fault("bad-arguments", bad_arguments, BACKENDS),
    Fault("nan-loss", nan_loss, BACKENDS),
    Fault("recursion", recursion, BACKENDS),
)
