"""A compressed request cannot make the daemon take more memory than its limit on messages allows.

usage: compressed_message_test.py BUILD_DIR

Speaks just enough HTTP/2 to send bytes that no client library would.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

BUILD = pathlib.Path(sys.argv.pop())
MIB = 1 << 20
EXECUTE = "/opserve.v1.OperatorService/Execute"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, ACK, END_HEADERS = 1, 1, 4
UNIMPLEMENTED, INVALID_ARGUMENT, RESOURCE_EXHAUSTED = 12, 3, 8


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header_block(fields):
    """HPACK without its table and without Huffman codes."""
    block = b""
    for name, value in fields:
        block += b"\0"
        for text in (name.encode(), value.encode()):
            assert len(text) < 127
            block += bytes([len(text)]) + text
    return block


def message(body, is_compressed):
    return struct.pack(">BI", is_compressed, len(body)) + body


def compressed(body, encoding):
    bits = {"gzip": 31, "deflate": 15}[encoding]
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    return packer.compress(body) + packer.flush()


class Connection:
    """One call on a Unix socket."""

    def __init__(self, path, encoding):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        fields = [(":method", "POST"), (":scheme", "http"), (":path", EXECUTE),
                  (":authority", "localhost"), ("content-type", "application/grpc"),
                  ("te", "trailers"), ("grpc-encoding", encoding)]
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"") +
                            frame(HEADERS, END_HEADERS, 1, header_block(fields)))

    def send(self, body):
        """Within the window that a new stream has: 64 KiB - 1."""
        assert len(body) < 65535
        for start in range(0, len(body), 16384):
            piece = body[start:start + 16384]
            is_last = start + 16384 >= len(body)
            self.socket.sendall(frame(DATA, END_STREAM if is_last else 0, 1, piece))

    def receive(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def status(self):
        """grpc-status of the answer."""
        while True:
            length, kind, flags, stream = struct.unpack(">IBBI", b"\0" + self.receive(9))
            payload = self.receive(length)
            if kind == SETTINGS and not flags & ACK:
                self.socket.sendall(frame(SETTINGS, ACK, 0, b""))
            if kind == HEADERS and stream == 1:
                found = re.search(rb"grpc-status[\x01\x02](\d+)", payload)
                if found:
                    return int(found.group(1))

    def close(self):
        self.socket.close()


class CompressedMessageTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = self.directory / "opserve.sock"
        self.daemon = subprocess.Popen(
            [BUILD / "bin/opserved", f"--listen=unix:{self.path}", "--metrics_listen=none",
             "--drain_delay=0s", f"--max_message_bytes={MIB}", "--device=0"],
            stderr=subprocess.PIPE, text=True, env=dict(os.environ, OPSERVE_HOST_DEVICES="1"))
        self.addCleanup(self.daemon.stderr.close)
        self.addCleanup(lambda: (self.daemon.terminate(), self.daemon.wait(timeout=60)))
        for line in self.daemon.stderr:
            if json.loads(line)["event"] == "ready":
                break

    def call(self, body, encoding, is_compressed):
        connection = Connection(self.path, encoding)
        self.addCleanup(connection.close)
        connection.send(message(body, is_compressed))
        return connection.status()

    def peak_bytes(self):
        status = pathlib.Path(f"/proc/{self.daemon.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+) kB", status).group(1)) << 10

    def test_a_small_message_that_inflates_above_the_limit_takes_no_memory(self):
        self.assertEqual(self.call(b"\xff", "identity", False), INVALID_ARGUMENT)
        before = self.peak_bytes()
        for encoding in ("gzip", "deflate"):
            body = compressed(bytes(48 * MIB), encoding)
            self.assertLess(len(body), MIB // 16)
            self.assertEqual(self.call(body, encoding, True), UNIMPLEMENTED)
        self.assertLess(self.peak_bytes() - before, 16 * MIB)
        self.assertEqual(self.call(b"\xff", "identity", False), INVALID_ARGUMENT)

    def test_one_within_the_limit_is_refused_alike(self):
        for encoding in ("gzip", "deflate"):
            self.assertEqual(self.call(compressed(b"\xff", encoding), encoding, True), UNIMPLEMENTED)
            # A client may name what it could use and send the message as it is.
            self.assertEqual(self.call(b"\xff", encoding, False), UNIMPLEMENTED)


if __name__ == "__main__":
    unittest.main()
