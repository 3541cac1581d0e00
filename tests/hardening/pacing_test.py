"""A user that floods is paced: its other clients, new ones too, are served meanwhile.

usage: pacing_test.py BUILD_DIR
"""

import pathlib
import sys
import unittest
import urllib.request

import attack
import attacks
import prober

BUILD = pathlib.Path(sys.argv[-1]).resolve()
SECONDS = 4
CONNECTIONS = 32


class PacingTest(unittest.TestCase):

    def check(self, listener):
        daemon = attack.Daemon(BUILD, listener)
        try:
            metrics = self.flood(daemon)
        finally:
            was_alive, end_seconds = daemon.close()
        kind = "unix" if listener == "unix" else "tcp"
        self.assertRegex(metrics, rf'opserve_paced_connections_total\{{listener="{kind}"\}} [1-9]')
        self.assertTrue(was_alive)
        self.assertLess(end_seconds, 40)

    def flood(self, daemon):
        """The daemon's metrics after a flood beside healthy clients."""
        attack.warm_up(daemon)
        target = attacks.Target(address=daemon.address, metrics_port=daemon.metrics_port, token="attacker",
                                seconds=SECONDS, connections=CONNECTIONS, most_bytes=256 << 20)
        # One client stays connected, the other makes a connection for each call.
        probers = [prober.Prober(daemon.address, "healthy", is_fresh) for is_fresh in (False, True)]
        attacks.rapid_reset(target)
        for probe in probers:
            latencies, failures = probe.stop()
            self.assertTrue(latencies)
            self.assertEqual(failures, [])
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=30) as page:
            return page.read().decode()

    def test_user(self):
        self.check("unix")

    def test_address(self):
        self.check("tcp")

    def test_address_with_tls(self):
        self.check("tls")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
