"""Strangers cannot fill a disk by the log: its lines are JSON, and few whatever comes.

usage: log_flood_test.py BUILD_DIR

Each flood makes the daemon say something a few hundred times. Beyond loopback nothing is touched.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import ssl
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

TIMES = 300
BURST = 10  # lines at once of one event
PLACE_BURST = 3  # and of one place in gRPC's sources
KIB = 1024


class LogFloodTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)
        certificates.make_certificate(self.directory / "cert", self.directory / "key", "daemon.test",
                                      alternatives="IP:127.0.0.1")
        self.daemon = subprocess.Popen(
            [os.environ.get("OPSERVED", BUILD / "bin/opserved"),
             f"--listen=unix:{self.directory}/socket,127.0.0.1:0", "--metrics_listen=127.0.0.1:0",
             "--admin_listen=none", "--drain_delay=0s", "--drain_timeout=1s",
             f"--config={self.configuration()}", f"--tls_cert={self.directory}/cert",
             f"--tls_key={self.directory}/key", f"--acl_library_dir={BUILD}/lib/opserve/host-cann"],
            stderr=subprocess.PIPE, text=True, env=dict(os.environ, OPSERVE_HOST_DEVICES="1"))
        self.addCleanup(self.end)
        for line in self.daemon.stderr:
            entry = json.loads(line)
            if entry["event"] == "ready":
                break
        self.port = int(entry["listen"][1].rsplit(":", 1)[1])
        self.metrics_port = entry["metrics_port"]
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.daemon.stderr))
        self.reader.start()
        self.begin = time.monotonic()

    def configuration(self):
        """A tenant, so that there are strangers."""
        path = self.directory / "config"
        path.write_text(f'tenant {{ name: "known" token_sha256: "{"12" * 32}" }}\n')
        return path

    def end(self):
        self.daemon.kill()
        self.daemon.wait()
        if hasattr(self, "reader"):
            self.reader.join()
        self.daemon.stderr.close()

    def left_out(self, event):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=30) as page:
            metrics = page.read().decode()
        return int(re.search(rf'opserve_log_lines_left_out_total{{event="{event}"}} (\d+)', metrics)[1])

    def await_left_out(self, event, least):
        """The daemon's log follows what it does."""
        deadline = time.monotonic() + 60
        while (found := self.left_out(event)) < least:
            self.assertLess(time.monotonic(), deadline, f"{event}: {found} lines left out")
        return found

    def log(self):
        """All entries since the start, each of which has to be JSON, and the seconds it took at most."""
        self.daemon.terminate()
        self.daemon.wait(timeout=60)
        self.reader.join()
        return [json.loads(line) for line in self.lines], time.monotonic() - self.begin

    def check(self, event, burst):
        entries, seconds = self.log()
        lines = [entry for entry in entries if entry["event"] == event]
        self.assertGreater(len(lines), 0)
        self.assertLessEqual(len(lines), burst + seconds)
        self.assertLessEqual(sum(map(len, self.lines)), (6 * BURST + 6 * seconds) * KIB)
        return lines

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        self.addCleanup(connection.close)
        return connection

    def test_handshakes_that_fail(self):
        # The client does not trust the certificate and says so, which gRPC has a message for each time.
        context = ssl.create_default_context()
        for _ in range(TIMES):
            try:
                with context.wrap_socket(self.connect(), server_hostname="daemon.test") as connection:
                    self.fail("the client trusts it")
            except ssl.SSLError:
                pass
        self.await_left_out("grpc", least=TIMES // 2)
        lines = self.check("grpc", burst=BURST)
        places = {entry["source"] for entry in lines}
        self.assertLessEqual(len(lines), len(places) * (PLACE_BURST + (time.monotonic() - self.begin) / 10))

    def test_bytes_that_are_no_protocol(self):
        for _ in range(TIMES):
            self.connect().sendall(b"GET / HTTP/1.1\r\n\r\n")
        self.await_left_out("connection_ended", least=TIMES // 3)
        self.check("connection_ended", burst=BURST)

    def test_calls_of_strangers(self):
        token = self.directory / "token"
        token.write_text("of-no-tenant")
        token.chmod(0o600)
        for _ in range(3 * BURST):
            run = subprocess.run([BUILD / "bin/opserve", f"--target=unix:{self.directory}/socket",
                                  f"--token-file={token}", "status"], capture_output=True, timeout=100)
            self.assertEqual(run.returncode, 1, run.stderr)
        self.await_left_out("denied", least=1)
        lines = self.check("denied", burst=BURST)
        self.assertTrue(all(len(json.dumps(line)) < KIB for line in lines))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
