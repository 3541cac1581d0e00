"""A user that floods is paced: its other clients, new ones too, are served meanwhile.

usage: pacing_test.py BUILD_DIR
"""

import pathlib
import re
import sys
import threading
import unittest
import urllib.request

import attack
import attacks
import prober

BUILD = pathlib.Path(sys.argv[-1]).resolve()
SECONDS = 4
CONNECTIONS = 32


def target_of(daemon):
    return attacks.Target(address=daemon.address, metrics_port=daemon.metrics_port, token="attacker", seconds=SECONDS,
                          connections=CONNECTIONS, most_bytes=256 << 20)


def metrics_of(daemon):
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=30) as page:
        return page.read().decode()


class PacingTest(unittest.TestCase):

    def check(self, listener, flood=attacks.rapid_reset):
        daemon = attack.Daemon(BUILD, listener)
        try:
            metrics = self.flood(daemon, flood)
        finally:
            was_alive, end_seconds = daemon.close()
        kind = "unix" if listener == "unix" else "tcp"
        self.assertRegex(metrics, rf'opserve_paced_connections_total\{{listener="{kind}"\}} [1-9]')
        self.assertTrue(was_alive)
        self.assertLess(end_seconds, 40)

    def flood(self, daemon, flood):
        """The daemon's metrics after a flood beside healthy clients."""
        attack.warm_up(daemon)
        # One client stays connected, the other makes a connection for each call.
        probers = [prober.Prober(daemon.address, "healthy", is_fresh) for is_fresh in (False, True)]
        flood(target_of(daemon))
        for probe in probers:
            latencies, failures = probe.stop()
            self.assertTrue(latencies)
            self.assertEqual(failures, [])
        return metrics_of(daemon)

    def test_user(self):
        self.check("unix")

    def test_address(self):
        self.check("tcp")

    def test_hang_ups(self):
        self.check("tcp", attacks.hang_ups(attacks.CALLS_OF_ONE_CONNECTION))

    def test_address_with_tls(self):
        self.check("tls")

    def test_the_daemon_ends_while_connections_wait(self):
        daemon = attack.Daemon(BUILD, "unix")
        flood = threading.Thread(target=attacks.rapid_reset, args=(target_of(daemon),))
        flood.start()
        waiting = re.compile(r'opserve_connections\{listener="unix",state="waiting"\} [1-9]')
        try:
            while not waiting.search(metrics_of(daemon)):
                self.assertTrue(flood.is_alive(), "no connection had to wait")
        finally:
            was_alive, end_seconds = daemon.close()
            flood.join()
        self.assertTrue(was_alive)
        self.assertEqual(daemon.process.returncode, 0)
        self.assertLess(end_seconds, 40)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
