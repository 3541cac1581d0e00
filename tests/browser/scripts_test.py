"""The status page's scripts, piece by piece: usage scripts_test.py BUILD_DIR."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.argv.pop()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "server/telemetry/status_page"))

import assemble
from browser import Browser


class ScriptsTest(unittest.TestCase):

    def test_they_do_what_they_should(self):
        browser = Browser()
        self.addCleanup(browser.close)
        page = browser.open()
        page.evaluate(assemble.script([name for name in assemble.SCRIPTS if name != "main"]))
        page.evaluate((pathlib.Path(__file__).parent / "scripts_test.js").read_text())
        results = page.evaluate("runTests()")
        for name, failure in results.items():
            with self.subTest(name):
                self.assertIsNone(failure)
        self.assertGreater(len(results), 10)


if __name__ == "__main__":
    unittest.main()
