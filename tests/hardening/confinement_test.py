"""opserved under the profile that is shipped, without rights and on a read-only file system, serves as ever.

usage: confinement_test.py BUILD_DIR
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import confined

BUILD = pathlib.Path(sys.argv.pop()).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import certificates
from npy_array import save_array

CONFINED = [sys.executable, ROOT / "tests/hardening/confined.py",
            ROOT / "deploy/seccomp/opserved.json"]
IS_ROOT = os.geteuid() == 0


class ConfinementTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.directory.chmod(0o755)
        self.run_directory = self.directory / "run"
        self.run_directory.mkdir()
        if IS_ROOT:
            os.chown(self.run_directory, 65534, 65534)
        for name, values in (("g", [1, 1, 1]), ("x", [3, 1, 2]), ("t", [2, 2, 2])):
            save_array(self.directory / f"{name}.npy", values)

    def make_certificate(self):
        certificates.make_certificate(self.directory / "cert.pem", self.directory / "key.pem", "daemon.test",
                                      alternatives="IP:127.0.0.1")
        (self.directory / "key.pem").chmod(0o644)

    def start(self):
        self.make_certificate()
        self.config = self.directory / "opserved.textproto"
        # One pack is served, one is refused: their trials are processes under the profile.
        packs = self.directory / "packs"
        packs.mkdir(mode=0o755)
        for name, fault in (("good", ""), ("crash", "*(volatile int*)16 = 1;")):
            source = (ROOT / "ops/examples/weighted_sum.cc").read_text()
            subprocess.run(["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o",
                            packs / f"lib{name}.so", "-I", ROOT / "ops/abi"], check=True, text=True,
                           input=source.replace("  aclScalar* alpha", f"  {fault} aclScalar* alpha"))
            text = (ROOT / "ops/examples/weighted_sum.textproto").read_text()
            (packs / f"{name}.textproto").write_text(
                text.replace("libweighted_sum", f"lib{name}").replace('"WeightedSum"', f'"Op_{name}"'))
        for path in (packs, *packs.iterdir()):
            path.chmod(0o755)
        self.config.write_text(f'tenant {{ name: "me" uid: {os.getuid()} }} anonymous_tenant: "me" '
                               f'operator_pack: "{packs}"')
        # Whoever runs this test may have put the build where nobody else can read.
        self.bin = self.directory / "build/bin"
        shutil.copytree(BUILD / "lib", self.directory / "build/lib")
        self.bin.mkdir()
        shutil.copy(BUILD / "bin/opserved", self.bin)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.socket = self.run_directory / "opserve.sock"
        self.daemon = subprocess.Popen(
            [*CONFINED, self.run_directory, self.bin / "opserved",
             f"--listen=unix:{self.socket},127.0.0.1:{self.port}",
             "--metrics_listen=127.0.0.1:0", "--drain_delay=0s", f"--config={self.config}",
             f"--tls_cert={self.directory}/cert.pem", f"--tls_key={self.directory}/key.pem"],
            stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, OPSERVE_HOST_DEVICES="2"))
        self.addCleanup(lambda: self.daemon.poll() is None and self.daemon.kill())
        self.addCleanup(self.daemon.stderr.close)
        self.wait_for("ready")

    def wait_for(self, event):
        lines = []
        for line in self.daemon.stderr:
            lines.append(line)
            if line.startswith("{") and json.loads(line)["event"] == event:
                return
        self.fail(f"opserved ended without the event {event}: {''.join(lines)}")

    def opserve(self, *arguments, target=None):
        run = subprocess.run(
            [BUILD / "bin/opserve", f"--target={target or f'unix:{self.socket}'}", *arguments],
            capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, f"{arguments}: {run.stderr}")
        return run.stdout

    def run_l1(self, *flags, target=None):
        return self.opserve(*flags, "run", "L1LossBackward",
                            "--input", f"grad_output={self.directory}/g.npy",
                            "--input", f"self={self.directory}/x.npy",
                            "--input", f"target={self.directory}/t.npy", "--attr", "reduction=sum",
                            target=target)

    def test_it_has_no_rights_and_serves(self):
        self.start()
        status = dict(line.split(":\t", 1) for line in
                      pathlib.Path(f"/proc/{self.daemon.pid}/status").read_text().splitlines()
                      if ":\t" in line)
        self.assertEqual(status["Seccomp"], "2")
        self.assertEqual(status["NoNewPrivs"], "1")
        if IS_ROOT:
            self.assertEqual(set(status["Uid"].split()), {"65534"})
            for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                self.assertEqual(int(status[kind], 16), 0, kind)
        self.assertEqual(self.socket.stat().st_mode & 0o777, 0o660)

        self.assertIn("L1LossBackward", self.opserve("ops"))
        self.assertRegex(self.opserve("ops"), r"Op_good +yes +good ")
        self.assertIn("operator pack crash: 1 operator, not served: refused (crash)",
                      self.opserve("status"))
        self.assertEqual(len(json.loads(self.opserve("--format=json", "status"))["devices"]), 2)
        self.assertRegex(self.run_l1(), r"\[ 1, -1,  0\]")
        self.assertRegex(self.run_l1(f"--tls-ca={self.directory}/cert.pem",
                                     target=f"127.0.0.1:{self.port}"), r"\[ 1, -1,  0\]")
        uploaded = json.loads(self.opserve("--format=json", "tensor", "upload",
                                           str(self.directory / "x.npy")))
        self.opserve("tensor", "download", uploaded["handle"], "--output", str(self.directory / "y.npy"))
        self.assertEqual((self.directory / "y.npy").read_bytes()[-12:],
                         (self.directory / "x.npy").read_bytes()[-12:])

        self.daemon.send_signal(signal.SIGHUP)
        self.wait_for("config_reloaded")
        self.assertRegex(self.run_l1(), r"\[ 1, -1,  0\]")
        self.daemon.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.wait(timeout=60), 0)
        self.assertFalse(self.socket.exists())

    def test_what_an_intruder_would_try_is_refused(self):
        run = subprocess.run([*CONFINED, self.run_directory, "--probe"], capture_output=True,
                             text=True, timeout=60)
        self.assertEqual((run.stdout, run.returncode), ("probed\n", 0), run.stderr)

    @unittest.skipUnless(confined.may_mount() or "CI" in os.environ, "the file system cannot be made read-only here")
    def test_the_file_system_is_read_only(self):
        self.directory.chmod(0o777)
        for path, works in ((self.directory / "a", False), (self.run_directory / "a", True)):
            run = subprocess.run([*CONFINED, self.run_directory, "/usr/bin/touch", path],
                                 capture_output=True, text=True, timeout=60)
            self.assertEqual(path.exists(), works, run.stderr)


if __name__ == "__main__":
    unittest.main()
