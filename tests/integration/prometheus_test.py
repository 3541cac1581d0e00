"""A Prometheus watches daemons at work, each with another thing wrong, and one with nothing wrong.

usage: prometheus_test.py BUILD_DIR

The rules are the shipped ones in quick motion: windows and waits are a hundredth of what they say, or less.
"""

import hashlib
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
import unittest.mock

from process_test import ROOT
from prometheus_server import PrometheusServer
from watched_daemon import Watched

sys.path[:0] = [str(ROOT / room) for room in ("client/python", "deploy/grafana", "tests/hardening")]
import certificates
import generate
import raw_peer
from opserve import _wire

RULES = [path.read_text() for path in sorted((ROOT / "deploy/prometheus/rules").glob("*.yml"))]
QUICKER = 100
# So many daemons and their loads keep two processors busy, and a daemon counts as down if six scrapes in a row take
# longer than this.
SCRAPE_MILLISECONDS = 1000
# For alerts that compare hours with hours, a Prometheus of its own, of few daemons.
QUICKER_BY_HOURS = 4800
SCRAPE_MILLISECONDS_BY_HOURS = 500

# After the golden case all launches of a kernel, or all calls of a function.
ALL_L1 = "kernel=aclnnL1LossBackward,nth=2,count=all,"
# Three launches that fail take the device out, and the golden case takes one before it is back.
ALL_BUT_GOLDEN = ";".join(f"kernel=aclnnL1LossBackward,nth={nth},count=3,code=507015"
                          for nth in range(2, 42, 4))
FOREVER = ("--duration=10m", "--warmup=0s")
SMALL = ("bench", "L1LossBackward", "--shape=8,8", *FOREVER)
TENANTS = f'tenant {{ name: "research" uid: {os.getuid()} }} tenant {{ name: "production" weight: 3 }}'
BY_TOKENS = "".join(
    f'tenant {{ name: "{name}" weight: {weight} token_sha256: "{hashlib.sha256(name.encode()).hexdigest()}" }} '
    for name, weight in (("slow", 1), ("quick", 9)))
MANY_TENANTS = TENANTS + "".join(f' tenant {{ name: "tenant{i}" }}' for i in range(200))

BURN, STILL_BURN = "OpserveErrorBudgetBurnFast", "OpserveErrorBudgetBurnSlow"
# The alerts that each daemon sets off.
FIRE = {
    "broken": {"OpserveDeviceQuarantined", "OpserveNoDeviceReady", BURN, STILL_BURN},
    "wrong": {"OpserveOperatorUnavailable"},
    "differing": {"OpserveResultsDiffer"},
    "damaged": {"OpserveDeviceMemoryDamaged"},
    "unstable": {"OpserveDeviceUnstable", BURN},
    "stuck": {"OpserveQueueOld"},
    "behind": {"OpserveTenantBehind"},
    "full": {"OpserveOverloaded"},
    "crowded": {"OpserveConnectionsRefused"},
    "flooded": {"OpserveSilentConnections"},
    "pinged": {"OpserveFlooded"},
    "unread": {"OpserveSlowReaders"},
    "stalled": {"OpserveUploadsStall", "OpserveRequestsStall", BURN},
    "talkative": {"OpserveLogLinesLost"},
    "forgetful": {"OpservePlanCacheMisses"},
    "preparing": {"OpservePreparedProgramsEvicted"},
    "misspoken": {"OpserveSessionsBreakProtocol"},
    "uncaptured": {"OpserveCapturesFail"},
    "given": {"OpserveDepositsFail"},
    "drained": {"OpserveTensorsStuck", "OpserveNoDeviceReady"},
    "scattered": {"OpservePoolFragmented"},
    "poor": {"OpservePoolOutOfMemory", "OpserveOverloaded"},
    "expiring": {"OpserveCertificateExpiresSoon", "OpserveCertificateExpiresNow"},
    "refusing": {"OpserveOperatorPackRefused"},
    "many": {"OpserveTenantsDropped"},
    "reloaded": {"OpserveReloadFailed"},
    "emptied": {"OpserveReloadWouldLoseTenants"},
    "killed": {"OpserveDown"},
    "failing": {"OpserveDeviceFailed", "OpserveDeviceQuarantined", "OpserveNoDeviceReady", BURN},
    "leaking": set(),  # not within minutes
    "healthy": set(),
}
# What may be seen besides: a minute of failures is an hour in quick motion, and a reset takes the plans.
TOLERATED = {
    "behind": {"OpserveQueueOld"},
    "unstable": {STILL_BURN, "OpservePlanCacheMisses"},
    "damaged": {BURN, "OpserveDeviceQuarantined", "OpserveNoDeviceReady", "OpservePlanCacheMisses"},
    "failing": {STILL_BURN},
    "stalled": {STILL_BURN},
}
FIRE_BY_HOURS = {"leaking": {"OpserveDeviceMemoryGrows"}, "scattered": set(), "healthy": set()}
FIRES_ALONE = {"OpserveNotMonitored"}  # a test of its own


