"""A real Prometheus on loopback, for tests, that scrapes often and evaluates the rules in quick motion."""

import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

MILLISECONDS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Of a range or a wait. A rate needs two scrapes, and on a busy machine some come to nothing.
LEAST_SCRAPES = 6


def quicken(rules, factor, scrape_milliseconds):
    """The text of a rule file with all of its ranges and waits divided by `factor`, but not below
    some scrapes. Names, and numbers that are compared with, stay what they are."""

    def quicker(match):
        before, number, unit, after = match.groups()
        milliseconds = max(int(number) * MILLISECONDS[unit] // factor, LEAST_SCRAPES * scrape_milliseconds)
        return f"{before}{milliseconds}ms{after}"

    return re.sub(r"(?m)(\[|^ +for: | offset )(\d+)([smhd])(\]|\b)", quicker, rules)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PrometheusServer:
    """Runs until stop().

    Args:
        jobs: the port of each job's only target.
        rules: texts of rule files, of which all ranges and waits are divided by `factor`.
        scrape_milliseconds: from one scrape to the next, which may take as long.
    """

    def __init__(self, directory, jobs, rules, factor, scrape_milliseconds):
        directory.mkdir()
        for number, text in enumerate(rules):
            (directory / f"rules{number}.yml").write_text(quicken(text, factor, scrape_milliseconds))
        interval = f"{scrape_milliseconds}ms"
        config = {
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": ["rules*.yml"],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
                for job, port in jobs.items()],
        }
        path = directory / "prometheus.yml"
        path.write_text(json.dumps(config))  # JSON is YAML
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = open(directory / "log", "w+")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={directory}/data",
             f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"],
            stdout=self.log, stderr=self.log)
        self.wait_until(self.is_ready)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.log.close()

    def wait_until(self, condition, timeout=60):
        """What `condition` returns as soon as that is true."""
        end = time.monotonic() + timeout
        while not (result := condition()):
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                raise AssertionError(f"not true in time: {condition}; Prometheus: {self.log.read()}")
            time.sleep(0.2)
        return result

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready") as page:
                return page.status == 200
        except OSError:
            return False

    def get(self, path, **parameters):
        """The data of an answer of the HTTP API; AssertionError with Prometheus's words otherwise."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as page:
                return json.load(page)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def query(self, expression):
        """Samples of an instant vector: dictionaries with `metric` and `value`."""
        return self.get("query", query=expression)["result"]

    def rules(self):
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]

    def alerts(self, job):
        """Names of the alerts about a job that fire now."""
        firing = self.query(f'ALERTS{{alertstate="firing",job="{job}"}}')
        return {alert["metric"]["alertname"] for alert in firing}

    def alerts_ever(self, job):
        """Names of the alerts about a job that have fired since the start."""
        fired = self.query(f'count_over_time(ALERTS{{alertstate="firing",job="{job}"}}[1h])')
        return {alert["metric"]["alertname"] for alert in fired}
