"""Lines of a healthy training: steps in several styles, and lines that a program repeats with other numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timedelta

_START = datetime(2026, 3, 2, 4, 0, 0)


def compute_loss(step: int, rank: int = 0) -> float:
    """Return a falling loss with a deterministic ripple."""
    return 1.7 + 9.0 / math.sqrt(step + 3) + 0.03 * math.sin(step * 1.7 + rank)


def format_steps(count: int, rank: int | None = None, start: int = 1, style: str = "plain", prefix: str = "") -> str:
    """Return `count` lines of steps in a style of STYLES. `rank` adds torchrun's prefix."""
    own = prefix if rank is None else f"[default{rank}]:"
    last = start + count - 1
    return "".join(
        own.format(worker=step % 4) + STYLES[style](step, rank or 0, last) + "\n" for step in range(start, last + 1)
    )


def format_repeated(line: str, count: int) -> str:
    """Return `count` times the line, with its numbers filled in."""
    return "".join(_fill(line, step) + "\n" for step in range(1, count + 1))


def _fill(line: str, step: int) -> str:
    time = _time_of(step).strftime("%H:%M:%S")
    numbers = {"step_of_7": 1 + step % 7, "step_of_31": 140 + step % 31}
    return line.format(step=step, loss=f"{compute_loss(step):.4f}", time=time, **numbers)


def _time_of(step: int) -> datetime:
    return _START + timedelta(seconds=2 * step, milliseconds=13 * step % 1000)


def _gradient_norm(step: int) -> float:
    return 0.8 + 0.2 * math.sin(step * 0.9)


def _plain(step: int, rank: int, last: int) -> str:
    rate = 18000 + 37 * (step % 29)
    learning_rate = 3e-4 * (1 - step / (last + 1))
    return (
        f"step {step}/{last} loss {compute_loss(step, rank):.4f} lr {learning_rate:.3e} "
        f"grad_norm {_gradient_norm(step):.3f} tok/s {rate}"
    )


def _stamped(step: int, rank: int, last: int) -> str:
    time = _time_of(step)
    return (
        f"{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03d} INFO train: step={step} "
        f"loss={compute_loss(step, rank):.4f} grad_norm={_gradient_norm(step):.3f}"
    )


def _epoch(step: int, rank: int, last: int) -> str:
    loss = compute_loss(step, rank)
    return (
        f"Epoch [{1 + step // 250}][{step % 250:3d}/250]  loss: {loss:.4f} ({loss + 0.02:.4f})  "
        f"time: {2 + step % 7 / 10:.3f}  data: 0.0{step % 9}1"
    )


def _json(step: int, rank: int, last: int) -> str:
    time = f"{_time_of(step):%Y-%m-%dT%H:%M:%S}Z"
    loss = round(compute_loss(step, rank), 4)
    return json.dumps({"level": "info", "ts": time, "msg": "step", "step": step, "loss": loss, "errors": 0})


def _megatron(step: int, rank: int, last: int) -> str:
    return (
        f"iteration {step:8d}/ {last:8d} | consumed samples: {step * 256:12d} | "
        f"lm loss: {compute_loss(step, rank):.6E} | loss scale: 1.0 | grad norm: {_gradient_norm(step):.3f} | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def _bar(step: int, rank: int, last: int) -> str:
    bar = "█" * (10 * step // last)
    seconds = 2 * step
    return (
        f"{100 * step // last:3d}%|{bar:<10}| {step}/{last} [{seconds // 60:02d}:{seconds % 60:02d}<00:00,  2.01s/it, "
        f"loss={compute_loss(step, rank):.3f}]"
    )


def _pipe(step: int, rank: int, last: int) -> str:
    return (
        f"{_time_of(step):%H:%M:%S} | r{rank} | it {step} | loss {compute_loss(step, rank):.4f} | "
        f"val_error 0.{130 + step % 17} | bad_batches 0"
    )


STYLES: dict[str, Callable[[int, int, int], str]] = {
    "plain": _plain,
    "stamped": _stamped,
    "epoch": _epoch,
    "json": _json,
    "megatron": _megatron,
    "bar": _bar,
    "pipe": _pipe,
}