def upload_that_sends_nothing():
    """Frames that announce a tensor."""
    request = _wire.UploadRequest()
    request.header.dtype = 1
    request.header.shape.append(1 << 20)
    request.header.chunk_bytes = 1 << 20
    return (raw_peer.settings() + raw_peer.call(1, "/opserve.v1.TensorService/Upload") +
            raw_peer.message(1, request.SerializeToString(), end_stream=False))


PINGS = raw_peer.settings() + raw_peer.frame(raw_peer.PING, 0, 0, b"opserved") * 1000


def make_certificate(directory, days):
    path = directory / f"certificate{days}.pem"
    certificates.make_certificate(f"{path}.cert", path, "localhost", days=days)
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
        cls.start("differing", ["--shadow_check_ratio=1"],
                  faults="kernel=aclnnL1LossBackward,nth=2,count=all,wrong,on=1")
        cls.start("damaged", [one], faults="kernel=aclnnL1LossBackward,nth=2,code=507054")
        cls.start("unstable", [one, "--recovery_wait=1ms", "--longest_recovery_wait=1ms"],
                  faults=ALL_BUT_GOLDEN)
        cls.start("stuck", [one, "--streams_per_device=1"], faults=ALL_L1 + "slow=25000000")
        cls.start("behind", [one, "--streams_per_device=1", "--queue_max_age=5m"], config=BY_TOKENS,
                  faults="kernel=aclnnKlDivBackward,nth=2,count=all,slow=8000000")
        cls.start("full", [one, "--streams_per_device=1", "--queue_capacity_total=2"],
                  faults=ALL_L1 + "slow=100000")
        cls.start("crowded", [one, "--max_connections=1"])
        cls.start("flooded", [one, "--max_connections=1"])
        cls.start("pinged", [one, "--control_frames_per_second=1"])
        cls.start("stalled", [one, "--upload_stall_timeout=100ms", "--upload_min_bytes_per_second=1000000000"])
        cls.start("talkative", [one, "--log_sample_one_in=1", "--log_requests_per_second=1000000"],
                  is_log_read=False)
        cls.start("preparing", [one, "--prepared_max_programs_per_tenant=1"])
        cls.start("misspoken", [one])
        cls.start("uncaptured", [one], faults="call=aclmdlRICaptureBegin,code=207000,count=all")
        cls.start("given", [one], config=f'peer {{ uid: {os.getuid()} tenant: "default" max_bytes: 1 }}')
        cls.start("drained", [one])
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
        cls.start("emptied", [one], config=TENANTS)
        # The driver does not give back what the pool gives back to it.
        with unittest.mock.patch.dict(os.environ, OPSERVE_HOST_DEVICE_MEMORY="16G"):
            cls.start("leaking", [one, "--workspace_floor_bytes=0"],
                      faults="call=aclrtFree,code=507899,count=all")
        cls.start("killed", [one])
        jobs = {watched.job: watched.daemon.ready["metrics_port"] for watched in cls.watched.values()}
        cls.prometheus = PrometheusServer(cls.directory / "prometheus", jobs, RULES, QUICKER, SCRAPE_MILLISECONDS)
        cls.addClassCleanup(cls.prometheus.stop)
        cls.prometheus_by_hours = PrometheusServer(
            cls.directory / "hours", {cls.watched[name].job: jobs[cls.watched[name].job] for name in FIRE_BY_HOURS},
            RULES, QUICKER_BY_HOURS, SCRAPE_MILLISECONDS_BY_HOURS)
        cls.addClassCleanup(cls.prometheus_by_hours.stop)
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
        of["differing"].load(*SMALL, "--rate=10", "--concurrency=1")
        of["damaged"].load(*SMALL, "--rate=10", "--concurrency=1")
        of["unstable"].load(*SMALL, "--rate=10", "--concurrency=1")
        of["stuck"].load(*SMALL, "--concurrency=2", "--timeout=5m")
        tokens = {name: cls.make_token(name) for name in ("quick", "slow")}
        of["behind"].load(*SMALL, "--concurrency=4", "--timeout=5m", tokens["quick"])
        of["behind"].await_request()  # a tenant that comes anew is first, and never behind
        of["behind"].load("bench", "KlDivBackward", "--shape=8,8", "--concurrency=2", "--timeout=5m",
                          *FOREVER, tokens["slow"])
        of["full"].load(*SMALL, "--rate=40")
        of["crowded"].load(*SMALL, "--rate=10")
        of["crowded"].await_request()  # from then on the client's connection makes room for no other
        of["crowded"].connect()
        of["flooded"].connect()
        of["pinged"].send_again(PINGS)
        of["stalled"].send_again(upload_that_sends_nothing())
        of["stalled"].start_program(sys.executable, ROOT / "tests/integration/stall.py",
                                    of["stalled"].daemon.target)
        of["talkative"].load(*SMALL, "--rate=1500")
        of["preparing"].start_program(sys.executable, ROOT / "tests/integration/prepare_again.py",
                                      of["preparing"].daemon.target)
        of["misspoken"].start_program(sys.executable, ROOT / "tests/integration/misspeak.py",
                                      of["misspoken"].daemon.target)
        of["uncaptured"].start_program(sys.executable, ROOT / "tests/integration/fail_captures.py",
                                       of["uncaptured"].daemon.target)
        of["given"].start_program(sys.executable, ROOT / "tests/integration/deposit_too_much.py",
                                  of["given"].daemon.target)
        of["drained"].keep_tensor()
        of["drained"].drain()
        # Results are most of what travels: while inputs do, nothing is left unread.
        of["unread"].read_at_times("bench", "Expand", "--shape=1,25000", "--attr=size=90,25000",
                                    "--concurrency=4", *FOREVER)
        for extent in range(1, 9):
            of["forgetful"].load("bench", "L1LossBackward", f"--shape={extent},8", "--rate=5", *FOREVER)
        of["poor"].load("bench", "L1LossBackward", "--shape=4000,1000", "--rate=2", *FOREVER)
        # Four lanes take memory at the same time, each of its own, and then nothing uses it.
        of["scattered"].start_client("bench", "L1LossBackward", "--shape=2000,1000", "--concurrency=4",
                                     "--duration=1s", "--warmup=0s")
        # A call, whose inputs are copied whole.
        of["failing"].start_client("bench", "KlDivBackward", "--shape=500,1000", "--timeout=5m", "--transport=unary")
        of["failing"].load(*SMALL, "--rate=5", "--concurrency=1")
        of["reloaded"].reload("nonsense")
        of["emptied"].reload('log_level: "info"')
        of["leaking"].load(*SMALL, "--rate=10", "--concurrency=1")
        of["leaking"].trim()
        of["killed"].daemon.process.kill()

    @classmethod
    def make_token(cls, name):
        path = cls.directory / f"token_{name}"
        path.touch(mode=0o600)
        path.write_text(name)
        return f"--token-file={path}"

    def test_each_alert_is_made_to_fire(self):
        alerts = {rule["name"] for rule in self.prometheus.rules() if rule["type"] == "alerting"}
        self.assertEqual(set().union(FIRES_ALONE, *FIRE.values(), *FIRE_BY_HOURS.values()), alerts)

    def test_faults_make_their_alerts_fire_and_no_others(self):
        self.assertEqual(set(FIRE), set(self.watched))
        for name, expected in FIRE.items():
            fired = lambda: self.prometheus.alerts_ever(self.watched[name].job)
            tolerated = TOLERATED.get(name, set())
            with self.subTest(name):
                try:
                    self.prometheus.wait_until(lambda: fired() >= expected)
                finally:
                    self.assertEqual(fired() | tolerated, expected | tolerated)
        for alert in self.prometheus.get("alerts")["alerts"]:
            for text in alert["annotations"].values():
                self.assertNotRegex(text, "<no value>|<error|  ", alert)

    def test_what_goes_on_for_hours_makes_its_alerts_fire(self):
        alerts = set().union(*FIRE_BY_HOURS.values())
        for name, expected in FIRE_BY_HOURS.items():
            fired = lambda: self.prometheus_by_hours.alerts_ever(self.watched[name].job) & alerts
            with self.subTest(name):
                try:
                    self.prometheus_by_hours.wait_until(lambda: fired() >= expected)
                finally:
                    self.assertEqual(fired(), expected)

    def test_a_prometheus_that_does_not_know_opserved_says_so(self):
        port = self.watched["healthy"].daemon.ready["metrics_port"]
        prometheus = PrometheusServer(self.directory / "other", {"other": port}, RULES, QUICKER, SCRAPE_MILLISECONDS)
        self.addCleanup(prometheus.stop)
        prometheus.wait_until(
            lambda: prometheus.query('ALERTS{alertname="OpserveNotMonitored",alertstate="firing"}'))

    def test_what_is_counted_never_decreases_or_goes_away(self):
        # Of all daemons, whatever is done to them; only "killed" has ended.
        which = 'job!="opserve-killed"'
        counters = f'{{__name__=~"opserve_.+_(total|bucket|count|sum)",{which}}}'
        names = {sample["metric"]["__name__"] for sample in self.prometheus.query(counters)}
        self.assertGreater(len(names), 30)
        for name in names:
            self.assertEqual(self.prometheus.query(f"resets({name}{{{which}}}[1h]) > 0"), [], name)
        # A scrape that fails takes everything away, until the next one. Of a daemon that is well and of
        # one whose device comes and goes: all of them would take Prometheus longer than a query may.
        few = '{__name__=~"opserve_.+_total",job=~"opserve-(healthy|unstable)"}'
        self.prometheus.wait_until(
            lambda: not self.prometheus.query(f"last_over_time({few}[1h]) unless {few}"))

    def test_recording_rules_have_values(self):
        for rule in self.prometheus.rules():
            if rule["type"] == "recording":
                server = self.prometheus_by_hours if "_4h" in rule["name"] else self.prometheus
                server.wait_until(lambda: server.query(f'{rule["name"]}{{job="opserve-healthy"}} >= 0'))

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
