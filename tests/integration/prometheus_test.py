"""A Prometheus watches daemons at work, each with another thing wrong, and one with nothing wrong.

usage: prometheus_test.py BUILD_DIR

The rules are the shipped ones in quick motion: windows and waits are a hundredth of what they say.
"""

import collections
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

from process_test import Daemon, OPSERVE, ROOT
from prometheus_server import PrometheusServer, quicken

sys.path.insert(0, str(ROOT / "deploy/grafana"))
import generate

RULES = [path.read_text() for path in sorted((ROOT / "deploy/prometheus/rules").glob("*.yml"))]
QUICKER = 100

# After the golden case all launches of a kernel, or all calls of a function.
ALL_L1 = "kernel=aclnnL1LossBackward,nth=2,count=all,"
# Three launches that fail take the device out, and the golden case takes one before it is back.
ALL_BUT_GOLDEN = ";".join(f"kernel=aclnnL1LossBackward,nth={nth},count=3,code=507015"
                          for nth in range(2, 42, 4))
FOREVER = ("--duration=10m", "--warmup=0s")
SMALL = ("bench", "L1LossBackward", "--shape=8,8", *FOREVER)
TENANTS = f'tenant {{ name: "research" uid: {os.getuid()} }} tenant {{ name: "production" weight: 3 }}'
MANY_TENANTS = TENANTS + "".join(f' tenant {{ name: "tenant{i}" }}' for i in range(200))


class Watched:
    """A daemon that does not stop for its log, and what its clients do until the end."""

    def __init__(self, directory, name, flags=(), faults="", config=""):
        self.job = f"opserve-{name}"
        self.directory = directory / name
        self.directory.mkdir()
        self.config = self.directory / "config"
        # A file without a setting is refused.
        self.config.write_text(config or 'log_level: "info"')
        self.daemon = Daemon(self.directory / "socket", f"--config={self.config}", *flags,
                             faults=faults)
        self.ended = threading.Event()
        self.clients = []
        self.threads = []
        self.in_background(lambda: self.daemon.process.stderr.read())

    def in_background(self, function):
        thread = threading.Thread(target=function)
        thread.start()
        self.threads.append(thread)

    def load(self, *arguments):
        """Runs the command again whenever it ends."""

        def run():
            while not self.ended.is_set():
                client = self.start_client(*arguments)
                client.wait()
                self.ended.wait(0.5)

        self.in_background(run)

    def start_client(self, *arguments):
        client = subprocess.Popen([OPSERVE, f"--target={self.daemon.target}", *arguments],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.clients.append(client)
        if self.ended.is_set():
            client.kill()
        return client

    def read_at_times(self, *arguments):
        """Clients that take their results for a moment, and then nothing for longer."""

        def run():
            clients = [self.start_client(*arguments) for _ in range(3)]
            while not self.ended.wait(0.5):
                for client in clients:
                    client.send_signal(signal.SIGSTOP)
                self.ended.wait(2)
                for client in clients:
                    client.send_signal(signal.SIGCONT)

        self.in_background(run)

    def await_request(self):
        end = time.monotonic() + 60
        while not re.search(r"^opserve_requests_total{.*} [1-9]", self.daemon.metrics(), re.MULTILINE):
            if time.monotonic() > end:
                raise AssertionError(f"{self.job} gets no request")
            self.ended.wait(0.1)

    def connect(self):
        """Opens more connections than there may be, which say nothing, until the end."""

        def run():
            with contextlib.ExitStack() as sockets:
                held = collections.deque()  # so that each is there when the next ones come
                while not self.ended.wait(0.05):
                    held.append(sockets.enter_context(socket.socket(socket.AF_UNIX)))
                    held[-1].connect(self.daemon.target.removeprefix("unix:"))
                    if len(held) > 3:
                        held.popleft().close()

        self.in_background(run)

    def stop(self):
        self.ended.set()
        for client in list(self.clients):
            client.kill()
        self.daemon.process.kill()
        self.daemon.process.wait()
        for thread in self.threads:
            thread.join()
        for client in self.clients:
            client.wait()
        self.daemon.process.stderr.close()


def make_certificate(directory, days):
    path = directory / f"certificate{days}.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-subj", "/CN=localhost", "-days", str(days), "-keyout", path, "-out",
                    f"{path}.cert"], check=True, capture_output=True)
    return f"--tls_cert={path}.cert", f"--tls_key={path}", "--listen=127.0.0.1:0"


def names_in(expression):
    """Of the metrics and recorded series that an expression reads."""
    without_labels = re.sub(r"\{[^}]*\}|\[[^]]*\]|\b(by|on|ignoring|without) *\([^)]*\)", "", expression)
    return {name for name in re.findall(r"[a-zA-Z_:][\w:]*", without_labels)
            if name.startswith("opserve_") or ":" in name}


