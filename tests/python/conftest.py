"""A daemon for the tests, and clients of it."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
if not os.environ.get("OPSERVE_INSTALLED"):  # set it to test the package as installed
    sys.path.insert(0, str(ROOT / "client/python"))

import opserve  # noqa: E402


class Daemon:
    """A running opserved with two devices, on a Unix socket in a directory of its own."""

    def __init__(self, *flags, faults="", listen=""):
        self._directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.socket = self._directory / "opserve.sock"
        self.target = f"unix:{self.socket}"
        self._flags = flags
        self._listen = listen
        self.start(faults)

    def start(self, faults=""):
        """Starts it anew, where it was."""
        environment = dict(
            os.environ, OPSERVE_HOST_DEVICES="2", OPSERVE_HOST_FAULTS=faults
        )
        self.process = subprocess.Popen(
            [
                os.environ["OPSERVED"],
                f"--listen={self.target}{self._listen}",
                "--metrics_listen=none",
                "--drain_delay=0s",
                *self._flags,
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.ready = self._wait_for("ready")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def _wait_for(self, event):
        for line in self.process.stderr:
            entry = json.loads(line)
            if entry["event"] == event:
                return entry
        raise AssertionError(f"opserved ended without the event {event}")

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(timeout=60)

    def close(self):
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)
        shutil.rmtree(self._directory)


@pytest.fixture(scope="session")
def daemon():
    """One for all tests that do not change it."""
    running = Daemon("--enable_shm")
    yield running
    running.close()


@pytest.fixture
def start_daemon():
    """Starts daemons of a test's own; see Daemon."""
    running = []

    def start(*flags, **options):
        running.append(Daemon(*flags, **options))
        return running[-1]

    yield start
    for one in running:
        one.close()


@pytest.fixture(scope="session")
def client(daemon):
    with opserve.Client(daemon.target) as connected:
        yield connected
