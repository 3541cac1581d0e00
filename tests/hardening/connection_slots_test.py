"""Connections that say nothing lock nobody out: a client on each listener is served beside each attack.

usage: connection_slots_test.py BUILD_DIR

Each attack holds as many connections as a stranger would make, then a healthy client makes one more
and has to be served at once. Beyond loopback and Unix sockets nothing is touched.
"""

import json
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

BUILD = pathlib.Path(sys.argv.pop())
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import certificates

# The default of --max_connections.
MOST = 1024
# What a client of TLS 1.2 or 1.3 sends first, cut off in the middle.
HALF_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(20)


def raise_descriptor_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))


class ConnectionSlotsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        raise_descriptor_limit()

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.unix = self.directory / "socket"

    def make_certificate(self):
        certificates.make_certificate(self.directory / "cert", self.directory / "key", "daemon.test",
                                      alternatives="IP:127.0.0.1")
        return [f"--tls_cert={self.directory}/cert", f"--tls_key={self.directory}/key"]

    def start(self, *flags):
        """The daemon, with a soft limit on descriptors that is too low for its connections."""
        def limit():
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))

        self.daemon = subprocess.Popen(
            [os.environ.get("OPSERVED", BUILD / "bin/opserved"), f"--listen=unix:{self.unix},127.0.0.1:0",
             "--metrics_listen=127.0.0.1:0", "--admin_listen=none", "--drain_delay=0s", "--drain_timeout=1s",
             f"--acl_library_dir={BUILD}/lib/opserve/host-cann", *flags],
            stderr=subprocess.PIPE, text=True, preexec_fn=limit,
            env=dict(os.environ, OPSERVE_HOST_DEVICES="1"))
        self.addCleanup(self.stop)
        for line in self.daemon.stderr:
            entry = json.loads(line)
            if entry["event"] == "ready":
                self.tcp = entry["listen"][1]
                self.metrics_port = entry["metrics_port"]
                # A log that is not read would be lost.
                self.reader = threading.Thread(target=self.daemon.stderr.read)
                self.reader.start()
                return
        self.fail("the daemon does not start")

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait(timeout=60)
        self.reader.join()
        self.daemon.stderr.close()

    def hold(self, count, family, address, first_bytes=b""):
        """Makes connections and keeps them."""
        for _ in range(count):
            connection = socket.socket(family)
            self.addCleanup(connection.close)
            connection.settimeout(30)
            connection.connect(address)
            if first_bytes:
                connection.sendall(first_bytes)

    def tcp_address(self):
        host, port = self.tcp.rsplit(":", 1)
        return host, int(port)

    def serves(self, target, *flags):
        run = subprocess.run([BUILD / "bin/opserve", f"--target={target}", "--timeout=5s", *flags, "status"],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)

    def serves_all(self, *tls):
        begin = time.monotonic()
        self.serves(f"unix:{self.unix}")
        self.serves(self.tcp, *tls)
        metrics = self.metrics()
        print(f"{self.id().split('.')[-1]}: served by three listeners in {time.monotonic() - begin:.2f} s",
              file=sys.stderr)
        return metrics

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=30) as page:
            return page.read().decode()

    def test_silent_connections_on_tcp(self):
        self.start()
        self.hold(MOST, socket.AF_INET, self.tcp_address())
        metrics = self.serves_all()
        self.assertRegex(metrics, r'opserve_ended_connections_total\{listener="tcp",reason="evicted"\} [1-9]')

    def test_silent_connections_on_unix(self):
        self.start()
        self.hold(MOST, socket.AF_UNIX, str(self.unix))
        metrics = self.serves_all()
        self.assertRegex(metrics, r'opserve_ended_connections_total\{listener="unix",reason="evicted"\} [1-9]')

    def test_silent_connections_on_both(self):
        self.start()
        self.hold(MOST, socket.AF_UNIX, str(self.unix))
        self.hold(MOST, socket.AF_INET, self.tcp_address())
        self.serves_all()

    def test_a_flood_that_waits_for_its_turn_is_not_taken_for_silent_connections(self):
        self.start()
        # A CONTINUATION without its HEADERS, in more bytes than clients send before they are answered.
        settings = bytes(3) + b"\x04" + bytes(5)
        continuation = b"\0\0\1\x09\0\0\0\0\1"
        flood = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + continuation + bytes(5000)
        with socket.socket(socket.AF_UNIX) as first:
            first.settimeout(30)
            first.connect(str(self.unix))
            first.sendall(flood)
            self.assertEqual(self.end_of(first), b"")
        # From now on this user's connections enter in their turn; each of these is made while far more wait
        # than may.
        self.hold(400, socket.AF_UNIX, str(self.unix), flood)
        ended = dict(re.findall(r'opserve_ended_connections_total\{listener="unix",reason="(\w+)"\} (\d+)',
                                self.metrics()))
        self.assertGreater(int(ended.get("waiting", 0)), 20, ended)
        self.assertEqual(ended["evicted"], "0")

    def end_of(self, connection):
        """Reads until the daemon ends the connection; the last bytes are none."""
        try:
            while data := connection.recv(4096):
                pass
        except ConnectionResetError:
            return b""
        return data

    def test_half_tls_handshakes(self):
        tls = self.make_certificate()
        self.start(*tls)
        self.hold(MOST, socket.AF_INET, self.tcp_address(), HALF_HELLO)
        self.serves_all(f"--tls-ca={self.directory}/cert")

    def test_half_requests_for_metrics(self):
        self.start()
        self.hold(295, socket.AF_INET, ("127.0.0.1", self.metrics_port), b"GET /metrics HTTP/1.1\r\nHost:")
        self.serves_all()

    def test_silence_ends(self):
        self.start("--first_call_timeout=200ms")
        for family, address in ((socket.AF_UNIX, str(self.unix)), (socket.AF_INET, self.tcp_address())):
            with socket.socket(family) as connection:
                connection.settimeout(60)
                connection.connect(address)
                try:
                    while connection.recv(4096):  # the daemon's settings come first
                        pass
                except ConnectionResetError:
                    pass


if __name__ == "__main__":
    unittest.main()
