"""The preStop hook of deploy/kubernetes: the very command of the manifest, on daemons that are processes.

usage: pre_stop_test.py BUILD_DIR
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

from await_true import await_true
# Takes the build directory from the arguments.
from process_test import OPSERVE, ROOT, Daemon

sys.path.insert(0, str(ROOT / "client/python"))
import numpy as np
import opserve
import yaml

# Of the tenant "a", by the token "a".
TENANT = 'tenant { name: "a" token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" }'


def hook():
    """The command that the kubelet runs in the pod before SIGTERM."""
    text = (ROOT / "deploy/kubernetes/base/deployment.yaml").read_text(encoding="utf-8")
    container, = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    return container["lifecycle"]["preStop"]["exec"]["command"]


def is_reached(client):
    try:
        client.server_status()
    except opserve.UnavailableError:
        return False
    return True


class PreStopTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="opserve-test-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def start(self, name, settings):
        path = self.directory / f"{name}.textproto"
        path.write_text(f"{TENANT} {settings}", encoding="utf-8")
        daemon = Daemon(self.directory / name, f"--config={path}")
        self.addCleanup(lambda: daemon.process.poll() is None and daemon.stop(signal.SIGKILL))
        return daemon

    def start_pair(self):
        """A daemon that deposits at another one, and that one."""
        peer = f"unix:{self.directory}/peer"
        receiver = self.start("peer", f'peer {{ uid: {os.getuid()} tenant: "a" max_bytes: 1000000 }}')
        return self.start("pod", f'deposit {{ address: "{peer}" client_address: "{peer}" }} drain_timeout: "20s"'), receiver

    def run_hook(self, daemon):
        """As in the pod, of which the image says where the daemon's socket is."""
        program, *arguments = hook()
        self.assertEqual(program, OPSERVE.name)
        return subprocess.run([OPSERVE, *arguments], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, OPSERVE_TARGET=daemon.target))

    def log_after(self, daemon, number):
        """Ends it with a signal: its exit code, and what it still logs, by the event."""
        daemon.process.send_signal(number)
        entries = {}
        for line in daemon.process.stderr:
            entry = json.loads(line)
            entries.setdefault(entry["event"], []).append(entry)
        return daemon.process.wait(timeout=60), entries

    def test_tensors_and_programs_are_at_the_peer_when_the_hook_has_ended(self):
        pod, receiver = self.start_pair()
        client = opserve.Client(f"{pod.target},{receiver.target}", token="a", balance=False)
        self.addCleanup(client.close)
        tensor = client.upload(np.float32([1, 2]))
        program = opserve.Program()
        x = program.input("float32", (2,))
        adding = client.prepare(program, [program.add(program.add(x, tensor), tensor)])
        np.testing.assert_array_equal(adding(np.float32([10, 20])).results[0], [12, 24])

        ended = self.run_hook(pod)

        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn(f"1 resident tensor (8 B) and 1 prepared program went to {receiver.target}\n", ended.stdout)
        # The pod is out of its Service, and waits for SIGTERM.
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{pod.ready['metrics_port']}/readyz", timeout=60)
        self.assertEqual(refused.exception.code, 503)
        refused.exception.close()
        self.assertIsNone(pod.process.poll())
        code, log = self.log_after(pod, signal.SIGTERM)
        self.assertEqual(code, 0)
        # One drain, whose result is in the pod's log.
        self.assertEqual(len(log["draining"]), 1)
        (deposited,), (drained,), (call,) = log["tensors_deposited"], log["drained"], log["admin_call"]
        self.assertEqual([deposited[field] for field in ("tensors", "programs", "lost")], [1, 1, 0])
        self.assertEqual(drained["cut_off"], 0)
        self.assertEqual(call["method"], "DrainDaemon")
        # The same handles, at the peer.
        # The client notices with its first call that the connection has ended.
        await_true(lambda: is_reached(client), "the client is at the peer")
        np.testing.assert_array_equal(client.download(tensor), [1, 2])
        np.testing.assert_array_equal(adding(np.float32([10, 20])).results[0], [12, 24])
        self.assertEqual(adding.prepared_again, 0)

    def test_it_fails_where_tensors_are_lost_and_says_so_in_the_pod_events(self):
        pod = self.start("pod", 'drain_timeout: "1s"')
        with opserve.Client(pod.target, token="a") as client:
            tensor = client.upload(np.float32([1, 2]))  # stays after the client

            ended = self.run_hook(pod)

            self.assertEqual(ended.returncode, 1, ended.stdout)
            self.assertIn("1 resident tensor lost, 0 calls cut off", ended.stderr)
            del tensor
        self.assertEqual(self.log_after(pod, signal.SIGTERM)[0], 0)

    def test_a_second_hook_waits_for_the_same_drain(self):
        pod, receiver = self.start_pair()

        ended = [self.run_hook(pod) for _ in range(2)]

        self.assertEqual([one.returncode for one in ended], [0, 0])
        self.assertEqual(ended[0].stdout, ended[1].stdout)
        code, log = self.log_after(pod, signal.SIGTERM)
        self.assertEqual(code, 0)
        self.assertEqual(len(log["draining"]), 1)
        self.assertEqual(receiver.stop(), 0)


if __name__ == "__main__":
    unittest.main()
