"""What opserved tells systemd: that it serves, that it lives, that it ends.

usage: service_manager_test.py BUILD_DIR
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from await_true import await_true

BUILD = pathlib.Path(sys.argv.pop()).resolve()


class ServiceManagerTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.bind(str(self.directory / "notify"))
        self.manager.settimeout(60)

    def start(self, **environment):
        daemon = subprocess.Popen(
            [BUILD / "bin/opserved", f"--listen=unix:{self.directory}/socket", "--metrics_listen=none",
             "--drain_delay=0s"], stderr=subprocess.DEVNULL,
            env=dict(os.environ, OPSERVE_HOST_DEVICES="1",
                     NOTIFY_SOCKET=str(self.directory / "notify"), **environment))
        self.addCleanup(lambda: daemon.poll() is None and (daemon.kill(), daemon.wait()))
        return daemon

    def said(self):
        return self.manager.recv(4096).decode()

    def test_it_says_when_it_serves_and_when_it_ends(self):
        daemon = self.start()
        self.assertEqual(self.said(), "READY=1")
        self.assertTrue((self.directory / "socket").is_socket())
        daemon.send_signal(signal.SIGTERM)
        self.assertEqual(self.said(), "STOPPING=1")
        self.assertEqual(daemon.wait(timeout=60), 0)

    def test_it_gives_signs_of_life_for_as_long_as_it_lives(self):
        daemon = self.start(WATCHDOG_USEC="400000")
        self.assertEqual(self.said(), "READY=1")
        for _ in range(3):
            self.assertEqual(self.said(), "WATCHDOG=1")
        daemon.send_signal(signal.SIGTERM)

        def ends():
            said = self.said()
            self.assertIn(said, ("WATCHDOG=1", "STOPPING=1"))
            return said == "STOPPING=1"

        await_true(ends, "it says that it ends")
        self.assertEqual(daemon.wait(timeout=60), 0)

    def test_none_are_given_that_another_process_is_to_give(self):
        daemon = self.start(WATCHDOG_USEC="1000", WATCHDOG_PID="1")
        self.assertEqual(self.said(), "READY=1")
        daemon.send_signal(signal.SIGTERM)
        self.assertEqual(self.said(), "STOPPING=1")


if __name__ == "__main__":
    unittest.main()
