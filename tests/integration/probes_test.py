"""/healthz and /readyz of the metrics listener say what the gRPC health service says, and why.

usage: probes_test.py BUILD_DIR
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

from await_true import await_true
from process_test import OPSERVE, OPSERVED, Daemon


class ProbesTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def start(self, *flags, **options):
        daemon = Daemon(self.directory / "s", *flags, **options)
        self.addCleanup(daemon.process.wait)
        self.addCleanup(daemon.process.kill)
        self.addCleanup(daemon.process.stderr.close)
        return daemon

    def ask(self, daemon, path):
        address = f"http://127.0.0.1:{daemon.ready['metrics_port']}{path}"
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.read().decode()

    def check_ready(self, daemon, *expected):
        self.assertEqual(self.ask(daemon, "/readyz"), expected)
        self.assertEqual(self.ask(daemon, "/healthz"), (200, "ok\n"))
        # From a pool only daemons whose health is SERVING get calls.
        pool = subprocess.run([OPSERVE, f"--target={daemon.target},{daemon.target}", "--timeout=2s", "status"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(pool.returncode == 0, expected[0] == 200, pool.stderr)

    def test_a_daemon_is_ready_while_a_device_is(self):
        daemon = self.start()
        self.check_ready(daemon, 200, "ok\n")
        self.assertEqual(daemon.admin("drain", "0").returncode, 0)
        self.check_ready(daemon, 200, "ok\n")
        self.assertEqual(daemon.admin("drain", "1", "--yes").returncode, 0)
        self.check_ready(daemon, 503, "no device is ready: device 0 is drained, device 1 is drained\n")
        self.assertEqual(daemon.admin("resume", "1").returncode, 0)
        await_true(lambda: "READY" in daemon.device_states(), "the resumed device is ready")
        self.check_ready(daemon, 200, "ok\n")

    def test_a_daemon_without_a_device_says_so(self):
        daemon = self.start("--recovery_wait=1h", "--longest_recovery_wait=1h",
                            faults="kernel=*,code=507015,count=all")
        await_true(lambda: set(daemon.device_states()) == {"QUARANTINED"}, "both devices are quarantined")
        self.check_ready(daemon, 503, "no device is ready: device 0 is quarantined, device 1 is quarantined\n")

    def test_one_device_that_proves_itself_is_enough(self):
        daemon = self.start("--recovery_wait=1h", "--longest_recovery_wait=1h",
                            faults="kernel=*,on=0,code=507015,count=all")
        await_true(lambda: daemon.device_states() == ["QUARANTINED", "READY"], "device 0 is quarantined")
        self.check_ready(daemon, 200, "ok\n")

    def test_a_daemon_that_starts_is_not_ready(self):
        # Its addresses are taken, but its devices do not get beyond their golden cases.
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        path = self.directory / "s"
        process = subprocess.Popen(
            [OPSERVED, f"--listen=unix:{path}", f"--metrics_listen=127.0.0.1:{port}", "--execution_timeout=1h"],
            stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, OPSERVE_HOST_DEVICES="2", OPSERVE_HOST_FAULTS="kernel=*,hang,count=all"))
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while "execution_limit" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        self.assertTrue(path.exists())
        for probe in ("/readyz", "/healthz"):
            with self.assertRaises(OSError):  # no answer
                urllib.request.urlopen(f"http://127.0.0.1:{port}{probe}", timeout=1)
        status = subprocess.run([OPSERVE, f"--target=unix:{path}", "--timeout=1s", "status"],
                                capture_output=True, timeout=60)
        self.assertNotEqual(status.returncode, 0)

    def test_a_daemon_that_ends_is_not_ready(self):
        daemon = self.start("--drain_delay=1h")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_for("draining")
        self.check_ready(daemon, 503, "the daemon is draining\n")
        self.assertEqual(daemon.stop(signal.SIGINT), 3)


if __name__ == "__main__":
    unittest.main()