def queries_of_dashboards():
    for dashboard in generate.DASHBOARDS:
        for panel in dashboard.panels:
            for query in panel.queries:
                yield f"{dashboard.title}: {panel.title}", query


class PrometheusTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if shutil.which("prometheus") is None:
            raise AssertionError("prometheus is missing; tests/run.sh provides it")
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.watched = {}
        one = "--device=0"
        cls.start("healthy", ["--enable_shm", *make_certificate(cls.directory, 365)], config=TENANTS)
        cls.start("broken", [one, "--recovery_wait=1h", "--longest_recovery_wait=1h"],
                  faults="kernel=aclnnL1LossBackward,code=507015")
        cls.start("wrong", faults="kernel=aclnnL1LossBackward,wrong,on=0")
        cls.start("unstable", [one, "--recovery_wait=1ms", "--longest_recovery_wait=1ms"],
                  faults=ALL_BUT_GOLDEN)
        cls.start("stuck", [one, "--streams_per_device=1"], faults=ALL_L1 + "slow=25000000")
        cls.start("full", [one, "--streams_per_device=1", "--queue_capacity_total=2"],
                  faults=ALL_L1 + "slow=100000")
        cls.start("crowded", [one, "--max_connections=1"])
        cls.start("flooded", [one, "--max_connections=1"])
        cls.start("unread", [one, "--write_stall_timeout=100ms"])
        cls.start("forgetful", [one, "--streams_per_device=1", "--executor_cache_entries=1"])
        cls.start("poor", [one], faults="call=aclrtMalloc,nth=2,count=all,code=207001")
        with unittest.mock.patch.dict(os.environ, OPSERVE_HOST_DEVICE_MEMORY="256M"):
            cls.start("scattered", [one, "--workspace_decay=1h"],
                      faults="kernel=aclnnL1LossBackward,nth=2,count=8,slow=200000")
        # Three kernels fail while a copy takes minutes and cannot be stopped, so that the device cannot be
        # reset.
        cls.start("failing", [one, "--execution_timeout=100ms"],
                  faults="call=aclrtDeviceTaskAbort,code=107020,count=all;"
                         f"copies,rate=20K;{ALL_L1}code=507015")
        # Without its library the pack is refused, and the daemon serves everything else.
        pack = cls.directory / "weighted_sum.textproto"
        shutil.copy(ROOT / "ops/examples/weighted_sum.textproto", pack)
        cls.start("refusing", [one, f"--operator_pack={pack}"])
        cls.start("expiring", [one, *make_certificate(cls.directory, 1)])
        cls.start("many", [one], config=MANY_TENANTS)
        cls.start("reloaded", [one])
        cls.start("killed", [one])
        jobs = {watched.job: watched.daemon.ready["metrics_port"] for watched in cls.watched.values()}
        cls.prometheus = PrometheusServer(cls.directory / "prometheus", jobs,
                                          [quicken(rules, QUICKER) for rules in RULES])
        cls.addClassCleanup(cls.prometheus.stop)
        cls.prometheus.wait_until(lambda: len(cls.prometheus.query("up == 1")) == len(jobs))
        cls.disturb()

    @classmethod
    def start(cls, name, flags=(), **settings):
        cls.watched[name] = Watched(cls.directory, name, flags, **settings)
        cls.addClassCleanup(cls.watched[name].stop)

    @classmethod
    def disturb(cls):
        """Once everything has been seen well, so that counters are seen to grow."""
        of = cls.watched
        of["healthy"].load(*SMALL, "--rate=50")
        of["healthy"].load("bench", "KlDivBackward", "--shape=64,64", "--rate=10", "--transport=shm",
                           *FOREVER)
        of["broken"].load(*SMALL)
        of["wrong"].load(*SMALL, "--rate=10")  # device 1 serves them
        of["unstable"].load(*SMALL, "--rate=10", "--concurrency=1")
        of["stuck"].load(*SMALL, "--concurrency=2", "--timeout=5m")
        of["full"].load(*SMALL, "--rate=40")
        of["crowded"].load(*SMALL, "--rate=10")
        of["crowded"].await_request()  # from then on the client's connection makes room for no other
        of["crowded"].connect()
        of["flooded"].connect()
        of["unread"].read_at_times("bench", "L1LossBackward", "--shape=600,1000", "--concurrency=4",
                                    *FOREVER)
        for extent in range(1, 9):
            of["forgetful"].load("bench", "L1LossBackward", f"--shape={extent},8", "--rate=5", *FOREVER)
        of["poor"].load("bench", "L1LossBackward", "--shape=4000,1000", "--rate=2", *FOREVER)
        # Four lanes take memory at the same time, each of its own, and then nothing uses it.
        of["scattered"].start_client("bench", "L1LossBackward", "--shape=2000,1000", "--concurrency=4",
                                     "--duration=1s", "--warmup=0s")
        of["failing"].start_client("bench", "KlDivBackward", "--shape=500,1000", "--timeout=5m")
        of["failing"].load(*SMALL, "--rate=5", "--concurrency=1")
        of["reloaded"].config.write_text("nonsense")
        of["reloaded"].daemon.process.send_signal(signal.SIGHUP)
        of["killed"].daemon.process.kill()

    def assert_fire(self, name, expected, tolerated=()):
        """These alerts and no others, but perhaps `tolerated`, fire or have fired."""
        job = self.watched[name].job
        fired = lambda: self.prometheus.alerts_ever(job)
        try:
            self.prometheus.wait_until(lambda: fired() >= set(expected))
        finally:
            self.assertEqual(fired() | set(tolerated), set(expected) | set(tolerated))

    def test_faults_make_their_alerts_fire_and_no_others(self):
        burn, still_burn = "OpserveErrorBudgetBurnFast", "OpserveErrorBudgetBurnSlow"
        cases = {
            "broken": ["OpserveDeviceQuarantined", "OpserveNoDeviceReady", burn, still_burn],
            "wrong": ["OpserveOperatorUnavailable"],
            "unstable": ["OpserveDeviceUnstable", burn],
            "stuck": ["OpserveQueueOld"],
            "full": ["OpserveOverloaded"],
            "crowded": ["OpserveConnectionsRefused"],
            "flooded": ["OpserveSilentConnections"],
            "unread": ["OpserveSlowReaders"],
            "forgetful": ["OpservePlanCacheMisses"],
            "scattered": ["OpservePoolFragmented"],
            "poor": ["OpservePoolOutOfMemory", "OpserveOverloaded"],
            "expiring": ["OpserveCertificateExpiresSoon", "OpserveCertificateExpiresNow"],
            "refusing": ["OpserveOperatorPackRefused"],
            "many": ["OpserveTenantsDropped"],
            "reloaded": ["OpserveReloadFailed"],
            "killed": ["OpserveDown"],
            "failing": ["OpserveDeviceFailed", "OpserveDeviceQuarantined", "OpserveNoDeviceReady", burn],
            "healthy": [],
        }
        # What may be seen besides. A minute of failures is an hour in quick motion, and memory that a
        # daemon has just taken is seen by the device a little later, which looks like a steep slope.
        tolerated = {
            "broken": [],
            "unstable": [still_burn, "OpservePlanCacheMisses"],  # plans go with each reset
            "failing": [still_burn],
            "healthy": [],
        }
        for name, alerts in cases.items():
            with self.subTest(name):
                self.assert_fire(name, alerts, tolerated.get(name, ["OpserveDeviceMemoryGrows"]))
        for alert in self.prometheus.get("alerts")["alerts"]:
            for text in alert["annotations"].values():
                self.assertNotRegex(text, "<no value>|<error|  ", alert)

    def test_a_prometheus_that_does_not_know_opserved_says_so(self):
        port = self.watched["healthy"].daemon.ready["metrics_port"]
        prometheus = PrometheusServer(self.directory / "other", {"other": port},
                                      [quicken(rules, QUICKER) for rules in RULES])
        self.addCleanup(prometheus.stop)
        prometheus.wait_until(
            lambda: prometheus.query('ALERTS{alertname="OpserveNotMonitored",alertstate="firing"}'))

    def test_recording_rules_have_values(self):
        for rule in self.prometheus.rules():
            if rule["type"] == "recording":
                self.prometheus.wait_until(
                    lambda: self.prometheus.query(f'{rule["name"]}{{job="opserve-healthy"}} >= 0'))

    def test_rules_read_only_what_there_is(self):
        rules = self.prometheus.rules()
        there = self.names_there()
        for rule in rules:
            with self.subTest(rule["name"]):
                self.assertEqual(rule["health"], "ok", rule)
                self.assertEqual(names_in(rule["query"]) - there, set())

    def test_dashboards_read_only_what_there_is(self):
        there = self.names_there()
        for title, query in queries_of_dashboards():
            with self.subTest(title):
                self.assertEqual(names_in(query.expression) - there, set())

    def test_dashboards_show_something(self):
        for title, query in queries_of_dashboards():
            expression = query.expression.replace("$__rate_interval", "5s")
            expression = expression.replace("$job", "opserve-healthy").replace("$instance", ".+")
            with self.subTest(f"{title}: {expression}"):
                if query.may_be_empty:
                    self.prometheus.query(expression)
                else:
                    self.prometheus.wait_until(lambda: any(
                        sample["value"][1] != "NaN" for sample in self.prometheus.query(expression)))

    def names_there(self):
        # Of a refused pack only the daemon that has one tells.
        metrics = "".join(self.watched[name].daemon.metrics() for name in ("healthy", "refusing"))
        recorded = {rule["name"] for rule in self.prometheus.rules() if rule["type"] == "recording"}
        return set(re.findall(r"(?m)^(opserve_\w+)", metrics)) | recorded


if __name__ == "__main__":
    unittest.main()
