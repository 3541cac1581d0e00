#!/usr/bin/env python3
"""Counts the daemon's instructions per small request (KlDivBackward of three tensors of 1 KiB), as a request of its own
and as a prepared program, and those that a further node costs in a program, gRPC and the host CANN included, by
callgrind, which counts them without noise. Installs nothing: the Debian package valgrind must be there.

  instructions.py BUILD [--seconds=N]

Prints a row for each way of sending, and appends it to the file OPSERVE_BENCHMARK_JSON, if that is set. Exits with 1 if
one takes a tenth more than it did when its limit was written here, whether that is the wish or not. Callgrind runs
one thread at a time, so how many requests travel in a message, which is printed, too, is not that of a free machine.
Nor is the part of them that the thread ran which received them: a busy machine makes requests look long, and long ones
go to a lane's thread, which takes some 8,000 instructions more.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

import rows

# The way, requests in flight, whether they are prepared, the most instructions that a request should take, and those
# that it took.
ROWS = (("session", 64, False, 40_000, 38_700), ("session", 1, False, 60_000, 69_400),
        ("unary", 8, False, 90_000, 88_700), ("session", 64, True, 15_000, 39_800),
        ("session", 1, True, 35_000, 70_100), ("unary", 8, True, 70_000, 89_500))
# Of prepared programs in a session, and the same of each further node.
NODES, MOST_OF_A_NODE, TAKEN_BY_A_NODE = (1, 21), 5_000, 2_800
SLACK = 1.1
READY_SECONDS = 120


class Daemon:
    """An opserved under callgrind, which counts nothing until it is told to."""

    def __init__(self, build, folder):
        self._folder = folder
        self.socket = folder / "socket"
        self._log = open(folder / "log", "w", encoding="utf-8")
        self._process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no", "-q",
             f"--callgrind-out-file={folder}/profile", str(build / "bin/opserved"), f"--listen=unix:{self.socket}",
             "--metrics_listen=127.0.0.1:0", "--drain_delay=0s"],
            stdout=self._log, stderr=subprocess.STDOUT)
        end = time.monotonic() + READY_SECONDS
        while '"event":"ready"' not in self._text():
            if self._process.poll() is not None or time.monotonic() > end:
                self._process.kill()
                sys.exit("the daemon did not start under callgrind:\n" + self._text())
            time.sleep(0.2)
        self._port = re.search(r'"metrics_port":(\d+)', self._text()).group(1)

    def _text(self):
        return (self._folder / "log").read_text(encoding="utf-8")

    def await_requests(self, count):
        """Waits until it has answered so many."""
        end = time.monotonic() + READY_SECONDS
        while self._requests() < count:
            if time.monotonic() > end:
                sys.exit(f"the daemon did not answer {count} requests in time")
            time.sleep(0.2)

    def _requests(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics") as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("opserve_requests_total{"))

    def count_instructions(self, on):
        subprocess.run(["callgrind_control", "--instr=" + ("on" if on else "off"), str(self._process.pid)],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        """Ends it; its profile."""
        self._process.terminate()
        self._process.wait()
        self._log.close()
        return (self._folder / "profile").read_text(encoding="utf-8", errors="replace")


def calls_of(profile, function):
    """How often functions whose names begin so were called while instructions were counted."""
    numbers = set(re.findall(r"^c?fn=\((\d+)\) " + re.escape(function), profile, re.MULTILINE))
    return sum(int(count) for number, count in re.findall(r"^cfn=\((\d+)\).*\ncalls=(\d+)", profile, re.MULTILINE)
               if number in numbers)


def profile_of(build, seconds, load_of):
    """The profile of requests in the midst of a load: neither its client's first steps nor a reading of the metrics is
    counted. load_of(folder, target): the load's command.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        daemon = Daemon(build, folder)
        load = subprocess.Popen(load_of(folder, f"unix:{daemon.socket}"), stdout=subprocess.DEVNULL)
        try:
            daemon.await_requests(2000)
            daemon.count_instructions(True)
            time.sleep(seconds)
            daemon.count_instructions(False)
        finally:
            load.terminate()
            load.wait()
        return daemon.end()


def measure(build, seconds, load_of):
    """Instructions for a request, how many come in a message, and the part that runs where it was received."""
    profile = profile_of(build, seconds, load_of)
    requests = calls_of(profile, "opserve::server::Record(")
    return (int(re.search(r"^totals: (\d+)", profile, re.MULTILINE).group(1)) / requests,
            requests / max(1, calls_of(profile, "opserve::server::SessionCall::HandleMessage(")),
            calls_of(profile, "opserve::server::LaneGroup::RunVisit(") / requests)


def bench(build, way, in_flight, is_prepared, seconds):
    """A load of requests of one operator, for measure()."""
    return lambda folder, target: [
        str(build / "bin/opserve"), "bench", "KlDivBackward", f"--target={target}", "--shape=256",
        f"--transport={way}", f"--concurrency={in_flight}", f"--duration={seconds + READY_SECONDS}s",
        *(["--prepare"] if is_prepared else [])]


def runs_in_session(build, nodes):
    """A load of runs of a prepared program of so many nodes, one after another in a session."""
    def load_of(folder, target):
        def node(number):
            first = f"invocation_output {{ invocation: {number - 1} }}" if number else "program_input: 0"
            return (f'invocations {{ operator: "Add" inputs {{ name: "self" tensor {{ {first} }} }} '
                    'inputs { name: "other" tensor { program_input: 1 } } }')

        text = "inputs { dtype: DATA_TYPE_FLOAT shape: 256 }\n" * 2
        text += f"program {{ {' '.join(map(node, range(nodes)))} results {{ invocation: {nodes - 1} }} }}\n"
        (folder / "program.txt").write_text(text, encoding="utf-8")
        return [str(build / "bin/opserve"), "program", "run", str(folder / "program.txt"), f"--target={target}",
                "--prepare", "--repeat=1000000"]

    return load_of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=20)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    worse = 0
    for way, in_flight, is_prepared, limit, taken in ROWS:
        each, together, visits = measure(build, arguments.seconds,
                                         bench(build, way, in_flight, is_prepared, arguments.seconds))
        of_messages = f", {together:.1f} in a message" if way == "session" else ""
        kind = "prepared request" if is_prepared else "request"
        report(f"instructions for a {kind}, {way}, {in_flight} in flight", each, limit,
               f"{of_messages}, {visits:.0%} run where they were received")
        worse += each > SLACK * taken
    few, many = (measure(build, arguments.seconds, runs_in_session(build, nodes))[0] for nodes in NODES)
    of_a_node = (many - few) / (NODES[1] - NODES[0])
    report("instructions for each further node of a prepared program", of_a_node, MOST_OF_A_NODE,
           f", {few:,.0f} for a run of one in a session")
    worse += of_a_node > SLACK * TAKEN_BY_A_NODE
    if worse:
        sys.exit(f"{worse} rows take more instructions than they did, by a tenth or more")


def report(what, each, limit, facts):
    met = each <= limit
    print(f"{what}: {each:,.0f}{facts} (at most {limit:,}: {'met' if met else 'missed'})", flush=True)
    rows.add("", what, each / limit, "<= 1", met)


if __name__ == "__main__":
    main()
