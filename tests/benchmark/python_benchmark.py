#!/usr/bin/env python3
"""Compares the Python client's requests with echoes of raw messages by grpcio (T16): one thread, one in flight, over
Unix sockets, with three tensors of 1 KiB and of 4 MiB each. The echo's server is the best that gRPC's C++ library can
do (raw_server.h), and answers with a third of the bytes, as the operator does.

  python_benchmark.py BUILD [--repetitions=N]

BUILD has bin/opserved and tests/raw_server. This Python needs the packages of the Python client (build/venv). Prints a
row for each size, and appends it to the file OPSERVE_BENCHMARK_JSON, if that is set.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import grpc
import numpy as np
import rows

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "client/python"))
import opserve

# Bytes of a tensor, in words, and the least ratio.
SIZES = ((1 << 10, "1 KiB", 0.7), (4 << 20, "4 MiB", 1.0))
SECONDS = 1.0
READY_SECONDS = 60
HEADER_BYTES = 100  # of a request, as the operator's has


def rate(call):
    """Calls per second, after some that are not counted."""
    for _ in range(20):
        call()
    count, begin = 0, time.perf_counter()
    while time.perf_counter() < begin + SECONDS:
        call()
        count += 1
    return count / (time.perf_counter() - begin)


def await_socket(path):
    end = time.monotonic() + READY_SECONDS
    while not path.exists():
        if time.monotonic() > end:
            sys.exit(f"nothing listens on {path}")
        time.sleep(0.05)


def measure(repetitions, ours, raw):
    """Medians of the ratio, and of both rates, turn by turn."""
    pairs = [(rate(ours), rate(raw)) for _ in range(repetitions)]
    return statistics.median(a / b for a, b in pairs), *map(statistics.median, zip(*pairs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        daemon = subprocess.Popen(
            [build / "bin/opserved", f"--listen=unix:{folder}/ours", "--admin_listen=none", "--metrics_listen=none",
             "--drain_delay=0s", "--log_level=off"], env={**os.environ, "OPSERVE_HOST_DEVICES": "1"}, **quiet)
        echo = subprocess.Popen([build / "tests/raw_server", folder / "raw"], **quiet)
        try:
            for socket in ("ours", "raw"):
                await_socket(folder / socket)
            report(folder, arguments.repetitions)
        finally:
            for process in (daemon, echo):
                process.kill()
                process.wait()


def report(folder, repetitions):
    client = opserve.Client(f"unix:{folder}/ours")
    no_limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    channel = grpc.insecure_channel(f"unix:{folder}/raw", no_limits)
    call = channel.unary_unary("/opserve.v1.OperatorService/Execute")
    random = np.random.default_rng(1)
    for size, text, limit in SIZES:
        tensors = [random.uniform(0.25, 1, size // 4).astype(np.float32) for _ in range(3)]
        message = bytes(3 * size + HEADER_BYTES)
        ratio, ours, raw = measure(
            repetitions, lambda: client.kl_div_backward(*tensors), lambda: call(message))
        what = f"Python, {text}, one thread / raw grpcio echo"
        met = ratio >= limit
        print(f"{what}: {ratio:.2f} ({ours:,.0f} and {raw:,.0f} a second; at least {limit}: "
              f"{'met' if met else 'missed'})", flush=True)
        rows.add("T16", what, ratio, f">= {limit}", met)


if __name__ == "__main__":
    main()
