"""The preStop hook of deploy/kubernetes: the very command of each kustomization, on daemons that are processes.

usage: pre_stop_test.py BUILD_DIR
"""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

from await_true import await_true
from cann_layouts import Installation
# Takes the build directory from the arguments.
from process_test import BUILD, OPSERVED, ROOT, Daemon

sys.path[:0] = [str(ROOT / room) for room in ("client/python", "tests/packaging")]
import certificates
import kustomizations
import numpy as np
import opserve

# The token "a".
TOKEN = 'token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"'
TENANT = f'tenant {{ name: "a" {TOKEN} }}'

# Lines of the configurations in the kustomizations, to be replaced.
DELAY = 'drain_delay: "10s"'
TIMEOUT = 'drain_timeout: "40s"'
CLIENT_CA = 'tls_client_ca: "/etc/opserve/tls/ca.crt"'
CLIENT = 'certificate_name: "client.opserve"'
SOCKET = '\nlisten: "unix:/run/opserve/opserve.sock"'

# Ways to configure a pod: a kustomization, replacements in its configuration, and credentials of clients.
PODS = {
    "plaintext": ("overlays/cpu", {}, ()),
    "plaintext, tokens": ("overlays/cpu", {TIMEOUT: f"{TENANT} {TIMEOUT}"}, {"token"}),
    "TLS, certificates": ("base", {}, {"authorities", "certificate"}),
    "TLS, certificates, NPUs": ("overlays/ascend", {}, {"authorities", "certificate"}),
    "TLS, tokens": ("base", {CLIENT_CA: "", CLIENT: TOKEN}, {"authorities", "token"}),
    "TLS, certificates and tokens": ("base", {CLIENT: TOKEN}, {"authorities", "certificate", "token"}),
    "TLS alone": ("base", {SOCKET: ""}, {"authorities", "certificate"}),
}

# Of pods that deposit: both pods' kustomization, replacements that make the first one deposit at the address of the
# second, the second one's setting for the first, and credentials of clients.
PAIRS = {
    "plaintext": ("overlays/cpu", {TIMEOUT: f'{TENANT} deposit {{ address: "ADDRESS" }} {TIMEOUT}'},
                  f'{TENANT} peer {{ uid: {os.getuid()} tenant: "a" max_bytes: 1000000 }}', {"token"}),
    "TLS": ("base", {"\n#deposit": "\ndeposit", "\n#  ": "\n  ", "\n#}": "\n}", "opserve-peer:8470": "ADDRESS"},
            'peer { certificate_name: "pod.opserve" tenant: "default" max_bytes: 1000000 }',
            {"authorities", "certificate"}),
}


def make_certificates(directory):
    """Those of the Secret, and of a client."""
    authority = directory / "ca.crt", directory / "ca.key"
    certificates.make_certificate(*authority, "ca")
    signed = ("-CA", authority[0], "-CAkey", authority[1], "-addext", "basicConstraints=CA:FALSE")
    for name, alternatives in (("tls", "DNS:pod.opserve,IP:127.0.0.1"), ("client", "DNS:client.opserve")):
        certificates.make_certificate(directory / f"{name}.crt", directory / f"{name}.key", name, *signed,
                                      alternatives=alternatives)


