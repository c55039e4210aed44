"""Faults with more than one exception, or with one that only the program's logger shows."""

from __future__ import annotations

import random
from dataclasses import replace

from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.python import program_error
from triage.testing.composer.faults.uncaught import (
    BACKENDS,
    DIRECT_CAUSE,
    Call,
    Prelude,
    end_job,
    format_traceback,
    load_until,
    module_calls,
    setup_calls,
    site_packages,
    train_until,
    training_calls,
    uncaught,
)
from triage.testing.composer.model import Exit, Line, LogStyle, Story, Truth, World, Writer
from triage.testing.composer.parts import echoes, record, steps

_HANDLED = (
    (
        "step {step}: could not upload metrics, will retry",
        ("report", "client.send(values)"),
        "ConnectionResetError: [Errno 104] Connection reset by peer",
    ),
    (
        "step {step}: no memory for the evaluation, batch skipped",
        ("evaluate", "scores = model(batch)"),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 0 has a total capacity of "
        "79.10 GiB of which 611.44 MiB is free.",
    ),
    (
        "no cache on {host}, reading from the source",
        ("open_cache", 'return open(path, "ab")'),
        "PermissionError: [Errno 13] Permission denied: '/scratch/cache/index.bin'",
    ),
)
_PRINTED = (
    (
        "sample left out",
        ("__next__", "return self.decode(record)"),
        "struct.error: unpack requires a buffer of 16 bytes",
    ),
    ("built it anew", ("load_index", "return json.load(file)"), "ValueError: index of version 3, expected 4"),
    ("used the default", ("read_limits", 'return limits[section]["steps"]'), "KeyError: 'steps'"),
    (
        "went on without",
        ("sync_metrics", "reply = session.post(url, json=values)"),
        "metricsd.ClientError: quota exceeded",
    ),
)
_PACKAGES = ("runkit", "trainstack", "labflow", "orbit_train")
_MODULES = ("runner", "stages", "executor", "core/app")
_ITEMS = ("corpus", "tokenizer", "stage_2", "eval_suite", "adapter")
# What a framework raises: its line and its error.
_WRAPPERS = (
    ("raise StageFailed(item) from error", "{package}.errors.StageFailed: {item}"),
    ('raise BuildError(f"could not build {item}") from error', "{package}.BuildError: could not build {item}"),
    ("raise RunAborted(str(item)) from cause", "{package}.exceptions.RunAborted: run of {item} aborted"),
    ("raise TrainerError(name) from err", "{package}.trainer.TrainerError: {item} failed"),
)
# What a library says where the other side is gone.
_VAGUE = (
    "{package}.{package}Error: internal error",
    "RuntimeError: {package}: unknown error, status {status}",
    "{package}.StatusError: exchange returned {status} (internal error)",
    "RuntimeError: unexpected error in exchange ({status})",
    "{package}.TransportError: unhandled internal error, see the documentation",
)


