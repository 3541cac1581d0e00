"""Three daemons behind HAProxy, nginx, Envoy, and the client's own balancing: no call is lost.

usage: proxy_test.py BUILD_DIR

With OPSERVE_PROXY_RATE and OPSERVE_PROXY_SIZE the rolling restart has another load: requests per second
(150) of a number of values each (256).
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from await_true import await_true
from daemon_pool import Bench, Daemon, Envoy, HaProxy, Nginx, get_calls, restart_each, summary
from prometheus_server import free_port

BUILD = pathlib.Path(sys.argv.pop()).resolve()
RATE = os.environ.get("OPSERVE_PROXY_RATE", "150")
SIZE = os.environ.get("OPSERVE_PROXY_SIZE", "256")


class ProxyTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def start_daemons(self, faults=""):
        self.daemons = []
        for _ in range(3):
            self.daemons.append(Daemon(BUILD, self.directory, f"127.0.0.1:{free_port()}", faults=faults))
            self.addCleanup(self.daemons[-1].close)
        return ",".join(daemon.address for daemon in self.daemons)

    def start_haproxy(self):
        target = f"127.0.0.1:{free_port()}"
        return self.await_proxy(HaProxy(self.directory, target, self.daemons), target)

    def start_nginx(self):
        target = f"127.0.0.1:{free_port()}"
        return self.await_proxy(Nginx(self.directory, target, self.daemons), target)

    def start_envoy(self):
        target = f"127.0.0.1:{free_port()}"
        self.envoy = Envoy(BUILD / "venv-tools/bin/envoy", self.directory, target, self.daemons)
        return self.await_proxy(self.envoy, target)

    def await_proxy(self, proxy, target):
        self.addCleanup(proxy.close)
        await_true(lambda: proxy.process.poll() is not None or
                   self.opserve(target, "status").returncode == 0, "the proxy works")
        self.assertIsNone(proxy.process.poll(), "the proxy has ended")
        return target

    def opserve(self, target, *arguments):
        return subprocess.run([BUILD / "bin/opserve", f"--target={target}", *arguments],
                              capture_output=True, text=True, timeout=120)

    def check_rolling_restart(self, target, rate=RATE, size=SIZE):
        """Under a load of calls none of which is ever repeated by its sender."""
        bench = Bench(BUILD, target, rate, size)
        self.addCleanup(bench.close)
        get_calls(self.daemons)
        restart_each(self.daemons)
        run = bench.stop()
        print(f"{self.id()}: {summary(run)}")
        self.assertEqual((run["failed"], run["refused"]), (0, 0), run)
        self.assertGreater(run["answered"], 60)

    def check_killed_daemon(self, target):
        """Each call takes a while, so that some are at the daemon that dies."""
        with self.calls_without_failure(target) as answered:
            get_calls(self.daemons, more=2)
            self.assertEqual(self.daemons[0].end(signal.SIGKILL), -signal.SIGKILL)
            before = sum(answered)
            await_true(lambda: sum(answered) > before + 12, "calls go on")

    @contextlib.contextmanager
    def calls_without_failure(self, target):
        """Calls from six threads, which their client repeats where a daemon refused them.

        Gives a list of how many each thread has had answered.
        """
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
            yield answered
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

    # (After the golden cases of the start.)
    SLOW = "kernel=aclnnL1LossBackward,nth=20,count=all,slow=250000"

    def test_calls_that_take_long_end_where_they_are_when_a_daemon_drains(self):
        self.start_daemons(self.SLOW)
        # Too large for the proxy to send to another.
        self.check_rolling_restart(self.start_haproxy(), rate=30, size=65536)

    def test_killed_daemon_behind_haproxy(self):
        self.start_daemons(self.SLOW)
        self.check_killed_daemon(self.start_haproxy())

    # nginx does not look into answers: a drain's refusals come to the client, which repeats its calls.
    def test_rolling_restart_behind_nginx(self):
        self.start_daemons()
        with self.calls_without_failure(self.start_nginx()):
            restart_each(self.daemons)

    def test_killed_daemon_behind_nginx(self):
        self.start_daemons(self.SLOW)
        self.check_killed_daemon(self.start_nginx())

    def test_rolling_restart_behind_envoy(self):
        self.start_daemons()
        self.check_rolling_restart(self.start_envoy())

    def test_killed_daemon_behind_envoy(self):
        self.start_daemons(self.SLOW)
        self.check_killed_daemon(self.start_envoy())

    def test_envoy_follows_its_endpoints(self):
        self.start_daemons()
        target = self.start_envoy()
        with self.calls_without_failure(target):
            get_calls(self.daemons, more=2)
            others = self.daemons
            self.start_daemons()
            self.envoy.set_daemons(self.daemons)
            get_calls(self.daemons, more=2)
        for daemon in others:
            self.assertEqual(daemon.end(signal.SIGTERM), 0)
        with self.calls_without_failure(target):
            get_calls(self.daemons, more=2)

    def test_killed_daemon_behind_the_clients_balancing(self):
        self.check_killed_daemon(self.start_daemons(self.SLOW))


if __name__ == "__main__":
    unittest.main()
