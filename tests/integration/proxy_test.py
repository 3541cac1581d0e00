"""Three daemons behind HAProxy, and behind the client's own balancing: no call is lost.

usage: proxy_test.py BUILD_DIR

With OPSERVE_PROXY_RATE and OPSERVE_PROXY_SIZE the rolling restart has another load: requests per second
(150) of a number of values each (256).
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

BUILD = pathlib.Path(sys.argv.pop()).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
RATE = os.environ.get("OPSERVE_PROXY_RATE", "150")
SIZE = os.environ.get("OPSERVE_PROXY_SIZE", "256")
HAPROXY = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_true(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


class Daemon:
    """An opserved at a port that stays the same when it is started again."""

    def __init__(self, directory, faults):
        self.port = free_port()
        self.directory = directory / str(self.port)
        self.directory.mkdir()
        self.faults = faults
        self.start()

    def start(self):
        environment = dict(os.environ, OPSERVE_HOST_DEVICES="1", OPSERVE_HOST_FAULTS=self.faults)
        self.log = (self.directory / "log").open("a+", encoding="utf-8")
        self.process = subprocess.Popen(
            [BUILD / "bin/opserved", f"--listen=127.0.0.1:{self.port}", "--metrics_listen=127.0.0.1:0",
             f"--admin_listen=unix:{self.directory}/admin", "--drain_delay=2s",
             "--pinned_pool_bytes=16777216"], stderr=self.log, env=environment)
        await_true(lambda: self.process.poll() is not None or self.entry("ready"), "ready")
        self.metrics_port = self.entry("ready")["metrics_port"]

    def entry(self, event):
        """The last such entry of its log that this process wrote."""
        found = None
        for line in (self.directory / "log").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["event"] == event:
                found = entry
        return found

    def requests(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as page:
            return sum(float(value) for value in re.findall(
                r"^opserve_requests_total{.*} (\S+)$", page.read().decode(), re.MULTILINE))

    def end(self, number):
        self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        self.log.close()
        (self.directory / "log").write_text("", encoding="utf-8")
        return code


class ProxyTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def start_daemons(self, faults=""):
        self.daemons = [Daemon(self.directory, faults) for _ in range(3)]
        for daemon in self.daemons:
            self.addCleanup(lambda d=daemon: d.process.poll() is None and d.end(signal.SIGKILL))
        return ",".join(f"127.0.0.1:{daemon.port}" for daemon in self.daemons)

    def start_haproxy(self):
        """The configuration that is shipped, with these daemons' addresses, and more hurry."""
        if HAPROXY is None:
            self.skipTest("haproxy is not installed: deploy/install_packages.sh --tests")
        text = (ROOT / "deploy/proxy/haproxy.cfg").read_text(encoding="utf-8")
        for i, daemon in enumerate(self.daemons):
            text = text.replace(f"npu{i + 1}.example.com:8470", f"127.0.0.1:{daemon.port}")
        port = free_port()
        for old, new in (("bind :8470 proto", f"bind 127.0.0.1:{port} proto"),
                         (" inter 1s ", " inter 200ms ")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        configuration = self.directory / "haproxy.cfg"
        configuration.write_text(text, encoding="utf-8")
        log = (self.directory / "haproxy.log").open("w", encoding="utf-8")
        self.addCleanup(log.close)
        proxy = subprocess.Popen([HAPROXY, "-db", "-f", configuration], stdout=log, stderr=log)
        self.addCleanup(lambda: (proxy.kill(), proxy.wait()))
        target = f"127.0.0.1:{port}"
        await_true(lambda: self.opserve(target, "status").returncode == 0, "the proxy works")
        return target

    def opserve(self, target, *arguments):
        return subprocess.run([BUILD / "bin/opserve", f"--target={target}", *arguments],
                              capture_output=True, text=True, timeout=120)

    def check_rolling_restart(self, target):
        """Under a load of calls none of which is ever repeated by its sender."""
        bench = subprocess.Popen(
            [BUILD / "bin/opserve", f"--target={target}", "--format=json", "bench", "L1LossBackward",
             f"--shape={SIZE}", f"--rate={RATE}", "--duration=10m", "--warmup=100ms"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(bench.stdout.close)
        self.addCleanup(bench.stderr.close)
        self.addCleanup(lambda: bench.poll() is None and bench.kill())
        for daemon in self.daemons:
            await_true(lambda d=daemon: d.requests() > 20, "each daemon gets calls")
        for daemon in self.daemons:
            self.assertEqual(daemon.end(signal.SIGTERM), 0)
            daemon.start()
            # The next one goes only when this one has taken its place again.
            await_true(lambda d=daemon: d.requests() > 20, "calls come back")
        bench.send_signal(signal.SIGINT)
        output, errors = bench.communicate(timeout=60)
        self.assertEqual(bench.returncode, 0, output + errors)
        run, = json.loads(output)["runs"]
        print(f"{self.id()}: {run['answered']} answered, {run['requests_per_second']:.0f} a second")
        self.assertEqual((run["failed"], run["refused"]), (0, 0), output)
        self.assertGreater(run["answered"], 100)

    def check_killed_daemon(self, target):
        """Each call takes a while, so that some are at the daemon that dies."""
        failures, answered = [], [0] * 6
        is_over = threading.Event()

        def call_until_over(number):
            while not is_over.is_set():
                run = self.opserve(target, "run", "L1LossBackward", "--input", "grad_output=random:8",
                                   "--input", "self=random:8", "--input", "target=random:8",
                                   "--attr", "reduction=none")
                if run.returncode != 0:
                    failures.append(run.stderr)
                answered[number] += 1

        threads = [threading.Thread(target=call_until_over, args=(i,)) for i in range(len(answered))]
        for thread in threads:
            thread.start()
        try:
            for daemon in self.daemons:
                await_true(lambda d=daemon: d.requests() > 1, "each daemon gets calls")
            self.assertEqual(self.daemons[0].end(signal.SIGKILL), -signal.SIGKILL)
            before = sum(answered)
            await_true(lambda: sum(answered) > before + 12, "calls go on")
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])

    def test_rolling_restart_behind_haproxy(self):
        self.start_daemons()
        self.check_rolling_restart(self.start_haproxy())

    def test_rolling_restart_behind_the_clients_balancing(self):
        self.check_rolling_restart(self.start_daemons())

    SLOW = "kernel=aclnnL1LossBackward,slow=300000"

    def test_killed_daemon_behind_haproxy(self):
        self.start_daemons(self.SLOW)
        self.check_killed_daemon(self.start_haproxy())

    def test_killed_daemon_behind_the_clients_balancing(self):
        self.check_killed_daemon(self.start_daemons(self.SLOW))


if __name__ == "__main__":
    unittest.main()
