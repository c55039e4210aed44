"""A toy data-parallel training, which the other scripts of this directory make fail.

`record.py` copies it next to `train.py`, so that a recorded traceback has frames in two files of "the user".
Settings come by environment, because the command line belongs to the launcher:
LOG_STYLE (a key of FORMATS), DIST_TIMEOUT_S (seconds a collective may take), ODD_RANK (the rank that misbehaves).
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

VOCAB = 256
BATCH = 8
LENGTH = 32
STYLE = os.environ.get("LOG_STYLE", "logging")
ODD_RANK = int(os.environ.get("ODD_RANK", "1"))

FORMATS = {
    "logging": "%(asctime)s [rank {rank}] %(levelname)s %(name)s: %(message)s",
    "print": "[{rank}/{world}] %(message)s",
    "bare": "%(message)s",
    "pipes": "%(asctime)s | %(levelname)-8s | %(name)s:%(funcName)s:%(lineno)d - rank={rank} %(message)s",
    "megatron": "%(message)s",
    "bar": "%(levelname)s:%(name)s:rank {rank}: %(message)s",
    "json": "",
}


class JsonFormatter(logging.Formatter):
    """Formats one JSON object per line, for services that collect logs."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON; an exception goes into `exc`."""
        line = {
            "ts": self.formatTime(record),
            "level": record.levelname.lower(),
            "rank": self.rank,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            line["exc"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TinyLM(nn.Module):
    """A very small language model."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.hidden = nn.Linear(width, width)
        self.head = nn.Linear(width, VOCAB)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens of shape (batch, length) to logits of shape (batch, length, VOCAB)."""
        logits: torch.Tensor = self.head(torch.relu(self.hidden(self.embed(tokens))))
        return logits


def make_logger(rank: int, world: int) -> logging.Logger:
    """Return the logger of this rank, in the style that LOG_STYLE names."""
    handler = logging.StreamHandler(sys.stderr if STYLE in ("logging", "pipes", "bar") else sys.stdout)
    text = FORMATS[STYLE].format(rank=rank, world=world)
    handler.setFormatter(JsonFormatter(rank) if STYLE == "json" else logging.Formatter(text))
    log = logging.getLogger("trainer")
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    return log


class Job:
    """One rank of the toy job: it joins the group, builds the model, trains and logs."""

    def __init__(self, total_steps: int = 400, model: nn.Module | None = None, ddp: bool = True) -> None:
        timeout = timedelta(seconds=float(os.environ.get("DIST_TIMEOUT_S", "30")))
        dist.init_process_group("gloo", timeout=timeout)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.odd = self.rank == ODD_RANK
        self.total_steps = total_steps
        self.log = make_logger(self.rank, self.world)
        self.log.info("joined: rank %d of %d, backend gloo, timeout=%ds", self.rank, self.world, timeout.seconds)
        torch.manual_seed(1234)
        plain = model or TinyLM()
        self.model_is_bare = not ddp
        self.model: nn.Module = DistributedDataParallel(plain) if ddp else plain
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.tokens = torch.Generator().manual_seed(self.rank)
        self.began = time.monotonic()

    def batch(self) -> torch.Tensor:
        """Return random tokens, different on every rank."""
        return torch.randint(VOCAB, (BATCH, LENGTH), generator=self.tokens)

    def loss(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the loss of a task that can be learned, so that the printed loss falls."""
        wanted = (tokens * 7 + 3) % VOCAB
        return nn.functional.cross_entropy(self.model(tokens).flatten(0, 1), wanted.flatten())

    def step(self, number: int) -> float:
        """Run one optimizer step and log it."""
        began = time.monotonic()
        loss = self.loss(self.batch())
        self.optimizer.zero_grad()
        loss.backward()
        if self.model_is_bare:
            self.average_gradients()
        self.optimizer.step()
        time.sleep(0.02)
        self.tell_step(number, loss.item(), time.monotonic() - began)
        return loss.item()

    def average_gradients(self) -> None:
        """Average the gradients of all ranks, as DistributedDataParallel does."""
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= self.world

    def train(self, first: int, last: int) -> None:
        """Run the steps first … last."""
        for number in range(first, last + 1):
            self.step(number)

    def tell_step(self, number: int, loss: float, seconds: float) -> None:
        """Print the line of one step."""
        if STYLE == "megatron":
            self.tell_iteration(number, loss, seconds)
        elif STYLE == "bar":
            self.draw_bar(number, loss)
        else:
            rate = BATCH * LENGTH / seconds
            self.log.info("step %d loss %.4f lr %.1e tokens/s %.0f", number, loss, 3e-3 * 0.99**number, rate)

    def tell_iteration(self, number: int, loss: float, seconds: float) -> None:
        """Print a line like Megatron-LM, where only the last rank reports."""
        if self.rank == self.world - 1:
            self.log.info(
                " iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): %.1f | "
                "learning rate: %.3E | global batch size: %5d | lm loss: %.6E | loss scale: 1.0 | "
                "number of skipped iterations:   0 | number of nan iterations:   0 |",
                *(number, self.total_steps, number * BATCH * self.world, seconds * 1000, 3e-3 * 0.99**number),
                *(BATCH * self.world, loss),
            )

    def draw_bar(self, number: int, loss: float) -> None:
        """Redraw a progress bar over itself, as tqdm does."""
        if self.rank == 0:
            speed = number / max(time.monotonic() - self.began, 1e-6)
            full = "#" * (20 * number // self.total_steps)
            share = 100 * number // self.total_steps
            sys.stderr.write(
                f"\rtrain: {share:3d}%|{full:<20}| {number}/{self.total_steps} [{speed:.2f}it/s, loss={loss:.3f}]"
            )
            sys.stderr.flush()

    def finish(self) -> None:
        """Leave the process group properly."""
        dist.barrier()
        self.log.info("training finished after %.1f s, 0 errors", time.monotonic() - self.began)
        dist.destroy_process_group()
