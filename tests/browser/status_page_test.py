"""The status page, as people see it: drawn by a real browser, of a real daemon under load.

usage: status_page_test.py BUILD_DIR

Screenshots are left in BUILD_DIR/screenshots.
"""

import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/integration"))
sys.path.insert(0, str(ROOT / "server/telemetry/status_page"))

from await_true import await_true
from process_test import BUILD, Daemon, OPSERVE
import assemble
from browser import Browser

SCREENSHOTS = BUILD / "screenshots"
TENANTS = {"research": 1, "production": 3, "nightly": 1}
LIVE = 'document.getElementById("answering").innerText.includes("live")'
# Readings that came while everything below had happened already.
SEVERAL_READINGS = f'{LIVE} && recentHistory.readings.length >= 5'

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


def token_config(directory):
    """A configuration with TENANTS, whose tokens are in files named like them."""
    lines = []
    for name, weight in TENANTS.items():
        path = directory / name
        path.write_text(f"token-of-{name}")
        path.chmod(0o600)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        rate = " requests_per_second: 2" if name == "nightly" else ""
        lines.append(f'tenant {{ name: "{name}" weight: {weight} token_sha256: "{digest}"{rate} }}\n')
    path = directory / "config"
    path.write_text("".join(lines))
    return path


def values(exposition, name, **labels):
    """Of the samples with at least these labels."""
    found = []
    for line in exposition.splitlines():
        if match := re.fullmatch(rf"{name}(?:{{(.*)}})? (\S+)", line):
            if dict(re.findall(r'(\w+)="([^"]*)"', match[1] or "")).items() >= labels.items():
                found.append(float(match[2]))
    return found


def number(text):
    """What "1.5 GiB" or "12.3k/s" stands for."""
    found = re.match(r"([\d.]+) ?([^\s\d/%]*)", text)
    units = {"k": 1e3, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "µs": 1e-6, "ms": 1e-3}
    return float(found[1]) * units.get(found[2], 1)


class StatusPageTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        SCREENSHOTS.mkdir(exist_ok=True)

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="opserve-test-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def start(self, *flags, faults=""):
        """A daemon, and the address of its page."""
        daemon = Daemon(self.directory / "socket", *flags, faults=faults)
        log = threading.Thread(target=daemon.process.stderr.read)
        log.start()
        for end in (daemon.process.stderr.close, log.join, daemon.process.wait, daemon.process.kill):
            self.addCleanup(end)  # in the opposite order
        return daemon, f"http://127.0.0.1:{daemon.ready['metrics_port']}/"

    def load(self, daemon, tenant, *arguments):
        """Requests of a tenant until the test ends."""
        client = subprocess.Popen(
            [OPSERVE, f"--target={daemon.target}", f"--token-file={self.directory / tenant}", "bench",
             *arguments, "--warmup=0s", "--duration=10m"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)

    def start_under_load(self):
        daemon, address = self.start(f"--config={token_config(self.directory)}")
        self.load(daemon, "research", "KlDivBackward", "--shape=64,256", "--rate=20")
        self.load(daemon, "production", "L1LossBackward", "--shape=128,256", "--rate=40")
        self.load(daemon, "nightly", "MseLossBackward", "--shape=8,8", "--rate=10")
        return daemon, address

    def rows(self, page, caption):
        """A table's cells, by the names of its rows."""
        return page.evaluate(f"""Object.fromEntries(
            [...document.querySelectorAll("figure")]
              .find((figure) => figure.closest("section").querySelector("h2").innerText + ": "
                    + figure.querySelector("h3").innerText === {caption!r})
              .querySelectorAll("tbody tr").values().toArray()
              .map((row) => [row.querySelector("th").innerText,
                             [...row.querySelectorAll("td")].map((cell) => cell.innerText.trim().replaceAll("\\u00a0", " "))]))""")

    def hold(self, page):
        """Keeps the page from reading on, and returns the last two answers that it has read."""
        page.call("Network.setBlockedURLs", urls=["*/metrics"])
        page.wait_until(f"!{LIVE}")
        urls = {event["requestId"]: event["request"]["url"]
                for event in page.events("Network.requestWillBeSent")}
        finished = [event["requestId"] for event in page.events("Network.loadingFinished")
                    if urls[event["requestId"]].endswith("/metrics")]
        return [page.call("Network.getResponseBody", requestId=request)["body"]
                for request in finished[-2:]]

    def test_it_shows_what_metrics_say(self):
        _, address = self.start_under_load()
        page = self.browser.open(address)
        page.wait_until(
            f'{SEVERAL_READINGS} && document.getElementById("findings").innerText.includes("rate_limited")')
        shot = page.screenshot(SCREENSHOTS / "light.png")
        self.check_charts(page, shot)
        before, now = self.hold(page)
        earlier, later = page.evaluate("recentHistory.readings.slice(-2).map(({ time }) => time)")
        seconds = (later - earlier) / 1000

        def rate(name, **labels):
            return (sum(values(now, name, **labels)) - sum(values(before, name, **labels))) / seconds

        version = re.search(r'opserve_build_info{.*version="(\d[^"]*)"', now)[1]
        self.assertIn(version, page.text("#build"))
        self.assertIn("on host CANN (this machine's processor), as Ascend910B3", page.text("#build"))
        tiles = dict(re.findall(r"(.+)\n+(.+)", page.text(".tiles")))
        self.assertEqual(tiles["devices ready"], "2 of 2")
        self.assert_shows(tiles["answers"], rate("opserve_requests_total"))
        devices = self.rows(page, "Devices: Now")
        self.assertEqual(list(devices), ["device 0", "device 1"])
        for device, cells in enumerate(devices.values()):
            self.assert_shows(cells[0], rate("opserve_requests_total", device=str(device)))
            for cell, part, whole in ((5, "device_memory_used", "device_memory_total"),
                                      (6, "workspace_pool_allocated", "workspace_pool_reserved")):
                for text, name in zip(cells[cell].split(" of "), (part, whole)):
                    self.assert_shows(text, values(now, f"opserve_{name}_bytes", device=str(device))[0])
        states = self.rows(page, "Devices: States")
        self.assertEqual({cells[0] for cells in states.values()}, {"✓ ready"})
        tenants = self.rows(page, "Tenants: Now")
        self.assertLessEqual(set(TENANTS), set(tenants))
        for name in TENANTS:
            seconds_of_all = rate("opserve_tenant_device_seconds_total")
            share = rate("opserve_tenant_device_seconds_total", tenant=name) / seconds_of_all
            self.assertAlmostEqual(number(tenants[name][0]) / 100, share, delta=0.01)
            self.assert_shows(tenants[name][1], rate("opserve_requests_total", tenant=name))
        latencies = self.rows(page, "Latency: Latency by operator and stage")
        self.assertLessEqual({"all", "KlDivBackward", "L1LossBackward", "MseLossBackward"}, set(latencies))
        for cells in latencies.values():
            for text in cells[1:]:
                median, high = text.split(" / ")
                if median != "–":
                    self.assertLessEqual(number(median), number(high), text)
        # Nothing but the page and what it draws was asked for, and nothing was refused by its policy.
        self.assertEqual(set(page.requests()), {address, f"{address}history", f"{address}metrics"})
        self.assertEqual(page.complaints(), [])

    def test_those_who_come_late_see_what_was_before(self):
        daemon, address = self.start_under_load()
        await_true(lambda: len(self.ask(f"{address}history")["times"]) >= 3, "three readings")
        history = self.ask(f"{address}history")
        page = self.browser.open(address, width=1280)
        page.wait_until(f"{LIVE} && document.querySelector('.line') !== null")
        times = page.evaluate("recentHistory.readings.map(({ time }) => time)")
        self.assertGreaterEqual(times[-1] - times[0], history["times"][-1] - history["times"][0])
        # Its readings of that time are the daemon's.
        index, code = 1, "OK"
        expected = next(values for key, *labels, values in history["series"]
                        if key == "requestsByCode" and labels == [code])
        shown = page.evaluate(f"recentHistory.readings.map((r) => r.requestsByCode.get({code!r}) ?? null)")
        self.assertIn(expected[index] if isinstance(expected, list) else expected, shown)
        # Lines go back to before the page was opened: 20 seconds of the minute that is drawn are a third.
        spans = page.evaluate("""[...document.querySelectorAll("figure .plot")].map((plot) => {
            const xs = [...plot.querySelectorAll("path.line")]
              .flatMap((line) => [...line.getAttribute("d").matchAll(/[ML]([\\d.]+) /g)].map((m) => +m[1]));
            return { title: plot.closest("figure").querySelector("h3").innerText,
                     part: (Math.max(...xs) - Math.min(...xs)) / plot.viewBox.baseVal.width };
        })""")
        parts = {span["title"]: span["part"] for span in spans}
        for title in ("Answers by outcome", "Latency by operator", "Latency by stage", "In flight", "Pressure",
                      "Share of device time"):
            self.assertGreater(parts[title], 0.15, title)
        shot = page.screenshot(SCREENSHOTS / "late.png")
        self.check_charts(page, shot)

    def test_it_leads_to_the_metrics_and_the_runbook(self):
        _, address = self.start()
        page = self.browser.open(address)
        page.wait_until(LIVE)
        links = page.evaluate("[...document.querySelectorAll('footer a')].map(({ href }) => href)")
        self.assertEqual(links, [f"{address}metrics", f"{address}runbook"])
        page = self.browser.open(f"{address}runbook#opservedown")
        self.assertEqual(page.text(":target"), "OpserveDown")
        self.assertIn("Prometheus cannot read the metrics", page.text())
        background = page.evaluate("getComputedStyle(document.querySelector(':target')).backgroundColor")
        self.assertEqual(background, "rgb(255, 224, 138)", "its style is kept out by its policy")
        self.assertEqual(page.complaints(), [])

    def test_the_runbook_may_be_elsewhere(self):
        elsewhere, asked = self.serve("")
        _, address = self.start(f"--runbook_url={elsewhere}book")
        page = self.browser.open(f"{address}runbook#opservedown")
        self.assertEqual(page.evaluate("location.href"), f"{elsewhere}book#opservedown")
        self.assertIn("/book", asked)

    def ask(self, address):
        with urllib.request.urlopen(address, timeout=30) as answer:
            return json.loads(answer.read())

    def assert_shows(self, text, expected):
        """To the three digits that are shown."""
        self.assertAlmostEqual(number(text), expected, delta=0.01 * expected)

    def check_charts(self, page, shot):
        """Those that have something to show have lines, in colours that are on the screen."""
        charts = page.evaluate("""[...document.querySelectorAll("figure .plot")].map((plot) => {
            const box = plot.getBoundingClientRect();
            return { title: plot.closest("figure").querySelector("h3").innerText,
                     lines: [...plot.querySelectorAll("path.line")].map((p) => p.getAttribute("d")),
                     colors: [...plot.querySelectorAll("path.line")].map(
                         (p) => getComputedStyle(p).stroke.match(/\\d+/g).map(Number)),
                     box: [box.left, box.top, box.right, box.bottom] };
        })""")
        drawn = [chart for chart in charts if chart["lines"]]
        for title in ("Answers by outcome", "Refusals by reason", "Latency by operator", "Busy lanes",
                      "In flight", "Memory in use", "Waiting", "Oldest request", "Share of device time",
                      "Device memory", "Refusals by tenant", "Reserved", "What it is used for"):
            self.assertIn(title, [chart["title"] for chart in drawn])
        for chart in drawn:
            with self.subTest(chart["title"]):
                for path in chart["lines"]:
                    self.assertRegex(path, r"^M[\d.]+ [\d.]+L")
                    self.assertNotIn("NaN", path)
                left, top, right, bottom = (round(side) for side in chart["box"])
                pixels = shot[top:bottom, left:right].reshape(-1, 3).astype(int)
                self.assertGreater(len(numpy.unique(pixels, axis=0)), 3)
                distances = [numpy.abs(pixels - numpy.array(color)).max(axis=1) for color in chart["colors"]]
                self.assertGreater((numpy.min(distances, axis=0) < 40).sum(), 10, "no line is to be seen")

    def test_it_can_be_read_in_the_dark_and_on_a_telephone(self):
        _, address = self.start_under_load()
        for name, width, is_dark in (("dark", 1400, True), ("laptop", 1280, False), ("narrow", 360, False)):
            page = self.browser.open(address, width=width, is_dark=is_dark)
            page.wait_until(SEVERAL_READINGS)
            shot = page.screenshot(SCREENSHOTS / f"{name}.png")
            self.check_charts(page, shot)
            self.assertEqual(shot[5, 5].mean() < 64, is_dark)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
            if width >= 1280:
                wide = page.evaluate("""[...document.querySelectorAll("body *")]
                    .filter((e) => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX === "auto")
                    .map((e) => e.closest("figure")?.querySelector("h3").innerText ?? e.className)""")
                self.assertEqual(wide, [], "scrolls sideways")

    def test_a_device_that_is_not_ready_is_seen_first(self):
        _, address = self.start("--recovery_wait=1h", "--longest_recovery_wait=1h",
                                faults="kernel=aclnnL1LossBackward,on=1,count=all,code=507015")
        page = self.browser.open(address)
        page.wait_until(LIVE + ' && document.body.innerText.includes("quarantined")')
        self.assertEqual(page.text("#findings"), "✕ critical: Device 1 is quarantined, not ready.")
        self.assertTrue(page.evaluate("document.title").startswith("✕"))
        self.assertIn("1 of 2", page.text(".tiles"))
        states = self.rows(page, "Devices: States")
        self.assertEqual({name: cells[0] for name, cells in states.items()},
                         {"device 0": "✓ ready", "device 1": "! quarantined"})
        page.screenshot(SCREENSHOTS / "quarantined.png")

    def test_an_operator_that_is_wrong_is_seen(self):
        _, address = self.start(faults="kernel=aclnnL1LossBackward,on=1,wrong")
        page = self.browser.open(address)
        page.wait_until(LIVE + ' && document.body.innerText.includes("L1LossBackward")')
        self.assertEqual(page.text("#findings"), "! warning: Device 1 does not offer L1LossBackward, "
                         "which it computes wrong.")
        self.assertIn("2 of 2", page.text(".tiles"))
        states = self.rows(page, "Devices: States")
        self.assertEqual({name: cells[0] for name, cells in states.items()},
                         {"device 0": "✓ ready", "device 1": "✓ ready, 1 operator wrong"})

    def test_a_daemon_that_has_ended_is_seen_to_have(self):
        daemon, address = self.start()
        page = self.browser.open(address)
        page.wait_until(LIVE)
        self.assertEqual(page.text("#findings"), "✓ Nothing is wrong that can be seen here.")
        daemon.process.kill()
        page.wait_until(f"!{LIVE}")
        self.assertRegex(page.text("#findings"), 
                         r"^✕ critical: No answer since \d\d:\d\d:\d\d \(.+\). What is below is of then.$")
        self.assertTrue(page.evaluate('document.body.classList.contains("stale")'))
        page.screenshot(SCREENSHOTS / "ended.png")
        # It goes on asking, and says so when there is an answer again.
        self.start(f"--metrics_listen=127.0.0.1:{daemon.ready['metrics_port']}")
        page.wait_until(LIVE)

    def serve(self, exposition):
        """The address of a server with the page and this answer, and the list of what it is asked for."""
        html, policy = assemble.page(assemble.script())
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):

            def do_GET(self):
                asked.append(self.path)
                body = (html if self.path == "/" else exposition).encode()
                self.send_response(404 if self.path == "/history" else 200)
                self.send_header("Content-Type", "text/html" if self.path == "/" else "text/plain")
                self.send_header("Content-Security-Policy", policy)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}/", asked

    def test_names_are_text_whatever_they_are(self):
        name = HOSTILE.replace('"', '\\"')
        address, asked = self.serve(f"""
opserve_build_info{{version="{name}",backend="{name}",soc="{name}",runtime_version="1"}} 1
opserve_device_state{{device="{name}",state="{name}"}} 1
opserve_requests_total{{operator="{name}",tenant="{name}",device="{name}",code="{name}"}} 1
opserve_tenant_memory_bytes{{tenant="{name}",kind="hbm"}} 1
opserve_request_duration_seconds_bucket{{operator="{name}",stage="total",le="+Inf"}} 1
""")
        page = self.browser.open(address)
        page.wait_until(f"{LIVE} && recentHistory.readings.length >= 2")
        for place in ("#build", "#findings", "main"):
            self.assertIn(HOSTILE, page.text(place))
        self.assertEqual(page.evaluate('document.querySelectorAll("img, main script").length'), 0)
        self.assertTrue(page.evaluate("document.title").startswith("✕ opserved"))
        self.assertEqual(set(asked), {"/", "/history", "/metrics"})
        self.assertEqual(page.complaints(), [])

    def test_the_policy_stops_what_got_in_nevertheless(self):
        address, asked = self.serve("")
        page = self.browser.open(address)
        page.wait_until(LIVE)
        page.evaluate(f"document.querySelector('main').innerHTML = {HOSTILE!r}")
        page.evaluate("document.body.append(Object.assign(document.createElement('script'),"
                      " { textContent: 'document.title = 3' }))")
        self.assertTrue(page.evaluate("document.title").startswith("✕ opserved"))
        refused = page.evaluate("fetch('http://localhost:1/').then(() => '', (error) => error.name)")
        self.assertEqual(refused, "TypeError")
        self.assertEqual(set(asked), {"/", "/history", "/metrics"})
        self.assertTrue(page.complaints())

    def test_an_answer_that_is_none_is_said_to_be(self):
        address, _ = self.serve("<html>somebody else")
        page = self.browser.open(address)
        page.wait_until('document.getElementById("findings").innerText !== ""')
        self.assertEqual(page.text("#findings"),
                         "✕ critical: No answer yet (no sample: <html>somebody else).")


if __name__ == "__main__":
    unittest.main()
