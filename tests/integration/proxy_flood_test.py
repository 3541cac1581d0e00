"""Floods against the hardened HAProxy: neither it nor the daemons behind it grow, and a client with a
token is served meanwhile.

usage: proxy_flood_test.py BUILD_DIR
"""

import hashlib
import pathlib
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

from await_true import await_true
from daemon_pool import Daemon, HaProxy
from prometheus_server import free_port

BUILD = pathlib.Path(sys.argv.pop()).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from certificates import make_certificate

CONNECTIONS = 8
MOST_SENT = 32 << 20  # by each connection
MOST_GROWTH = 128 << 20

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RESET_STREAM, SETTINGS, CONTINUATION = 1, 3, 4, 9
END_HEADERS = 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


CALL = (field(b":method", b"POST") + field(b":scheme", b"https") + field(b":authority", b"localhost") +
        field(b":path", b"/opserve.v1.OperatorService/Execute") +
        field(b"content-type", b"application/grpc") + field(b"authorization", b"bearer none"))


def continuations():
    yield frame(HEADERS, 0, 1, CALL)
    piece = frame(CONTINUATION, 0, 1, field(b"field", b"x" * 100) * 140)
    while True:
        yield piece


def resets():
    stream = 1
    while True:
        piece = b""
        for _ in range(100):
            piece += frame(HEADERS, END_HEADERS, stream, CALL)
            piece += frame(RESET_STREAM, 0, stream, b"\0\0\0\x08")
            stream += 2
        yield piece


def resident_bytes(process):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the process has ended")


class ProxyFloodTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)
        make_certificate(self.directory / "ca.pem", self.directory / "key", "localhost", alternatives="IP:127.0.0.1")
        certificate = self.directory / "opserve.pem"
        certificate.write_text((self.directory / "ca.pem").read_text(encoding="ascii") +
                               (self.directory / "key").read_text(encoding="ascii"), encoding="ascii")
        token = hashlib.sha256(b"s3cret").hexdigest()
        (self.directory / "tenants").write_text(f'tenant {{ name: "a" token_sha256: "{token}" }}\n',
                                                encoding="ascii")
        (self.directory / "token").write_text("s3cret", encoding="ascii")
        (self.directory / "token").chmod(0o600)
        self.daemons = []
        for _ in range(3):
            self.daemons.append(Daemon(BUILD, self.directory, f"127.0.0.1:{free_port()}",
                                       flags=[f"--config={self.directory}/tenants"]))
            self.addCleanup(self.daemons[-1].close)
        self.port = free_port()
        self.proxy = HaProxy(self.directory, f"127.0.0.1:{self.port}", self.daemons,
                             certificate=certificate)
        self.addCleanup(self.proxy.close)
        await_true(lambda: self.call().returncode == 0, "the proxy works")

    def call(self):
        return subprocess.run(
            [BUILD / "bin/opserve", f"--target=127.0.0.1:{self.port}", f"--tls-ca={self.directory}/ca.pem",
             f"--token-file={self.directory}/token", "run", "L1LossBackward", "--input",
             "grad_output=random:8", "--input", "self=random:8", "--input", "target=random:8",
             "--attr", "reduction=none"], capture_output=True, text=True, timeout=120)

    def flood(self, pieces):
        context = ssl.create_default_context(cafile=self.directory / "ca.pem")
        context.set_alpn_protocols(["h2"])
        sent = 0
        try:
            # From an address of its own, since what an address may do is bounded.
            connection = socket.create_connection(("127.0.0.1", self.port), source_address=("127.0.0.2", 0))
            with context.wrap_socket(connection, server_hostname="127.0.0.1") as peer:
                peer.settimeout(10)
                peer.sendall(PREFACE + frame(SETTINGS, 0, 0))
                for piece in pieces:
                    peer.sendall(piece)
                    sent += len(piece)
                    if sent > MOST_SENT:
                        break
        except (OSError, ssl.SSLError):
            pass  # it was ended, or not read

    def check_flood(self, pieces):
        processes = [self.proxy.process, *(daemon.process for daemon in self.daemons)]
        before = [resident_bytes(process) for process in processes]
        peak = list(before)
        threads = [threading.Thread(target=self.flood, args=(pieces(),)) for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        try:
            calls = 0
            while calls < 5 or any(thread.is_alive() for thread in threads):
                run = self.call()
                self.assertEqual(run.returncode, 0, run.stderr)
                peak = [max(most, resident_bytes(process)) for most, process in zip(peak, processes)]
                calls += 1
        finally:
            for thread in threads:
                thread.join()
        growth = [most - first for most, first in zip(peak, before)]
        print(f"{self.id()}: {calls} calls, grown by {[number >> 20 for number in growth]} MiB")
        for number in growth:
            self.assertLess(number, MOST_GROWTH)

    def test_header_blocks_without_end(self):
        self.check_flood(continuations)

    def test_resets(self):
        self.check_flood(resets)

    def test_calls_without_a_token_do_not_reach_the_daemons(self):
        refused = subprocess.run([BUILD / "bin/opserve", f"--target=127.0.0.1:{self.port}",
                                  f"--tls-ca={self.directory}/ca.pem", "status"],
                                 capture_output=True, text=True, timeout=120)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        denied = [daemon for daemon in self.daemons if daemon.log_entry("denied")]
        self.assertEqual(denied, [])


if __name__ == "__main__":
    unittest.main()
