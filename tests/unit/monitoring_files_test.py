"""What deploy/prometheus has is valid, and each rule is tested and each alert explained.

usage: monitoring_files_test.py SOURCE_DIR

Prometheus's own promtool judges; tests/run.sh provides it.
"""

import pathlib
import re
import subprocess
import sys
import unittest

DEPLOY = pathlib.Path(sys.argv.pop()) / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
RULES = sorted((PROMETHEUS / "rules").glob("*.yml"))
# That of a daemon which is up, else the one that is installed.
RUNBOOK_URL = r"""
          runbook_url: >-
            {{ with query "up{job=~'opserve.*'} == 1" }}http://{{ . | sortByLabel "instance" | first | label "instance" }}/runbook
            {{- else }}file:///usr/share/doc/opserve/RUNBOOK.md{{ end }}#"""
TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))


def alerts():
    """Their names, with the text of each."""
    text = (PROMETHEUS / "rules/alerts.yml").read_text()
    parts = re.split(r"(?m)^      - alert: (\w+)$", text)
    return dict(zip(parts[1::2], parts[2::2]))


class MonitoringFilesTest(unittest.TestCase):

    def promtool(self, *arguments):
        run = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True,
                             timeout=300)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def test_the_configuration_is_valid(self):
        checked = self.promtool("check", "config", PROMETHEUS / "prometheus.yml")
        self.assertNotIn("FAILED", checked)
        for rules in RULES:
            self.assertIn(f"rules/{rules.name}", checked, "is not loaded")

    def test_the_rules_are_valid(self):
        self.promtool("check", "rules", *RULES)

    def test_alerts_fire_when_they_should_and_only_then(self):
        self.promtool("test", "rules", *TESTS)

    def test_there_is_a_test_for_each_alert(self):
        fired = {name for test in TESTS
                 for name in re.findall(r'labels: \'\{alertname="(\w+)"', test.read_text())}
        self.assertEqual(fired, set(alerts()))

    def test_there_is_a_test_for_each_recorded_series(self):
        tested = "".join(test.read_text() for test in TESTS)
        for name in re.findall(r"- record: (\S+)", (PROMETHEUS / "rules/recording.yml").read_text()):
            self.assertIn(name, tested)

    def test_each_alert_says_what_it_is(self):
        for name, text in alerts().items():
            with self.subTest(name):
                self.assertRegex(name, "^Opserve[A-Z]")
                self.assertRegex(text, r"\n          severity: (critical|warning)\n")
                self.assertRegex(text, r'\n          summary: ".')
                self.assertRegex(text, r"\n          description: >-\n            \S")
                self.assertIn(f"{RUNBOOK_URL}{name.lower()}\n", text)

    def test_the_runbook_has_a_section_for_each_alert(self):
        runbook = (DEPLOY / "RUNBOOK.md").read_text()
        sections = re.split(r"(?m)^### (Opserve\w+)$", runbook)
        self.assertEqual(sections[1::2], list(alerts()), "in the order of the alerts")
        for name, text in zip(sections[1::2], sections[2::2]):
            with self.subTest(name):
                self.assertRegex(text, r"(?s)\*\*Means:\*\* .*\*\*(Do|Look, do):\*\* ")

    def test_links_inside_the_runbook_lead_somewhere(self):
        runbook = (DEPLOY / "RUNBOOK.md").read_text()
        headings = {re.sub(r"\W+", "-", heading.lower())
                    for heading in re.findall(r"(?m)^#+ (.*)$", runbook)}
        self.assertEqual(set(re.findall(r"\]\(#([\w-]+)\)", runbook)) - headings, set())


if __name__ == "__main__":
    unittest.main()
