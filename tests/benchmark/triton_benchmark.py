#!/usr/bin/env python3
"""Compares opserved with tritonserver, asked turn by turn by perf_analyzer (T13). triton.sh prepares all and starts it.

  triton_benchmark.py BUILD MODELS [--repetitions=N] [--seconds=S]

BUILD has bin/opserved, MODELS is Triton's model repository. Processor time is what the kernel has booked for the
server's process, divided by the requests which the server's own statistics count, the same for both.
"""

import argparse
import contextlib
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import typing

import numpy as np
import rows
import tritonclient.grpc as triton

MODEL = "KlDivBackward"
INPUTS = ("grad_output", "self", "target")
READY_SECONDS = 60
PACKAGES = pathlib.Path(sysconfig.get_path("purelib"))
TICKS = os.sysconf("SC_CLK_TCK")


class Measured(typing.NamedTuple):
    calls: float  # a second, as perf_analyzer counts
    processor: float  # seconds of the server per request


class Server:
    """A server's process and address, ended on leaving."""

    def __init__(self, command, address, environment):
        self.address = address
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=self.log, env=dict(os.environ, **environment)
        )

    def __enter__(self):
        self.client = triton.InferenceServerClient(self.address)
        end = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            if time.monotonic() > end or self.process.poll() is not None:
                self.log.seek(0)
                sys.exit(f"{self.process.args[0]} does not serve:\n{self.log.read().decode()}")
            time.sleep(0.1)
        return self

    def __exit__(self, *error):
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(READY_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def _is_ready(self):
        try:
            return self.client.is_model_ready(MODEL)
        except triton.InferenceServerException:
            return False

    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS  # user and system

    def requests(self):
        stats = self.client.get_inference_statistics(MODEL).model_stats[0].inference_stats
        return stats.success.count

    def measure(self, data, elements, concurrency, shared_memory, seconds):
        command = [
            str(pathlib.Path(sys.prefix) / "bin/perf_analyzer"), "-i", "grpc", "-u", self.address,
            "-m", MODEL, f"--concurrency-range={concurrency}", "--stability-percentage=999",
            "--measurement-mode=time_windows", f"--measurement-interval={int(seconds * 1000)}",
            "--max-trials=3", "--request-parameter=reduction:0:int",
            f"--input-data={data}", *(f"--shape={name}:{elements}" for name in INPUTS),
        ]  # fmt: skip
        if shared_memory:
            command += ["--shared-memory=system", f"--output-shared-memory-size={4 * elements}"]
        libraries = str(PACKAGES / "nvidia/cuda_runtime/lib")
        before, requests = self.processor_seconds(), self.requests()
        run = subprocess.run(
            command, capture_output=True, text=True, env=dict(os.environ, LD_LIBRARY_PATH=libraries)
        )
        rate = re.search(r"Throughput: ([0-9.]+) infer/sec", run.stdout)
        if run.returncode != 0 or rate is None:
            sys.exit(f"perf_analyzer: {run.stdout}{run.stderr}")
        processor = (self.processor_seconds() - before) / (self.requests() - requests)
        return Measured(float(rate[1]), processor)


def write_inputs(folder, elements):
    """Ordinary numbers. perf_analyzer's own are random bits, most of whose products are too small or too large, for
    which processors take a hundred times as long.
    """
    random = np.random.default_rng(1)
    for name in INPUTS:
        random.uniform(0.1, 1, elements).astype(np.float32).tofile(folder / name)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def opserve(build, threads):
    address = f"127.0.0.1:{free_port()}"
    command = [
        str(build / "bin/opserved"), f"--listen={address}", "--allow_named_shm",
        "--max_message_bytes=1073741824", "--metrics_listen=none", "--admin_listen=none",
    ]  # fmt: skip
    return Server(
        command, address, {"OPSERVE_HOST_DEVICES": "1", "OPSERVE_HOST_THREADS": str(threads)}
    )


def tritonserver(models):
    port = free_port()
    root = PACKAGES / "pytriton/tritonserver"
    command = [
        str(root / "bin/tritonserver"), f"--model-repository={models}", "--grpc-address=127.0.0.1",
        f"--grpc-port={port}", "--allow-http=false", "--allow-metrics=false",
        f"--backend-directory={root / 'backends'}", f"--cache-directory={root / 'caches'}",
    ]  # fmt: skip
    return Server(command, f"127.0.0.1:{port}", {})


class Row(typing.NamedTuple):
    target: str
    elements: int
    concurrency: int
    shared_memory: bool = False
    threads: int = 2  # of opserve's kernels
    processor: float | None = None  # the most, divided by Triton's
    calls: float | None = None  # the least

    def what(self):
        kib = self.elements * 4 // 1024
        size = f"{kib // 1024} MiB" if kib >= 1024 else f"{kib} KiB"
        way = "named shared memory" if self.shared_memory else "gRPC"
        threads = f", {self.threads} kernel thread{'s' if self.threads > 1 else ''}"
        return f"{size} x {self.concurrency}, {way}{threads if self.shared_memory else ''}"


KIB, MIB = 1024 // 4, 1024 * 1024 // 4
ROWS = (
    *(
        Row("T13a", size, concurrency, processor=0.5)
        for size in (KIB, 16 * KIB)
        for concurrency in (8, 16)
    ),
    Row("T13b", 4 * MIB, 2, processor=0.6, calls=1.3),
    Row("T13b", 64 * MIB, 1, processor=0.6, calls=1.3),
    Row("T13c", 4 * MIB, 2, shared_memory=True, calls=1.5),
    Row("T13c", 64 * MIB, 1, shared_memory=True, threads=1, calls=1.2),
    Row("T13c", 64 * MIB, 1, shared_memory=True, threads=2, calls=1.4),
)


def report(row, what, ratio, limit, met):
    print(f"  {row.target:5} {row.what():45} {what:15} {ratio:6.2f}  {limit:8} {'met' if met else 'missed'}")
    rows.add(row.target, f"{row.what()}: {what} / Triton's", ratio, limit, met)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--target", help="rows of this target only, such as T13a")
    arguments = parser.parse_args()
    print("Open Inference beside Triton, medians; ratios of opserve's figure to Triton's")
    with contextlib.ExitStack() as stack:
        theirs = stack.enter_context(tritonserver(arguments.models))
        ours = {n: stack.enter_context(opserve(arguments.build, n)) for n in (1, 2)}
        for row in ROWS:
            if arguments.target not in (None, row.target):
                continue
            # Triton needs more than a second for the largest message, and a window has several.
            is_slow = row.elements >= 64 * MIB and not row.shared_memory
            seconds = arguments.seconds * (5 if is_slow else 1)
            load = (row.elements, row.concurrency, row.shared_memory, seconds)
            with tempfile.TemporaryDirectory() as data:
                write_inputs(pathlib.Path(data), row.elements)
                pairs = [
                    (ours[row.threads].measure(data, *load), theirs.measure(data, *load))
                    for _ in range(arguments.repetitions)
                ]
            for mine, other in pairs:
                print(
                    f"        {mine.calls:10.1f} and {other.calls:10.1f} calls/s, "
                    f"{mine.processor * 1e6:10.1f} and {other.processor * 1e6:10.1f} us/request"
                )
            if row.processor is not None:
                ratio = statistics.median(a.processor / b.processor for a, b in pairs)
                report(row, "processor time", ratio, f"<= {row.processor}", ratio <= row.processor)
            if row.calls is not None:
                ratio = statistics.median(a.calls / b.calls for a, b in pairs)
                report(row, "calls/s", ratio, f">= {row.calls}", ratio >= row.calls)


if __name__ == "__main__":
    main()
