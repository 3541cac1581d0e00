"""opserved and opserve as processes: flags, sockets, signals, exit codes, metrics.

usage: process_test.py BUILD_DIR
"""

import hashlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import urllib.request

BUILD = pathlib.Path(sys.argv.pop())
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import certificates
from await_true import await_true
from cann_layouts import Installation
from npy_array import save_array

OPSERVED = BUILD / "bin/opserved"
OPSERVE = BUILD / "bin/opserve"

# The first launch is that of the golden case, with which the device proves itself.
L1_AFTER_GOLDEN = "kernel=aclnnL1LossBackward,nth=2,"

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


class Daemon:
    """A running opserved. Reads its log; `ready` is the line that says it serves."""

    def __init__(self, path, *flags, faults="", metrics_listen="127.0.0.1:0"):
        environment = dict(os.environ, OPSERVE_HOST_DEVICES="2", OPSERVE_HOST_FAULTS=faults)
        metrics = [f"--metrics_listen={metrics_listen}"] if metrics_listen else []
        self.process = subprocess.Popen(
            [OPSERVED, f"--listen=unix:{path}", *metrics, "--drain_delay=0s", *flags],
            stderr=subprocess.PIPE, text=True, env=environment)
        self.target = f"unix:{path}"
        self.admin_target = f"{self.target}.admin"
        self.events = []  # of the log, as far as it was read
        self.ready = self.wait_for("ready")

    def wait_for(self, event):
        return self.wait_for_either(event)

    def wait_for_either(self, *events):
        for line in self.process.stderr:
            entry = json.loads(line)
            self.events.append(entry["event"])
            if entry["event"] in events:
                return entry
        raise AssertionError(f"opserved ended without an event of {events}")

    def opserve(self, *arguments):
        return subprocess.run([OPSERVE, f"--target={self.target}", *arguments], capture_output=True,
                              text=True, timeout=60)

    def admin(self, *arguments, **options):
        return subprocess.run([OPSERVE, "admin", *arguments, f"--admin-target={self.admin_target}"],
                              **{"capture_output": True, "text": True, "timeout": 60, **options})

    def device_states(self):
        status = json.loads(self.opserve("--format=json", "status").stdout)
        return [device["state"] for device in status["devices"]]

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ready['metrics_port']}/metrics") as page:
            return page.read().decode()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        self.process.stderr.close()
        return code


def families_of(metrics):
    """Of a text exposition: a line for each family of ours, with its type and its labels' names."""
    lines = []
    for part in re.split(r"(?m)^# HELP ", metrics)[1:]:
        name, kind = re.search(r"(?m)^# TYPE (\S+) (\S+)$", part).groups()
        if not name.startswith(("opserve_", "process_")):
            continue
        labels = {tuple(sorted(set(re.findall(r'(\w+)="', sample)) - {"le"}))
                  for sample in re.findall(r"(?m)^[^#\s{]+(?:\{(.*)\})? \S+$", part)}
        if len(labels) != 1:
            raise AssertionError(f"{name}: its samples have these sets of labels: {labels}")
        lines.append(" ".join([name, kind, ",".join(labels.pop())]).rstrip())
    return lines