def logged_error(world: World, rng: random.Random) -> Story:
    """The program logs its exception through its logger and ends with exit code 1, on one rank."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    message = rng.choice(("training failed", "fatal: unhandled error in worker", f"aborting at step {before.step}"))
    error = _log_exception(world, rank, before.at, message, program_error(world, rng), "ERROR")
    cause = Line(
        error.at, error.writer, error.text, is_cause=True, says_rank=world.log_style in ("ranked", "loguru")
    )  # fmt: skip
    return end_job(world, rng, before, [cause], [None])


def _log_exception(world: World, rank: int, at: float, message: str, text: str, level: str) -> Line:
    """Return the record of a logger about an exception; loguru parts the frames by empty lines.

    The traceback begins in the function that caught it.
    """
    head, *frames = text.split("\n  File")
    text = "\n  File".join([head, *(frame for frame in frames if ", in <module>\n" not in frame)])
    if world.log_style == "loguru":
        head, *frames = text.replace("\n  File", "\n\n  File").split("\n")
        text = "\n".join([head, *frames[:-1], "", frames[-1]])
    return record(world, rank, at, f"{message}\n{text}", level, "stderr")


def framework_wraps_error(world: World, rng: random.Random) -> Story:
    """The framework of the job raises its own error from one of the program, on one rank or on all, before the process
    group exists; the launcher stops the others.
    """
    before, package, line = load_until(world, rng), rng.choice(_PACKAGES), rng.randrange(40, 400)
    (source, error), item = rng.choice(_WRAPPERS), rng.choice(_ITEMS)
    runner = Call(f"{site_packages(world)}/{package}/{rng.choice(_MODULES)}.py", line, "run", "return self.build(item)")
    raising = Call(runner.file, line + 3, "run", source)
    first, *inner = program_error(world, rng).split("\n")
    own = "\n".join([first, *format_traceback(world, [runner], "").split("\n")[1:-1], *inner])
    outer = format_traceback(
        world, setup_calls(world, rng, "job.run()", raising), error.format(package=package, item=item)
    )
    failed = [rng.randrange(world.size)] if rng.random() < 0.7 else world.ranks
    causes = [
        uncaught(world, rank, before.at + rng.uniform(0, 0.3), own + DIRECT_CAUSE + outer, tagged=False)
        for rank in failed
    ]
    return end_job(world, rng, before, causes, [None], share=0.0)


def earlier_caught(world: World, rng: random.Random) -> Story:
    """One rank logs an exception and goes on; several steps later another one ends the same or another rank."""
    first, before = rng.randrange(world.size), train_until(world, rng)
    count = rng.randrange(3, 9)
    message, call, error = rng.choice(_HANDLED)
    message = message.format(step=before.step, host=world.host(first))
    text = format_traceback(world, [Call(world.script, rng.randrange(59, 140), *call)], error)
    handled = _log_exception(world, first, before.at, message, text, "WARNING")
    later = steps(world, rng, before.at + 0.6, count, number=before.step)
    at = before.at + 1 + count
    rank = rng.choice((first, first, rng.randrange(world.size)))
    shape = rng.random() < 0.5
    linear = module_calls(world, "linear.py", 125, "return F.linear(input, self.weight, self.bias)")
    calls = training_calls(world, rng, "logits = model(tokens)", *linear)
    error = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x1023 and 1024x4096)"
    text = format_traceback(world, calls, error) if shape else program_error(world, rng)
    root = "torch.tensor-shape-error" if shape else None
    cause = uncaught(world, rank, at, text)
    return end_job(world, rng, Prelude((*before.lines, handled, *later), at), [cause], [root])


def earlier_printed(world: World, rng: random.Random) -> Story:
    """One rank prints the traceback of an exception that it handles, in a program without a logger; several steps later
    another exception ends the same or another rank.
    """
    bare, count = replace(world, log_style="bare"), rng.randrange(3, 9)
    before = train_until(bare, rng)
    handled = _print_handled(bare, rng, rng.randrange(world.size), before.at)
    later = steps(bare, rng, before.at + 0.6, count, number=before.step)
    at, rank = before.at + 1 + count, rng.randrange(world.size)
    cause = uncaught(bare, rank, at, program_error(world, rng))
    return end_job(bare, rng, Prelude((*before.lines, *handled, *later), at), [cause], [None])


def printed_while_loading(world: World, rng: random.Random) -> Story:
    """Some ranks print the traceback of an exception that they handle while they load; then another rank fails there,
    before the first step.
    """
    bare = replace(world, log_style="bare")
    before, rank = load_until(bare, rng), rng.randrange(world.size)
    others = [other for other in world.ranks if other != rank]
    handled = []
    for other in rng.sample(others, rng.randrange(1, min(len(others), 3) + 1)):
        handled += _print_handled(bare, rng, other, before.at + rng.uniform(0, 3))
    at = before.at + rng.uniform(4, 9)
    calls = setup_calls(world, rng, "model = build(args)", Call(world.script, 44, "build", "size = sizes[args.size]"))
    cause = uncaught(bare, rank, at, format_traceback(world, calls, "KeyError: '7B-wide'"), tagged=False)
    return end_job(bare, rng, Prelude((*before.lines, *handled), at), [cause], [None], share=0.0)


def _print_handled(world: World, rng: random.Random, rank: int, at: float) -> list[Line]:
    """Return what `traceback.print_exc()` prints where an exception is handled, and perhaps what the program adds."""
    note, call, error = rng.choice(_PRINTED)
    text = format_traceback(world, [Call(world.script, rng.randrange(20, 140), *call)], error)
    notes = [record(world, rank, at + 0.1, note)] if rng.random() < 0.5 else []
    return [Line(at, Writer("rank", rank), text), *notes]


def two_user_errors(world: World, rng: random.Random) -> Story:
    """Two ranks meet two different exceptions of the program within the same second."""
    before = train_until(world, rng)
    first, second = rng.sample(world.ranks, 2)
    texts = [program_error(world, rng), program_error(world, rng)]
    while texts[1].split("\n")[-1] == texts[0].split("\n")[-1]:
        texts[1] = program_error(world, rng)
    causes = [
        uncaught(world, rank, before.at + rng.uniform(0, 0.3), text)
        for rank, text in zip((first, second), texts, strict=True)
    ]
    return end_job(world, rng, before, causes, [None])


def later_known_error(world: World, rng: random.Random) -> Story:
    """One rank meets an exception of the program and takes long to end; meanwhile another one gets a wrong shape."""
    styles: tuple[LogStyle, ...] = ("stamped", "ranked", "loguru")
    before, timed = train_until(world, rng), replace(world, log_style=rng.choice(styles))
    first, second = rng.sample(world.ranks, 2)
    shapes = f"mat1 and mat2 shapes cannot be multiplied ({rng.choice((8, 16))}x1000 and 1024x4096)"
    later = format_traceback(world, training_calls(world, rng, "logits = model(tokens)"), f"RuntimeError: {shapes}")
    at = before.at + rng.uniform(8, 90)
    lines = [
        replace(
            _log_exception(timed, first, before.at, "training failed", program_error(world, rng), "ERROR"),
            is_cause=True,
        ),
        _log_exception(timed, second, at, "training failed", later, "ERROR"),
    ]
    lost, ends = echoes(world, rng, (first, second), at + 1, share=rng.choice((0.0, 0.5, 1.0)))
    exits = (Exit(second, 1, at + 0.3), Exit(first, 1, at + rng.uniform(0.4, 2)), *ends)
    truth = Truth(frozenset({"unknown"}), frozenset({None}), frozenset({first}), frozenset({world.node(first)}))
    return Story((*before.lines, *lines, *lost), truth, tuple(sorted(exits, key=lambda end: end.at)))


def two_known_errors(world: World, rng: random.Random) -> Story:
    """Within the same second one rank gets a wrong shape and another one mixes dtypes."""
    before = train_until(world, rng)
    first, second = rng.sample(world.ranks, 2)
    linear = module_calls(world, "linear.py", 125, "return F.linear(input, self.weight, self.bias)")
    errors = (
        f"RuntimeError: mat1 and mat2 shapes cannot be multiplied ({rng.choice((8, 16))}x1000 and 1024x4096)",
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16",
    )
    calls = training_calls(world, rng, "logits = model(tokens)", *linear)
    causes = [
        uncaught(world, rank, before.at + rng.uniform(0, 0.3), format_traceback(world, calls, error))
        for rank, error in zip((first, second), errors, strict=True)
    ]
    return end_job(world, rng, before, causes, ["torch.tensor-shape-error", "torch.dtype-error"])


def vague_errors_elsewhere(world: World, rng: random.Random) -> Story:
    """One rank fails with a reason; a library of the others, which loses it, only says that something went wrong. The
    program's records have no times.
    """
    bare, rank = replace(world, log_style="bare"), rng.randrange(world.size)
    before, package = train_until(bare, rng), rng.choice(("ringlink", "fabricx", "shardcomm", "tensorbus"))
    vague = rng.choice(_VAGUE).format(package=package, status=rng.randrange(2, 90))
    source = rng.choice(("handle.wait()", "self._check(status)", "return self._lib.exchange(self._handle, buffer)"))
    inner = Call(f"{site_packages(world)}/{package}/exchange.py", rng.randrange(30, 300), "wait", source)
    later = format_traceback(world, training_calls(world, rng, "state = exchange(state)", inner), vague)
    causes = [uncaught(bare, rank, before.at, program_error(world, rng))]
    at = before.at + 0.4
    causes += [uncaught(bare, other, at + rng.uniform(0, 0.5), later) for other in world.ranks if other != rank]
    return end_job(bare, rng, before, causes, [None], truth_ranks=[rank])


def own_time_limit(world: World, rng: random.Random) -> Story:
    """One rank fails; the others wait for its answer with a limit of the program's own, and then fail too."""
    styles: tuple[LogStyle, ...] = ("stamped", "ranked", "loguru")
    before, rank = train_until(world, rng), rng.randrange(world.size)
    seconds = rng.choice((20, 30, 45, 60))
    source, error = rng.choice((
        ("reply = self.replies.get(timeout=limit)", "_queue.Empty"),
        ("raise TimeoutError(what)", f"TimeoutError: no shard list from rank {rank} within {seconds} s"),
        ("raise StepTimeout(name)", f"StepTimeout: exchange of vocabularies not complete after {seconds}.0 s"),
        ("assert reply is not None, where", f"AssertionError: parameter store: no answer in {seconds} s"),
    ))  # fmt: skip
    timed = replace(world, log_style=rng.choice(styles))
    text = program_error(world, rng)
    first = replace(_log_exception(timed, rank, before.at, "training failed", text, "ERROR"), is_cause=True)
    later = format_traceback(
        world,
        training_calls(
            world,
            rng,
            "out = exchange(state)",
            Call(f"{world.script.rpartition('/')[0]}/lib/exchange.py", rng.randrange(20, 200), "wait", source),
        ),
        error,
    )
    lines, exits = [first], [Exit(rank, 1, before.at + seconds + rng.uniform(3, 9))]
    for other in world.ranks:
        if other != rank:
            at = before.at + seconds + rng.uniform(0, 1)
            lines.append(_log_exception(timed, other, at, "training failed", later, "ERROR"))
            exits.append(Exit(other, 1, at + rng.uniform(0.1, 0.4)))
    ends = tuple(sorted(exits, key=lambda end: end.at))
    truth = Truth(frozenset({"unknown"}), frozenset({None}), frozenset({rank}), frozenset({world.node(rank)}))
    return Story((*before.lines, *lines), truth, ends)


FAULTS = (
    Fault("logged-error", logged_error, BACKENDS),
    Fault("framework-wraps-error", framework_wraps_error, BACKENDS),
    Fault("earlier-error-handled", earlier_caught),
    Fault("earlier-error-printed", earlier_printed, BACKENDS),
    Fault("error-printed-while-loading", printed_while_loading, BACKENDS, least_per_node=2),
    Fault("two-user-errors", two_user_errors, BACKENDS),
    Fault("later-known-error", later_known_error, BACKENDS, least_per_node=2),
    Fault("two-known-errors", two_known_errors),
    Fault("vague-errors-elsewhere", vague_errors_elsewhere, BACKENDS, least_per_node=2),
    Fault("own-time-limit-after-error", own_time_limit, BACKENDS, least_per_node=2),
)