class Pod(Daemon):
    """The container of a kustomization: its paths are below a directory, its ports are any."""

    def __init__(self, directory, secret, place, changes):
        """
        Args:
            secret: the directory of what make_certificates() makes.
            changes: of the configuration, each from a text to another one.
        """
        self.directory = directory
        self._objects = kustomizations.build(place)
        self._container = kustomizations.container_of(self._objects)
        # A process that the kubelet starts in the container has these variables, and no others.
        variables = {**kustomizations.image_environment(self._container),
                     **{one["name"]: one["value"] for one in self._container.get("env", ())}}
        self.environment = {**{name: self._here(value) for name, value in variables.items()},
                            "PATH": str(OPSERVED.parent)}
        for mount in ("run/opserve", "etc/opserve", "var/log/opserve"):
            (directory / mount).mkdir(parents=True)
        (directory / "etc/opserve/tls").symlink_to(secret)
        if "ASCEND_HOME_PATH" in self.environment:
            host = BUILD / "lib/opserve/host-cann"
            Installation(self.environment["ASCEND_HOME_PATH"], host).old_runtime().one_library().custom_package()
        config = self._objects["ConfigMap"]["data"]["opserved.textproto"]
        for old, new in {DELAY: 'drain_delay: "0s"', **changes}.items():
            if old not in config:
                raise AssertionError(f"{place} does not say {old}")
            config = config.replace(old, new)
        path = directory / "etc/opserve/opserved.textproto"
        path.write_text(self._here(re.sub(r"0\.0\.0\.0:\d+", "127.0.0.1:0", config)), encoding="utf-8")
        self.events = []
        self.process = subprocess.Popen(
            ["opserved", *map(self._here, self._container["args"])],
            stderr=subprocess.PIPE, text=True, env={"OPSERVE_HOST_DEVICES": "1", **self.environment})
        self.ready = self.wait_for("ready")
        self.address = next(one for one in self.ready["listen"] if one.startswith("127.0.0.1:"))
        self.socket = f"unix:{directory}/run/opserve/opserve.sock"

    def _here(self, text):
        return re.sub(r"(?<!\w)/(?:(?:etc|run|var/log)/opserve|usr/local/Ascend)\b",
                      lambda found: f"{self.directory}{found[0]}", text)

    def hook(self):
        """Runs what the kubelet runs in the container before SIGTERM."""
        command = self._container["lifecycle"]["preStop"]["exec"]["command"]
        return subprocess.run([self._here(word) for word in command], capture_output=True, text=True, timeout=60,
                              env=self.environment)


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
        self.secret = self.directory / "secret"
        self.secret.mkdir()
        make_certificates(self.secret)

    def start(self, place, changes):
        directory = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        pod = Pod(directory, self.secret, place, changes)
        self.addCleanup(lambda: pod.process.poll() is None and pod.stop(signal.SIGKILL))
        return pod

    def start_pair(self, place, depositing, receiving):
        """A pod that deposits at another one, and that one."""
        receiver = self.start(place, {TIMEOUT: f"{receiving} {TIMEOUT}"})
        # Without TLS elements do not leave the machine.
        self.peer = receiver.address if place == "base" else receiver.socket
        return self.start(place, {old: new.replace("ADDRESS", self.peer) for old, new in depositing.items()}), receiver

    def connect(self, targets, shown):
        tls = opserve.Tls(ca_file=self.secret / "ca.crt", server_name="pod.opserve") if "authorities" in shown else None
        if "certificate" in shown:
            tls = dataclasses.replace(tls, cert_file=self.secret / "client.crt", key_file=self.secret / "client.key")
        client = opserve.Client(targets, tls=tls, token="a" if "token" in shown else None, balance=False)
        self.addCleanup(client.close)
        return client

    def log_after(self, pod, number):
        """Ends it with a signal: its exit code, and what it still logs, by the event."""
        pod.process.send_signal(number)
        entries = {}
        for line in pod.process.stderr:
            entry = json.loads(line)
            entries.setdefault(entry["event"], []).append(entry)
        pod.process.stderr.close()
        return pod.process.wait(timeout=60), entries

    def check_drained_once(self, pod):
        """The pod is out of its Service, waits for SIGTERM, and has its result in the log, which is returned."""
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{pod.ready['metrics_port']}/readyz", timeout=60)
        self.assertEqual(refused.exception.code, 503)
        refused.exception.close()
        self.assertIsNone(pod.process.poll())
        code, log = self.log_after(pod, signal.SIGTERM)
        self.assertEqual(code, 0)
        self.assertEqual([len(log[event]) for event in ("draining", "drained")], [1, 1])
        self.assertEqual(log["drained"][0]["cut_off"], 0)
        self.assertEqual({call["method"] for call in log["admin_call"]}, {"DrainDaemon"})
        return log

    def test_it_drains_the_daemon_of_each_pod(self):
        # There is no kustomization without a row.
        self.assertEqual({place for place, _, _ in PODS.values()}, set(kustomizations.PLACES))
        for name, (place, changes, shown) in PODS.items():
            with self.subTest(name):
                pod = self.start(place, changes)
                np.testing.assert_array_equal(self.connect(pod.address, shown).neg(np.float32([1, 2])), [-1, -2])

                ended = pod.hook()

                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertIn("the daemon is drained and waits for SIGTERM\n", ended.stdout)
                self.check_drained_once(pod)

    def test_tensors_and_programs_are_at_the_peer_when_it_has_ended(self):
        for name, (place, depositing, receiving, shown) in PAIRS.items():
            with self.subTest(name):
                pod, receiver = self.start_pair(place, depositing, receiving)
                client = self.connect(f"{pod.address},{receiver.address}", shown)
                tensor = client.upload(np.float32([1, 2]))
                program = opserve.Program()
                x = program.input("float32", (2,))
                adding = client.prepare(program, [program.add(program.add(x, tensor), tensor)])
                np.testing.assert_array_equal(adding(np.float32([10, 20])).results[0], [12, 24])

                ended = pod.hook()

                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertIn(f"1 resident tensor (8 B) and 1 prepared program went to {self.peer}\n", ended.stdout)
                deposited, = self.check_drained_once(pod)["tensors_deposited"]
                self.assertEqual([deposited[field] for field in ("tensors", "programs", "lost")], [1, 1, 0])
                # The same handles, at the peer.
                # The client notices with its first call that the connection has ended.
                await_true(lambda: is_reached(client), "the client is at the peer")
                np.testing.assert_array_equal(client.download(tensor), [1, 2])
                np.testing.assert_array_equal(adding(np.float32([10, 20])).results[0], [12, 24])
                self.assertEqual(adding.prepared_again, 0)

    def test_it_fails_where_tensors_are_lost_and_says_so_in_the_pod_events(self):
        pod = self.start("overlays/cpu", {TIMEOUT: 'drain_timeout: "1s"'})
        tensor = self.connect(pod.address, ()).upload(np.float32([1, 2]))  # stays after the client

        ended = pod.hook()

        self.assertEqual(ended.returncode, 1, ended.stdout)
        self.assertIn("1 resident tensor lost, 0 calls cut off", ended.stderr)
        del tensor
        self.assertEqual(self.log_after(pod, signal.SIGTERM)[0], 0)

    def test_a_second_hook_waits_for_the_same_drain(self):
        pod, receiver = self.start_pair(*PAIRS["plaintext"][:3])

        ended = [pod.hook() for _ in range(2)]

        self.assertEqual([one.returncode for one in ended], [0, 0])
        self.assertEqual(ended[0].stdout, ended[1].stdout)
        code, log = self.log_after(pod, signal.SIGTERM)
        self.assertEqual(code, 0)
        self.assertEqual(len(log["draining"]), 1)
        self.assertEqual(receiver.stop(), 0)


if __name__ == "__main__":
    unittest.main()