class ProcessTest(unittest.TestCase):

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.socket = self.directory / "opserve.sock"

    def start(self, *flags, **options):
        daemon = Daemon(self.socket, *flags, **options)
        self.addCleanup(lambda: daemon.process.poll() is None and daemon.stop(signal.SIGKILL))
        return daemon

    def run_opserved(self, *flags):
        """Runs opserved to its end, for flags with which it does not start."""
        return subprocess.run([OPSERVED, *flags], capture_output=True, text=True, timeout=60)

    def make_certificate(self):
        """Paths of a key and its own certificate."""
        key = self.directory / "key.pem"
        certificate = self.directory / "certificate.pem"
        certificates.make_certificate(certificate, key, "localhost", days=30)
        return key, certificate

    def l1_command(self, daemon):
        for name, values in (("g", [1, 1, 1]), ("x", [3, 1, 2]), ("t", [2, 2, 2])):
            save_array(self.directory / f"{name}.npy", values)
        return [OPSERVE, f"--target={daemon.target}", "run", "L1LossBackward",
                "--input", f"grad_output={self.directory}/g.npy",
                "--input", f"self={self.directory}/x.npy",
                "--input", f"target={self.directory}/t.npy", "--attr", "reduction=sum"]

    def run_l1(self, daemon, *flags, **environment):
        return subprocess.run([*self.l1_command(daemon), *flags], capture_output=True, text=True,
                              timeout=60, env=dict(os.environ, **environment))

    def start_l1_and_see_it_run(self, daemon):
        call = subprocess.Popen(self.l1_command(daemon), stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

        def is_executing():
            self.assertIsNone(call.poll(), "the call ended before it was seen to run")
            status = json.loads(daemon.opserve("--format=json", "status").stdout)
            return any(device["executing_requests"] for device in status["devices"])

        await_true(is_executing, "the call runs")
        return call

    def test_flags_that_are_wrong_exit_with_2_and_say_what_is_valid(self):
        cases = {
            "--listen=0.0.0.0:8470": "other machines can reach 0.0.0.0:8470",
            "--listen=nonsense": "expected unix:PATH or HOST:PORT",
            "--metrics_listen=unix:/x": "use HOST:PORT",
            "--streams_per_device=0": "must be from 1 to 64",
            "--metrics_max_tenants=201": "must be from 1 to 200",
            "--shadow_check_ratio=1.01": "must be from 0 to 1",
            "--max_message_bytes=10": "must be from 1048576 to 2147483647",
            "--execution_timeout=0s": "must be at least 1ms",
            "--drain_timeout=inf": "must be at least 0",
            "--device=a": '"a" is not a number',
            "--log_level=loud": "must be one of debug, info, warning, error, off",
            "surplus": 'unexpected argument "surplus"',
            "--stream_windw=5": "did you mean --stream_window?",
        }
        for flag, message in cases.items():
            with self.subTest(flag):
                run = self.run_opserved(flag)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assertIn(message, run.stderr)

    def write_config(self, text):
        path = self.directory / "opserved.textproto"
        path.write_text(text)
        return path

    def test_a_configuration_can_be_checked_without_running(self):
        config = self.write_config('streams_per_device: 3\ntenant { name: "a" uid: 7 }\n')
        run = self.run_opserved(f"--config={config}", "--stream_window=5", "--shadow_check_ratio=0.125",
                                "--validate_config")
        self.assertEqual(run.returncode, 0, run.stderr)
        for line in ("streams_per_device: 3", "stream_window: 5", "shadow_check_ratio: 0.125", 'max_deadline: "300s"'):
            self.assertIn(line, run.stdout)
        broken = self.write_config("streams_per_device: 3\nnonsense: 1\n")
        run = self.run_opserved(f"--config={broken}", "--validate_config")
        self.assertEqual(run.returncode, 2)
        self.assertIn("opserved.textproto:2:9: ", run.stderr)

    def test_a_flag_that_is_given_wins_whatever_its_value(self):
        """Each value of the file differs from its default, and each flag is given with its default."""
        defaults = self.run_opserved("--validate_config").stdout
        usage = self.run_opserved("--help").stdout
        file, flags = [], []
        for name, value in re.findall(r"(?m)^(\w+): (.*)$", defaults):
            if f" --{name} " in usage:
                other = {"false": "true", "true": "false"}.get(value, '"x"' if value[0] == '"' else "7")
                file.append(f"{name}: {other}")
                flags.append(f"--{name}=" + value.strip('"'))
        self.assertGreater(len(flags), 50)
        config = self.write_config("\n".join(file))
        run = self.run_opserved(f"--config={config}", *flags, "--validate_config")
        self.assertEqual((run.returncode, run.stderr, run.stdout), (0, "", defaults))

    def test_a_configuration_without_a_setting_is_refused_at_the_start(self):
        for text in ("", "# listen: 'unix:/x'\n"):
            run = self.run_opserved(f"--config={self.write_config(text)}", f"--listen=unix:{self.socket}",
                                    "--validate_config")
            self.assertEqual(run.returncode, 2)
            self.assertIn("has no setting", run.stderr)

    def test_a_tenant_that_nobody_can_be_is_refused(self):
        config = self.write_config('tenant { name: "a" certificate_name: "a.test" }')
        run = self.run_opserved(f"--config={config}", "--validate_config")
        self.assertEqual(run.returncode, 2)
        self.assertIn("needs tls_client_ca", run.stderr)

    def test_the_examples_are_valid_once_their_placeholders_are_replaced(self):
        for path in (ROOT / "deploy/examples").iterdir():
            text = path.read_text()
            # No secret that everybody knows may get into a configuration by copying.
            for known in ("test", "token", "secret", "password", ""):
                self.assertNotIn(hashlib.sha256(known.encode()).hexdigest(), text)
            if "REPLACE" in text:
                run = self.run_opserved(f"--config={path}", "--validate_config")
                self.assertEqual(run.returncode, 2, path)
                self.assertIn("must be 64 hexadecimal digits", run.stderr)
            config = self.write_config(re.sub('"REPLACE[^"]*"', '"' + "0123456789abcdef" * 4 + '"', text))
            run = self.run_opserved(f"--config={config}", "--validate_config")
            self.assertEqual(run.returncode, 0, f"{path}: {run.stderr}")

    def test_sighup_reloads_and_a_broken_file_changes_nothing(self):
        config = self.write_config('tenant { name: "nobody" }')
        daemon = self.start(f"--config={config}")
        self.assertNotEqual(daemon.opserve("status").returncode, 0)
        self.write_config(f'tenant {{ name: "me" uid: {os.getuid()} }}')
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("config_reloaded")
        self.assertEqual(daemon.opserve("status").returncode, 0)
        self.write_config("nonsense")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("config_not_reloaded")
        self.assertEqual(daemon.opserve("status").returncode, 0)
        self.assertIn('opserve_config_reloads_total{result="failure"} 1', daemon.metrics())
        self.assertEqual(daemon.stop(), 0)

    def call(self, target, token):
        """How a call ends at `target`: OK, or the status code."""
        environment = {key: value for key, value in os.environ.items() if key != "OPSERVE_TOKEN"}
        if token:
            environment["OPSERVE_TOKEN"] = token
        run = subprocess.run([OPSERVE, f"--target={target}", "ops"], capture_output=True, text=True,
                             timeout=60, env=environment)
        return "OK" if run.returncode == 0 else re.search(r"error: (\w+)", run.stderr).group(1)

    def test_a_file_that_lost_its_tenants_does_not_open_the_daemon(self):
        tenant = f'tenant {{ name: "me" token_sha256: "{hashlib.sha256(b"mine").hexdigest()}" }}\n'
        config = self.write_config(tenant)
        daemon = self.start(f"--config={config}", "--listen=127.0.0.1:0")
        targets = daemon.ready["listen"]
        self.assertEqual(len(targets), 2, targets)

        def expect_closed():
            for target in targets:
                self.assertEqual(self.call(target, ""), "UNAUTHENTICATED", target)
                self.assertEqual(self.call(target, "mine"), "OK", target)

        expect_closed()
        cases = ("", "# all gone\n", 'log_level: "debug"\n', 'tenant { name: "me" }\n',
                 f'tenant {{ name: "me" uid: {os.getuid()} }}\n', 'stream_window: 3\n')
        for count, text in enumerate(cases, start=1):
            with self.subTest(text):
                self.write_config(text)
                daemon.process.send_signal(signal.SIGHUP)
                line = daemon.wait_for_either("config_not_reloaded", "config_reloaded")
                self.assertEqual((line["event"], line["level"], line.get("would_lose_tenants")),
                                 ("config_not_reloaded", "error", True))
                expect_closed()
                self.assertIn(f'opserve_config_reloads_total{{result="would_lose_tenants"}} {count}\n',
                              daemon.metrics())
        run = daemon.admin("reload")
        self.assertEqual(run.returncode, 1)
        self.assertIn("DATA_LOSS", run.stderr)
        self.assertIn("allow_no_tenants: true", run.stderr)
        self.assertIn('opserve_config_reloads_total{result="failure"} 0\n', daemon.metrics())

        self.write_config(tenant)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("config_reloaded")
        expect_closed()
        self.write_config("allow_no_tenants: true\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("config_reloaded")
        self.assertEqual([self.call(target, "") for target in targets], ["OK", "OK"])
        self.assertEqual(daemon.stop(), 0)

    def test_a_reload_says_what_it_changed(self):
        config = self.write_config('tenant { name: "a" uid: 1 } log_level: "info"')
        daemon = self.start(f"--config={config}")
        self.assertEqual(daemon.ready["config"], str(config))
        self.assertIn(daemon.ready["version"], self.run_opserved("--version").stdout)
        self.write_config('tenant { name: "a" uid: 1 weight: 2 } tenant { name: "b" uid: 2 } log_level: "debug"')
        run = daemon.admin("reload")
        name = f"daemon {os.uname().nodename} at {daemon.admin_target}\n"
        self.assertEqual((run.returncode, run.stdout),
                         (0, f"{name}{config} is read again\n  log_level: info -> debug\n"
                             "  tenant a: changed (weight)\n  tenant b: added\n"), run.stderr)
        self.assertEqual(daemon.admin("reload").stdout,
                         f"{name}{config} is read again\n  nothing has changed\n")
        self.assertEqual(daemon.stop(), 0)
        daemon = self.start()
        self.assertIn("no configuration file", daemon.admin("reload").stdout)
        self.assertEqual(daemon.stop(), 0)

    def test_operators_that_a_tenant_may_not_call_are_shown(self):
        config = self.write_config(
            f'tenant {{ name: "me" uid: {os.getuid()} operator: "L1LossBackward" }}')
        daemon = self.start(f"--config={config}")
        table = daemon.opserve("ops").stdout
        self.assertRegex(table, r"(?m)^L1LossBackward +yes ")
        self.assertRegex(table, r"(?m)^KlDivBackward +forbidden ")
        self.assertIn("your tenant may not call", daemon.opserve("ops", "KlDivBackward").stdout)
        self.assertEqual(daemon.stop(), 0)

    def test_a_lease_that_is_too_long_is_refused(self):
        daemon = self.start()
        save_array(self.directory / "x.npy", [1, 2, 3])
        upload = ("--format=json", "tensor", "upload", f"{self.directory}/x.npy")
        run = daemon.opserve(*upload, "--lease=99h")
        self.assertEqual(run.returncode, 1)
        self.assertIn("is 99h, at most 1h allowed (--resident_max_lease)", run.stderr)
        handle = json.loads(daemon.opserve(*upload, "--lease=1h").stdout)["handle"]
        self.assertEqual(daemon.opserve("tensor", "renew", handle, "--lease=2h").returncode, 1)
        self.assertEqual(daemon.opserve("tensor", "release", handle).returncode, 0)
        run = daemon.opserve("tensor", "release", handle)
        self.assertEqual((run.returncode, run.stdout), (1, "released 0 of 1\n"))
        self.assertIn("1 of 1 handles unknown", run.stderr)
        self.assertEqual(daemon.stop(), 0)

    def test_a_second_daemon_serves_metrics_on_a_free_port(self):
        with socket.socket() as usual, socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            run = self.run_opserved(f"--listen=unix:{self.socket}",
                                    f"--metrics_listen=127.0.0.1:{other.getsockname()[1]}")
            self.assertEqual(run.returncode, 1, "a port that is asked for is served, or nothing")
            is_taken = False
            try:
                usual.bind(("127.0.0.1", 9464))
                usual.listen()
                is_taken = True
            except OSError:
                pass  # another program of this machine has the port, perhaps not for long
            daemon = self.start(metrics_listen=None)
            self.assertNotIn(daemon.ready["metrics_port"], (0, 9464) if is_taken else (0,))
            self.assertIn("opserve_build_info", daemon.metrics())
            self.assertEqual(daemon.stop(), 0)

    def test_an_address_that_is_taken_is_found_before_a_device_is_touched(self):
        daemon = self.start("--listen=127.0.0.1:0")
        port = daemon.ready["listen"][1].rpartition(":")[2]
        metrics_port = daemon.ready["metrics_port"]
        other = f"--listen=unix:{self.directory}/other.sock"
        cases = {
            (f"--listen={daemon.target}", "--metrics_listen=none"): f"another daemon serves on {self.socket}",
            (other, f"--listen=127.0.0.1:{port}", "--metrics_listen=none"): f"cannot listen on 127.0.0.1:{port}",
            (other, f"--metrics_listen=127.0.0.1:{metrics_port}"):
                f"cannot serve metrics on 127.0.0.1:{metrics_port}",
            (other, f"--admin_listen={daemon.admin_target}", "--metrics_listen=none"):
                f"another daemon serves on {self.socket}.admin",
        }
        for flags, message in cases.items():
            with self.subTest(flags):
                run = self.run_opserved(*flags, "--acl_library_dir=/nonexistent")
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertIn(message, run.stderr)
                self.assertNotIn("/nonexistent", run.stderr)
                self.assertFalse((self.directory / "other.sock").exists())
        self.assertEqual(daemon.stop(), 0)

    def test_what_keeps_it_from_starting_exits_with_1(self):
        listen = f"--listen=unix:{self.socket}"
        cases = {
            "--acl_library_dir=/nonexistent": "no libacl_rt.so or libascendcl.so in /nonexistent",
            "--device=9": "there are devices 0 to",
            "--metrics_listen=192.0.2.1:9464": "cannot serve metrics on 192.0.2.1:9464",
        }
        for flag, message in cases.items():
            with self.subTest(flag):
                run = self.run_opserved(listen, flag)
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertIn(message, run.stderr)

    def test_help_teaches(self):
        run = self.run_opserved("--help")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for text in ("--listen", "SIGTERM", "Exit codes", "opserve status"):
            self.assertIn(text, run.stdout)

    def test_the_command_line_reaches_it(self):
        daemon = self.start()
        self.assertIn("L1LossBackward", daemon.opserve("ops").stdout)
        status = json.loads(daemon.opserve("--format=json", "status").stdout)
        self.assertEqual(len(status["devices"]), 2)
        run = self.run_l1(daemon)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"\[ 1, -1,  0\]")
        self.assertEqual(daemon.stop(), 0)

    def test_administration_is_of_the_daemon_that_is_named(self):
        """And not of the one that happens to run on this machine, where users expect it."""
        self.socket = self.directory / "opserve/opserve.sock"
        self.socket.parent.mkdir()
        daemon = self.start()
        here = {name: value for name, value in os.environ.items() if name != "OPSERVE_TARGET"}
        here["XDG_RUNTIME_DIR"] = str(self.directory)

        def run(command, **environment):
            return subprocess.run([OPSERVE, *command.split()], capture_output=True, text=True, timeout=60,
                                  env={**here, **environment})

        elsewhere = "npu7.example:50051"
        for command in ("admin drain 0", "admin resume 0", "admin status", "top --count=1"):
            for attempt in (run(f"{command} --target={elsewhere}"), run(f"{command} --target={daemon.target}"),
                            run(command, OPSERVE_TARGET=elsewhere)):
                self.assertEqual(attempt.returncode, 2, attempt.stderr)
                self.assertEqual(attempt.stdout, "")
                self.assertIn("--admin-target=unix:", attempt.stderr)
        self.assertEqual(daemon.device_states(), ["READY", "READY"])

        answer = f"daemon {os.uname().nodename} at {daemon.admin_target}\n"
        for attempt in (run("admin drain 0"), run("admin status", OPSERVE_TARGET=daemon.target),
                        run("top --count=1 --plain"), daemon.admin("resume", "0")):
            self.assertEqual(attempt.returncode, 0, attempt.stderr)
            self.assertTrue(attempt.stdout.startswith(answer), attempt.stdout)
        self.assertEqual(daemon.stop(), 0)

    def test_the_last_ready_device_is_drained_for_those_who_say_so(self):
        daemon = self.start()
        save_array(self.directory / "x.npy", [1.0] * 256)
        upload = daemon.opserve("tensor", "upload", f"{self.directory}/x.npy", "--device=1")
        self.assertEqual(upload.returncode, 0, upload.stderr)
        self.assertEqual(daemon.admin("drain", "0").returncode, 0)
        refused = daemon.admin("drain", "1")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("1 resident tensor (1 KiB) cannot be used", refused.stderr)
        self.assertIn("nothing has changed", refused.stderr)
        self.assertEqual(daemon.device_states(), ["DRAINED", "READY"])

        person, terminal = pty.openpty()
        self.addCleanup(os.close, person)
        self.addCleanup(os.close, terminal)
        for answer, code in (("no", 1), (os.uname().nodename, 0)):
            os.write(person, f"{answer}\n".encode())
            drained = daemon.admin("drain", "1", stdin=terminal, stderr=terminal, stdout=subprocess.PIPE,
                                   capture_output=False)
            self.assertEqual(drained.returncode, code, drained.stdout)
        self.assertEqual(daemon.device_states(), ["DRAINED", "DRAINED"])
        self.assertEqual(daemon.admin("resume", "1").returncode, 0)
        self.assertEqual(daemon.admin("drain", "1", "--yes").returncode, 0)
        self.assertEqual(daemon.stop(), 0)

    def test_the_host_cann_is_called_so_wherever_the_runtime_is_named(self):
        daemon = self.start()
        name = "host CANN (this machine's processor), as Ascend910B3 "
        self.assertTrue(daemon.ready["runtime"].startswith(name), daemon.ready)
        for answer in (daemon.opserve("status"), daemon.admin("status")):
            self.assertIn(f" on {name}", answer.stdout)
        for answer in (daemon.opserve("--format=json", "status"), daemon.admin("status", "--format=json")):
            self.assertTrue(json.loads(answer.stdout)["runtime"].startswith(name), answer.stdout)
        self.assertRegex(daemon.metrics(),
                         r'opserve_build_info\{[^}]*backend="host-cann",soc="Ascend910B3"')
        self.assertEqual(daemon.stop(), 0)

    def test_a_cann_that_is_not_used_is_said_once_in_the_log(self):
        host = BUILD / "lib/opserve/host-cann"
        home = self.directory / "cann"
        Installation(home, host).old_runtime().one_library()
        with unittest.mock.patch.dict(os.environ, ASCEND_HOME_PATH=str(home)):
            daemon = self.start()
            self.assertEqual(daemon.events.count("npus_not_used"), 1)
            self.assertEqual(daemon.stop(), 0)
            # Who names a directory has decided.
            daemon = self.start(f"--acl_library_dir={host}")
            self.assertEqual(daemon.events.count("npus_not_used"), 0)
            self.assertEqual(daemon.stop(), 0)

    def test_bash_completes_by_it(self):
        daemon = self.start()
        path = self.directory / "tensor.npy"
        save_array(path, [1.0] * 100)
        upload = daemon.opserve("--format=json", "tensor", "upload", str(path))
        handle = json.loads(upload.stdout)["handle"]
        # Of the last word, the part after the last "=" or ":", at which bash ends words.
        cases = {
            "run Kl": "KlDiv KlDivBackward KlDivTargetBackward",
            "run KlDiv --input s": "self=",
            "run KlDiv --attr reduction=batch": "batchmean",
            "--format=j": "json",
            f"run KlDiv --input self=tensor:{handle[:4]}": handle[:8],
            "tensor rm ": handle[:8],
            "admin drain ": "0 1",
            "run KlDiv --input self=ten": "tensor: tensor.npy",
        }
        for line, completions in cases.items():
            with self.subTest(line):
                script = (f'cd {self.directory}; PATH={OPSERVE.parent}:$PATH; export OPSERVE_TARGET={daemon.target}; '
                          'eval "$(opserve completion bash)"; COMP_LINE="opserve $1"; '
                          'COMP_POINT=${#COMP_LINE}; _opserve; echo "${COMPREPLY[@]}"')
                run = subprocess.run(["bash", "-c", script, "bash", line], capture_output=True,
                                     text=True, timeout=60)
                self.assertEqual(run.stdout, completions + "\n", run.stderr)
        self.assertEqual(daemon.stop(), 0)

    def verify(self, daemon, *flags):
        return daemon.opserve("run", "L1LossBackward", "--input=grad_output=random:scalar",
                              "--input=self=random:7,300:BF16", "--input=target=random:300",
                              "--verify", *flags)

    def test_results_can_be_verified_on_this_machine(self):
        daemon = self.start()
        run = self.verify(daemon)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("grad_input is right: largest error ", run.stdout)
        self.assertIn("2100 of 2100 within ", run.stdout)
        self.assertNotEqual(self.verify(daemon, "--seed=1").stdout, run.stdout)
        self.assertEqual(daemon.stop(), 0)

    def test_wrong_results_are_found(self):
        daemon = self.start("--device=0", faults=L1_AFTER_GOLDEN + "wrong")
        run = self.verify(daemon, "--format=json")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertGreater(json.loads(run.stdout)["verification"][0]["num_wrong"], 0)
        self.assertIn("are not what the local reference says", run.stderr)

    def test_it_is_measured_by_every_transport(self):
        daemon = self.start("--enable_shm")
        for transport in ("unary", "session", "shm"):
            run = daemon.opserve("--format=json", "bench", "KlDivBackward", "--concurrency=1,3",
                                 f"--transport={transport}", "--warmup=0s", "--duration=200ms")
            self.assertEqual(run.returncode, 0, run.stderr)
            for load in json.loads(run.stdout)["runs"]:
                self.assertGreater(load["answered"], 0)
        self.assertEqual(daemon.stop(), 0)

    def test_load_on_shared_memory_needs_a_daemon_that_takes_it(self):
        daemon = self.start()
        run = daemon.opserve("bench", "KlDivBackward", "--transport=shm")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("opserved --enable_shm", run.stderr)
        self.assertEqual(daemon.stop(), 0)

    def test_a_message_above_the_limit_is_refused(self):
        daemon = self.start("--max_message_bytes=1048576")
        program = self.directory / "program"
        program.write_text("""inputs { dtype: DATA_TYPE_FLOAT shape: 900000 }
            program { invocations { operator: "ReduceSum" inputs { name: "self" tensor { program_input: 0 } }
            attributes { name: "dims" value { int64_list { values: 0 } } }
            attributes { name: "dtype" value { dtype_value: DATA_TYPE_FLOAT } } } }""")
        # In a session it travels in chunks.
        run = daemon.opserve("program", "run", str(program), "--prepare")
        self.assertEqual(run.returncode, 0, run.stderr)
        run = daemon.opserve("bench", "L1LossBackward", "--shape=300000", "--transport=unary", "--duration=1s")
        self.assertEqual(run.returncode, 1)
        self.assertIn("INVALID_ARGUMENT: the message has 3600", run.stderr)
        self.assertIn("--max_message_bytes", run.stderr)
        self.assertNotIn("attempt", run.stderr)
        self.assertEqual(self.run_l1(daemon).returncode, 0)
        self.assertEqual(daemon.stop(), 0)

    def replay(self, path):
        return self.run_opserved(f"--replay_allocation_log={path}")

    def test_an_allocation_log_is_replayed_and_a_changed_one_is_found_out(self):
        log = self.directory / "allocations"
        daemon = self.start("--device=1", f"--allocation_log={log}")
        for _ in range(3):
            self.assertEqual(self.run_l1(daemon).returncode, 0)
        reserved = re.search(r'opserve_workspace_pool_reserved_bytes{device="1"} (\d+)', daemon.metrics())[1]
        self.assertEqual(daemon.stop(), 0)
        log = log.with_name("allocations.1")
        self.assertEqual(log.stat().st_mode & 0o777, 0o600)
        run = self.replay(log)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertRegex(run.stdout, r"^\d+ lines, \d+ lendings, \d+ merges; sums compared at \d+ places, equal\n")
        self.assertIn(f"reserved {reserved}, allocated 0 (requested 0)", run.stdout)

        # A copy that a killed daemon leaves ends anywhere.
        text = log.read_text()
        log.write_text(text[:len(text) // 2])
        self.assertEqual(self.replay(log).returncode, 0)
        # Other sums.
        log.write_text(re.sub(r"(?m)^state \d+", "state 1", text))
        run = self.replay(log)
        self.assertEqual(run.returncode, 1)
        self.assertIn("the sums are", run.stderr)
        for wrong in ("", "nonsense\n"):
            log.write_text(wrong)
            self.assertEqual(self.replay(log).returncode, 2)
        self.assertEqual(self.replay(self.directory / "none").returncode, 2)

    def test_a_guarded_daemon_computes_the_same(self):
        daemon = self.start("--guard_device_memory", "--scrub=always")
        for _ in range(3):
            run = self.run_l1(daemon, "--verify")
            self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(daemon.stop(), 0)

    def test_the_socket_is_private_to_owner_and_group(self):
        daemon = self.start()
        self.assertEqual(self.socket.stat().st_mode & 0o777, 0o660)
        self.assertEqual(daemon.stop(), 0)

    def test_a_stale_socket_is_replaced_and_a_living_one_is_not(self):
        first = self.start()
        run = self.run_opserved(f"--listen={first.target}", "--metrics_listen=none")
        self.assertEqual(run.returncode, 1)
        self.assertIn("another daemon serves on", run.stderr)
        first.stop(signal.SIGKILL)
        self.assertTrue(self.socket.exists())
        second = self.start()
        self.assertEqual(self.run_l1(second).returncode, 0)
        self.assertEqual(second.stop(), 0)

    def test_status_says_that_the_daemon_stops(self):
        daemon = self.start("--drain_delay=1h")
        self.assertNotIn("STOPPING", daemon.opserve("status").stdout)
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_for("draining")
        self.assertIn("\nSTOPPING: the daemon drains", daemon.opserve("status").stdout)
        self.assertIn(", STOPPING\n", daemon.admin("status").stdout)
        self.assertEqual(daemon.stop(), 3, "the second signal")

    def test_a_file_in_the_sockets_place_is_left_alone(self):
        self.socket.write_text("precious")
        run = self.run_opserved(f"--listen=unix:{self.socket}", "--metrics_listen=none")
        self.assertEqual(run.returncode, 1)
        self.assertIn("is not a socket", run.stderr)
        self.assertEqual(self.socket.read_text(), "precious")

    @unittest.skipUnless(os.geteuid() == 0 or "CI" in os.environ, "only root can give a directory away")
    def test_a_directory_of_another_user_is_not_trusted(self):
        os.chown(self.directory, 65534, 65534)
        run = self.run_opserved(f"--listen=unix:{self.socket}", "--metrics_listen=none")
        self.assertEqual(run.returncode, 1)
        self.assertIn("belongs to another user", run.stderr)

    def test_sigterm_lets_a_running_call_end(self):
        daemon = self.start("--device=0", faults=L1_AFTER_GOLDEN + "slow=3000000")
        call = self.start_l1_and_see_it_run(daemon)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(call.wait(timeout=60), 0)

    def test_a_call_that_does_not_end_in_time_is_cut_off_with_exit_code_3(self):
        daemon = self.start("--device=0", "--drain_timeout=100ms",
                            faults=L1_AFTER_GOLDEN + "hang")
        call = self.start_l1_and_see_it_run(daemon)
        self.assertEqual(daemon.stop(), 3)
        self.assertNotEqual(call.wait(timeout=60), 0)

    def test_a_terminal_that_goes_away_does_not_end_it(self):
        daemon = self.start()
        daemon.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.run_l1(daemon).returncode, 0)

    def test_it_introduces_itself_on_a_terminal(self):
        master, slave = os.openpty()
        process = subprocess.Popen(
            [OPSERVED, f"--listen=unix:{self.socket}", "--metrics_listen=127.0.0.1:0",
             "--drain_delay=0s"], stdout=slave, stderr=subprocess.DEVNULL,
            env=dict(os.environ, OPSERVE_HOST_DEVICES="2"))
        os.close(slave)
        self.addCleanup(process.kill)
        with os.fdopen(master, "rb", buffering=0) as terminal:
            def read_until(end):
                text = b""
                while end not in text:
                    self.assertTrue(select.select([terminal], [], [], 60)[0], text)
                    text += terminal.read(4096)
                return text.decode().replace("\r\n", "\n")

            said = read_until(b"standard error.")
            self.assertRegex(said, r"^opserved [\d.]+, 2 devices of host CANN \(this machine's processor\)")
            self.assertIn(f"\n  clients         unix:{self.socket}\n", said)
            self.assertIn(f"\n  administrators  unix:{self.socket}.admin\n", said)
            self.assertRegex(said, r"\n  status page     http://127.0.0.1:\d+/\n")
            self.assertIn("\n  configuration   no file", said)
            process.send_signal(signal.SIGINT)
            self.assertIn("Ctrl-C again cuts them off", read_until(b"cuts them off"))
        self.assertEqual(process.wait(timeout=60), 0)

    def test_a_device_that_crashes_on_a_golden_case_is_not_ready(self):
        daemon = self.start("--device=0", "--recovery_wait=1h", "--longest_recovery_wait=1h",
                            faults="kernel=aclnnL1LossBackward,code=507015")
        device = json.loads(daemon.opserve("--format=json", "status").stdout)["devices"][0]
        self.assertEqual(device["state"], "QUARANTINED")
        self.assertIn("507015", device["state_reason"])
        self.assertNotEqual(self.run_l1(daemon).returncode, 0)

        self.assertEqual(daemon.admin("resume", "0").returncode, 0)
        self.assertEqual(self.run_l1(daemon).returncode, 0)

    def test_an_operator_that_a_device_computes_wrong_is_not_offered(self):
        daemon = self.start("--device=0", faults="kernel=aclnnL1LossBackward,wrong")
        self.assertIn("device 0 does not offer L1LossBackward: golden case: element 0 is ",
                      daemon.opserve("status").stdout)
        refused = self.run_l1(daemon)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no device offers it: golden case: element 0 is ", refused.stderr)
        self.assertIn("Not available", daemon.opserve("ops", "L1LossBackward").stdout)
        self.assertIn(f'opserve_operator_unavailable{{operator="L1LossBackward",device="0"}} 1\n',
                      daemon.metrics())
        other = daemon.opserve("run", "MseLossBackward", "--input=grad_output=random:scalar",
                               "--input=self=random:8", "--input=target=random:8", "--verify")
        self.assertEqual(other.returncode, 0, other.stderr)

        self.assertEqual(daemon.admin("resume", "0").returncode, 0)
        self.assertEqual(self.run_l1(daemon).returncode, 0)
        self.assertNotIn("does not offer", daemon.opserve("status").stdout)
        self.assertEqual(daemon.stop(), 0)

    def test_a_second_signal_ends_it_at_once(self):
        daemon = self.start("--drain_delay=1h")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_for("draining")
        self.assertEqual(daemon.stop(signal.SIGINT), 3)

    def test_promtool_accepts_the_metrics(self):
        daemon = self.start()
        self.assertEqual(self.run_l1(daemon).returncode, 0)
        metrics = daemon.metrics()
        promtool = shutil.which("promtool")
        self.assertIsNotNone(promtool, "promtool is missing; tests/run.sh provides it")
        check = subprocess.run([promtool, "check", "metrics"], input=metrics, capture_output=True,
                               text=True, timeout=60)
        self.assertEqual((check.returncode, check.stdout + check.stderr), (0, ""))
        self.assertRegex(
            metrics, r'opserve_requests_total\{operator="L1LossBackward",tenant="default",'
            r'device="\d",code="OK"\} 1\n')
        for family in ("opserve_build_info", "opserve_request_duration_seconds_bucket",
                       "opserve_queue_depth", "opserve_workspace_pool_reserved_bytes",
                       "opserve_device_state", "opserve_device_memory_total_bytes",
                       "opserve_admission_rejections_total", "opserve_requests_in_flight"):
            self.assertRegex(metrics, rf"(?m)^{family}{{")
        self.assertEqual(daemon.stop(), 0)

    def test_a_trace_leads_from_the_receipt_to_the_log(self):
        daemon = self.start("--log_slow_requests=1ns")
        run = self.run_l1(daemon, "--receipt", "--format=json", TRACEPARENT=f"00-{TRACE}-{PARENT}-01")
        receipt = json.loads(run.stdout)["receipt"]
        line = daemon.wait_for("request_slow")
        self.assertEqual(receipt["trace_id"], TRACE)
        for key, value in {"trace_id": TRACE, "span_id": receipt["span_id"],
                           "parent_span_id": PARENT, "tenant": "default",
                           "operator": "L1LossBackward", "code": "OK",
                           "program": "L1LossBackward(FLOAT [3], FLOAT [3], FLOAT [3])",
                           "device": receipt["device"], "lane": receipt["lane"]}.items():
            self.assertEqual(line[key], value, key)
        self.assertAlmostEqual(line["seconds"]["total"], receipt["total_ns"] * 1e-9, places=3)
        # What comes from elsewhere than a trace is not sent on, and does not fail the call.
        run = self.run_l1(daemon, "--receipt", "--format=json", TRACEPARENT="no\ntrace")
        receipt = json.loads(run.stdout)["receipt"]
        self.assertNotIn(receipt["trace_id"], ("", TRACE))
        self.assertEqual(daemon.wait_for("request_slow")["trace_id"], receipt["trace_id"])
        self.assertEqual(daemon.stop(), 0)

    def test_the_log_of_a_failed_request_explains_it_and_tells_no_secret(self):
        config = self.write_config(f'tenant {{ name: "me" uid: {os.getuid()} }}')
        daemon = self.start(f"--config={config}", "--device=0",
                            faults=L1_AFTER_GOLDEN + "code=507015")
        self.assertNotEqual(self.run_l1(daemon).returncode, 0)
        line = daemon.wait_for("request_failed")
        self.assertEqual((line["level"], line["code"], line["tenant"]), ("error", "INTERNAL", "me"))
        self.assertIn("L1LossBackward", line["error"])
        self.assertGreater(line["seconds"]["total"], 0)
        # Who asked in vain is in the audit log instead, without the token.
        run = self.run_l1(daemon, OPSERVE_TOKEN="my-secret-token")
        self.assertNotEqual(run.returncode, 0)
        self.assertNotIn("my-secret-token", json.dumps(daemon.wait_for("denied")))

    def test_what_is_slow_can_change_while_it_runs(self):
        config = self.write_config('log_slow_requests: "1h"')
        daemon = self.start(f"--config={config}")
        self.assertEqual(self.run_l1(daemon).returncode, 0)
        self.write_config('log_slow_requests: "1ns"')
        daemon.process.send_signal(signal.SIGHUP)
        self.assertEqual(daemon.wait_for("config_reloaded")["level"], "info")
        self.assertEqual(self.run_l1(daemon).returncode, 0)
        daemon.wait_for("request_slow")
        self.assertEqual(daemon.stop(), 0)

    def test_the_metrics_are_those_that_dashboards_and_alerts_are_written_for(self):
        key, certificate = self.make_certificate()
        daemon = self.start("--enable_shm", "--listen=127.0.0.1:0", f"--tls_cert={certificate}",
                            f"--tls_key={key}")
        self.assertEqual(self.run_l1(daemon).returncode, 0)
        families = families_of(daemon.metrics())
        golden = (ROOT / "tests/data/metrics.txt").read_text().splitlines()
        self.assertEqual(sorted(families), sorted(golden))
        self.assertEqual(len({line.split()[0] for line in families}), len(families))

    def test_failed_handshakes_are_few_lines_of_the_log(self):
        key, certificate = self.make_certificate()
        daemon = self.start("--listen=127.0.0.1:0", f"--tls_cert={certificate}", f"--tls_key={key}",
                            "--log_slow_requests=1ns")
        address = next(a for a in daemon.ready["listen"] if a.startswith("127."))
        for _ in range(300):
            with socket.create_connection(("127.0.0.1", int(address.rsplit(":", 1)[1])), 60) as peer:
                peer.sendall(b"no handshake")
                peer.recv(1)  # until the daemon has ended it
        self.assertEqual(self.run_l1(daemon).returncode, 0)
        lines = []
        for line in daemon.process.stderr:
            lines.append(json.loads(line))  # raises if it is none of the log's
            if lines[-1]["event"] == "request_slow":
                break
        told = [line for line in lines if line["event"] in ("grpc", "connection_ended")]
        self.assertLess(len(told), 100)
        self.assertEqual(daemon.stop(), 0)

    def test_tcp_on_loopback(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        daemon = self.start(f"--listen=127.0.0.1:{port}")
        self.assertEqual(daemon.ready["listen"], [f"unix:{self.socket}", f"127.0.0.1:{port}"])
        daemon.target = f"127.0.0.1:{port}"
        self.assertEqual(self.run_l1(daemon).returncode, 0)
        self.assertEqual(daemon.stop(), 0)

    def test_nobody_else_can_listen_on_its_port(self):
        daemon = self.start("--listen=127.0.0.1:0")
        address = next(a for a in daemon.ready["listen"] if a.startswith("127."))
        run = self.run_opserved(f"--listen={address}", "--metrics_listen=none", "--admin_listen=none")
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"cannot listen on {address}: Address already in use", run.stderr)
        with socket.socket() as intruder:
            intruder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with self.assertRaises(OSError):
                intruder.bind(("127.0.0.1", int(address.rsplit(":", 1)[1])))
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
