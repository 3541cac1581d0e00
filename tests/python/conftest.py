"""A daemon for the tests, and clients of it."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import grpc
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
if not os.environ.get("OPSERVE_INSTALLED"):  # set it to test the package as installed
    sys.path.insert(0, str(ROOT / "client/python"))

import opserve  # noqa: E402
from opserve import _wire  # noqa: E402


def script_environment(**variables):
    """Of a Python script that imports the package that is tested."""
    environment = {**os.environ, **variables}
    if not os.environ.get("OPSERVE_INSTALLED"):
        paths = [str(ROOT / "client/python"), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment


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


# These suites have to pass with requests of a session and with calls.
BOTH_DOORS = ("calls_test", "conformance_test", "errors_test", "prepared_test", "residence_test")


def pytest_generate_tests(metafunc):
    if "client" in metafunc.fixturenames and metafunc.module.__name__ in BOTH_DOORS:
        metafunc.parametrize("client", ["session", "call"], indirect=True, scope="session")


@pytest.fixture(scope="session")
def client(daemon, request):
    """Its requests are those of a session, or calls."""
    by_session = getattr(request, "param", "session") == "session"
    with opserve.Client(daemon.target, session=by_session) as connected:
        yield connected


class ScriptedServer:
    """Answers each call with the next of `outcomes`: a code with trailers, an error, or a message."""

    def __init__(self, path, outcomes):
        self.calls = []
        self.outcomes = list(outcomes)
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers((self._handler(),))
        self.target = f"unix:{path}/scripted.sock"
        self._server.add_insecure_port(self.target)
        self._server.start()

    def _handler(self):
        server = self

        class Handler(grpc.GenericRpcHandler):
            def service(self, details):
                if details.method == _wire.SESSION:
                    return None  # it knows no sessions
                return grpc.unary_unary_rpc_method_handler(server._answer)

        return Handler()

    def _answer(self, request, context):
        self.calls.append((request, context))
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, bytes):
            return outcome
        if isinstance(outcome, dict):
            context.abort(**outcome)
        code, *trailers = outcome
        context.set_trailing_metadata(tuple(trailers))
        context.abort(code, "scripted")

    def stop(self):
        self._server.stop(None)


@pytest.fixture
def scripted(tmp_path):
    servers = []

    def start(*outcomes):
        servers.append(ScriptedServer(tmp_path, outcomes))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
