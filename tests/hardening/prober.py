"""A healthy tenant beside an attack: small calls one after the other, and how they went."""

import multiprocessing
import os
import time

import numpy as np
import opserve

# Each process begins as a copy of one that has the modules and has made no call: to load them takes longer than some
# attacks.
PROCESSES = multiprocessing.get_context("forkserver")

CALL_SECONDS = 5.0  # a call that takes longer has failed

_VECTOR = np.arange(16, dtype=np.float32)


def _probe(target, ca_file, token, is_fresh, begun, stop, results):
    tls = opserve.Tls(ca_file=ca_file) if ca_file else None
    latencies, failures = [], []
    client = None
    number = 0
    while not stop.is_set() or not latencies:
        begin = time.monotonic()
        try:
            if client is None:
                # A connection that is not known yet may have to make room for another, which the client's
                # own repetition mends. On a connection that is known nothing has to be repeated.
                retry = opserve.Retry() if is_fresh else opserve.Retry(max_attempts=1)
                client = opserve.Client(target, tls=tls, token=token, timeout=CALL_SECONDS, retry=retry)
            program = opserve.Program()
            program.l1_loss_backward(np.float32(1), _VECTOR, _VECTOR[::-1].copy(), reduction="sum")
            # Half of the calls are under a key, since keys have a memory of their own to attack.
            key = f"probe-{os.getpid()}-{number}" if number % 2 else ""
            [gradient] = client.execute(program, idempotency_key=key).results
            if not np.array_equal(gradient, np.sign(_VECTOR - _VECTOR[::-1])):
                failures.append("a wrong result")
        except Exception as error:  # pylint: disable=broad-except; each kind counts as a failed call
            failures.append(f"{type(error).__name__}: {error}"[:300])
        latencies.append(time.monotonic() - begin)
        number += 1
        begun.set()
        if is_fresh and client is not None:
            client.close()
            client = None
        stop.wait(0.002)
    results.put((latencies, failures))


class Prober:
    """Calls from a process of its own, the first before the constructor returns, the last in stop()."""

    def __init__(self, address, token, is_fresh):
        self._stop = PROCESSES.Event()
        begun = PROCESSES.Event()
        self._results = PROCESSES.Queue()
        self._process = PROCESSES.Process(target=_probe, daemon=True, args=(
            address.target, address.ca_file, token, is_fresh, begun, self._stop, self._results))
        self._process.start()
        if not begun.wait(timeout=120):
            raise AssertionError("the first call of the healthy tenant did not end")

    def stop(self):
        """The latencies in seconds, and a text for each failed call."""
        self._stop.set()
        latencies, failures = self._results.get(timeout=120)
        self._process.join(timeout=60)
        return sorted(latencies), failures


def quantile(latencies, share):
    return latencies[min(int(len(latencies) * share), len(latencies) - 1)]
