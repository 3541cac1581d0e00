#!/usr/bin/env python3
"""Measures what a training step on the pool costs beside eager torch, on the same cores.

  training_benchmark.py OPSERVED [--repetitions N]

Needs current torch and the Python client. The daemon has one device. Where the work is large, both
sides have a thread for each of the machine's cores; where it is small, each has a thread, and the
daemon a core of its own. Steps of torch and of the pool are measured in turns. This process keeps
freed memory as the daemon does, and eager torch is the faster one of two: with AdamW as it comes,
and with its fused kernel. With OPSERVE_BENCHMARK_JSON, a line for each target is added to that file.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator

_ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / "client/python"), str(_ROOT / "tests/python")]

import rows  # noqa: E402
import torch  # noqa: E402
import torch_models  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import opserve  # noqa: E402
import opserve.torch  # noqa: E402
import opserve.torch.optim  # noqa: E402

Step = Callable[[], torch.Tensor]

# Of simulated device time in a step.
_SIMULATED_SECONDS = 0.005

_CORES = frozenset(os.sched_getaffinity(0))
# The last one is the daemon's where it has one of its own.
_LAST_CORE = frozenset([max(_CORES)])


# Of mallopt, by their numbers in malloc.h, as in the daemon's main.cc: one arena, and no memory that
# goes back to the system between steps and has to be got again page by page.
_MALLOC_OPTIONS = {
    -8: 1,  # M_ARENA_MAX
    -3: 1 << 30,  # M_MMAP_THRESHOLD
    -1: 2047 << 20,  # M_TRIM_THRESHOLD
    -2: 64 << 20,  # M_TOP_PAD
}


def keep_freed_memory() -> None:
    mallopt = ctypes.CDLL(None).mallopt
    for option, value in _MALLOC_OPTIONS.items():
        if mallopt(option, value) != 1:
            raise OSError(f"mallopt refuses the option {option}")


@dataclasses.dataclass
class Daemon:
    target: str
    metrics: str  # URL

    def device_seconds(self) -> float:
        """What the device has worked so far."""
        with urllib.request.urlopen(self.metrics, timeout=10) as answer:
            text = answer.read().decode()
        found = re.findall(r"^opserve_tenant_device_seconds_total\{.*\} (.*)$", text, re.MULTILINE)
        return sum(map(float, found))


@contextlib.contextmanager
def serving(opserved: str, faults: str = "", cores: frozenset[int] = _CORES) -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory(prefix="opserve-benchmark-") as directory:
        target = f"unix:{directory}/opserve.sock"
        environment = dict(
            os.environ,
            OPSERVE_HOST_DEVICES="1",
            OPSERVE_HOST_THREADS=str(len(cores)),
            OPSERVE_HOST_FAULTS=faults,
        )
        command = [opserved, f"--listen={target}", "--metrics_listen=127.0.0.1:0"]
        log = pathlib.Path(directory, "log")
        with log.open("w") as out, subprocess.Popen(
            ["taskset", "--cpu-list", ",".join(map(str, cores)), *command],
            stderr=out,
            env=environment,
        ) as process:
            try:
                with opserve.Client(target) as client:
                    client.server_status(timeout=60)
                [ready] = re.findall(r'"event":"ready".*"metrics_port":(\d+)', log.read_text())
                yield Daemon(target, f"http://127.0.0.1:{ready}/metrics")
            finally:
                process.terminate()


def steps_of(
    make: Callable[[], nn.Module],
    batch: tuple[torch.Tensor, torch.Tensor],
    loss: Callable[..., torch.Tensor],
    backend: object,
    fused: bool = False,
) -> Step:
    """A step of AdamW: on the pool if the backend is one of opserve's.

    The loss is part of what is compiled. Gradients begin as None: torch writes the first one of a
    step in place of adding it to zeros, which would be slower, and kept memory makes a new one cheap.
    """
    torch.manual_seed(0)
    model = make()
    if isinstance(backend, opserve.torch.Backend):
        optimizer: torch.optim.Optimizer = opserve.torch.optim.AdamW(
            model.parameters(), lr=1e-3, backend=backend
        )
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)

    def forward(*given: torch.Tensor) -> torch.Tensor:
        return loss(model, *given)

    run = forward if backend is None else torch.compile(forward, backend=backend)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        result = run(*batch)
        result.backward()
        optimizer.step()
        return result

    return step


def seconds(step: Step, count: int, reads_loss: bool) -> float:
    """Of a step, the average until the last one has ended."""
    begin = time.perf_counter()
    for number in range(count):
        result = step()
        if reads_loss or number == count - 1:
            result.item()
    return (time.perf_counter() - begin) / count


def in_turns(
    steps: dict[str, Step], repetitions: int, count: int, reads_loss: bool
) -> dict[str, float]:
    for step in steps.values():
        for _ in range(5):  # compiles, and fills caches
            step()
    taken: dict[str, list[float]] = {name: [] for name in steps}
    processor: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repetitions):
        for name, step in steps.items():
            before = time.thread_time()
            taken[name].append(seconds(step, count, reads_loss))
            processor[name].append((time.thread_time() - before) / count)
    # Which tells more where the machine has other work.
    medians = {name: f"{statistics.median(of) * 1e6:.0f} us" for name, of in processor.items()}
    print("processor time of the caller's thread:", medians, flush=True)
    return {name: statistics.median(values) for name, values in taken.items()}


def of_all(
    make: Callable[[], nn.Module],
    batch: tuple[torch.Tensor, torch.Tensor],
    loss: Callable[..., torch.Tensor],
    client: opserve.Client,
) -> dict[str, Step]:
    pool = opserve.torch.backend(client, strict=True)
    return {
        "eager": steps_of(make, batch, loss, None),
        "eager, fused": steps_of(make, batch, loss, None, fused=True),
        "compiled eager, fused": steps_of(make, batch, loss, "eager", fused=True),
        "pool": steps_of(make, batch, loss, pool),
    }


def of_eager(taken: dict[str, float]) -> float:
    """The time of the faster one."""
    return min(taken["eager"], taken["eager, fused"])


def report(target: str, what: str, value: float, limit: float) -> None:
    met = value <= limit
    print(f"{target} {what}: {value:.3g} (limit {limit:g}) {'met' if met else 'missed'}", flush=True)
    rows.add(target, what, value, f"<= {limit:g}", met)


def gpt() -> nn.Module:
    """10 million parameters."""
    model = torch_models.Gpt(words=8192, width=320, heads=8, blocks=6)
    model.places = nn.Embedding(128, 320)
    return model


def token_loss(
    model: Callable[..., torch.Tensor], tokens: torch.Tensor, following: torch.Tensor
) -> torch.Tensor:
    return F.cross_entropy(model(tokens).flatten(0, 1), following.flatten())


def mlp() -> nn.Module:
    """100 thousand parameters."""
    return nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64),
        nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def class_loss(
    model: Callable[..., torch.Tensor], x: torch.Tensor, classes: torch.Tensor
) -> torch.Tensor:
    return F.cross_entropy(model(x), classes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("opserved")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    repetitions = arguments.repetitions
    keep_freed_memory()
    tokens = torch.randint(8192, (8, 129))
    texts = (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
    rows = (torch.randn(64, 64), torch.randint(10, (64,)))

    torch.set_num_threads(len(_CORES))
    with serving(arguments.opserved) as daemon, opserve.Client(daemon.target) as client:
        steps = of_all(gpt, texts, token_loss, client)
        taken = in_turns(steps, repetitions, 3, reads_loss=True)
        print({name: f"{value * 1e3:.0f} ms" for name, value in taken.items()}, flush=True)
        report("T18", "step of a GPT of 10 M parameters / eager", taken["pool"] / of_eager(taken), 1.3)
    torch.compiler.reset()
    # A second thread makes such small operators no faster, and waits for the next one by computing,
    # on a core that the daemon needs: 12 to 28 ms of processor time a step, not 3.
    torch.set_num_threads(1)
    # The daemon's threads would interrupt the caller's three times a step on its core, though there
    # is another one.
    os.sched_setaffinity(0, (_CORES - _LAST_CORE) or _CORES)
    with (
        serving(arguments.opserved, cores=_LAST_CORE) as daemon,
        opserve.Client(daemon.target) as client,
    ):
        steps = of_all(mlp, rows, class_loss, client)
        for what, reads_loss, limit in (("not read", False, 300), ("read", True, 500)):
            taken = in_turns(steps, repetitions, 100, reads_loss)
            print({name: f"{value * 1e6:.0f} us" for name, value in taken.items()}, flush=True)
            beyond = (taken["pool"] - of_eager(taken)) * 1e6
            report("T19", f"step of an MLP of 100 K, loss {what}, us beyond eager", beyond, limit)
    torch.compiler.reset()
    # How many operators a step has tells how slow each shall be.
    with serving(arguments.opserved, "kernel=*,slow=1000,count=all") as daemon:
        count = round(device_seconds_of_a_step(daemon, rows)[1] / 0.001)
    torch.compiler.reset()
    slow = round(_SIMULATED_SECONDS * 1e6 / max(count, 1))
    with serving(arguments.opserved, f"kernel=*,slow={slow},count=all") as daemon:
        step, device = device_seconds_of_a_step(daemon, rows)
    print(f"step {step * 1e3:.2f} ms, device {device * 1e3:.2f} ms", flush=True)
    report("T20", "step of that MLP on a slow device / device time", step / device, 1.05)


def device_seconds_of_a_step(
    daemon: Daemon, rows: tuple[torch.Tensor, torch.Tensor]
) -> tuple[float, float]:
    """What a step takes, and what of it the device works."""
    steps = 50
    with opserve.Client(daemon.target) as client:
        step = steps_of(mlp, rows, class_loss, opserve.torch.backend(client, strict=True))
        for _ in range(5):
            step().item()
        before = daemon.device_seconds()
        taken = seconds(step, steps, reads_loss=False)
        return taken, (daemon.device_seconds() - before) / steps


if __name__ == "__main__":
    main()
