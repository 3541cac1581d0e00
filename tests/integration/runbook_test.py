"""What deploy/RUNBOOK.md tells people to type, and to look at, exists.

usage: runbook_test.py BUILD_DIR
"""

import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop())
ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNBOOK = (ROOT / "deploy/RUNBOOK.md").read_text()
GROUPS = {"admin", "tensor"}  # commands that have commands


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def commands():
    """Those of opserve in the runbook: a list of words each."""
    code = "\n".join(re.findall(r"`([^`\n]+)`", RUNBOOK) + re.findall(r"(?s)```sh\n(.*?)```", RUNBOOK))
    for words in re.findall(r"(?m)^ *opserve ([a-z-]+(?: [a-z-]+)?)", code):
        first, *second = words.split()
        yield [first, *second] if first in GROUPS else [first]


class RunbookTest(unittest.TestCase):

    def test_commands_exist(self):
        found = {tuple(command) for command in commands()}
        self.assertGreater(len(found), 8, found)
        for command in sorted(found):
            with self.subTest(command):
                run = output_of(BUILD / "bin/opserve", "help", *command)
                self.assertEqual(run.returncode, 0, run.stderr)

    def test_flags_exist(self):
        commands_help = "".join(output_of(BUILD / "bin/opserve", "help", *command).stdout
                                for command in {tuple(command) for command in commands()})
        known = set(re.findall(r"--[a-z][a-z0-9_-]*", output_of(BUILD / "bin/opserved", "--help").stdout
                               + output_of(BUILD / "bin/opserve", "--help").stdout + commands_help))
        named = set(re.findall(r"--[a-z][a-z0-9_-]*", RUNBOOK))
        self.assertEqual(named - known, set())

    def test_panels_exist(self):
        titles = set()
        for dashboard in (ROOT / "deploy/grafana").glob("*.json"):
            titles.update(re.findall(r'"title": "(.+)"', dashboard.read_text()))
        named = set(re.findall(r'"([A-Z][^"\n]+)"', RUNBOOK))
        self.assertGreater(len(named), 10, named)
        self.assertEqual(named - titles, set())


if __name__ == "__main__":
    unittest.main()
