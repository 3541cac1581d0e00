"""Every operator has evidence, and ops/EVIDENCE.md shows it; evidence.py says where it is from."""

import unittest

import evidence  # before peers: it knows where they are
import peers
import rules

MOST_BYTES = 30 << 20
FEWEST_CASES = 20
COLUMNS = "function, header, stage one, kernel, golden, values, status, tolerance, worst error, time".split(", ")
ROWS = evidence.collect()
NAMES = {row.name for row in ROWS}


class EvidenceTest(unittest.TestCase):
    maxDiff = None

    def assert_none(self, problem, advice=None):
        """No operator has a problem; `problem` gives of a row what is wrong, or nothing."""
        found = {row.name: problem(row) for row in ROWS}
        self.assertEqual({name: what for name, what in found.items() if what}, {}, advice)

    def test_there_are_operators(self):
        self.assertGreaterEqual(len(ROWS), 389)

    def test_page_is_current(self):
        self.assertTrue(evidence.PAGE.read_text(encoding="utf-8") == evidence.render(ROWS), "run evidence.py")

    def test_no_cell_is_empty(self):
        self.assert_none(lambda row: [c for c, cell in zip(COLUMNS, row.cells(), strict=True) if not cell.strip()])

    def test_there_are_enough_cases(self):
        counts = lambda row: (len(row.values), len(row.refused))
        self.assert_none(lambda row: counts(row) if min(counts(row)) < FEWEST_CASES else None, "run generate.py")

    def test_cases_are_small_enough(self):
        self.assertLessEqual(sum(path.stat().st_size for path in evidence.DATA.glob("*.gz")), MOST_BYTES)

    def test_a_case_breaks_every_rule(self):
        """And no case names a rule that is gone."""

        def difference(row):
            broken = {case["rule"] for case in row.refused if "rule" in case}
            return sorted(broken ^ set(rules.rules_of(row.description, row.kinds)))

        self.assert_none(difference, "run generate.py, whose broken_checks.py may lack a function")

    def test_tolerances_are_tight(self):
        def problem(row):
            tolerance = row.description.tolerance
            if tolerance.ulps > 8:
                return "more than 8 ulps"
            if (tolerance.ulps > 2) != bool(tolerance.derivation):
                return "a derivation belongs to more than 2 ulps, and to nothing else"
            used = {case["ulps"] for case in row.values if "ulps" in case}
            return f"cases have {used} ulps" if used - {tolerance.ulps or 2} else None

        self.assert_none(problem)

    def test_worst_errors_are_of_these_cases(self):
        records = evidence.read_json("errors.json")
        self.assertEqual(set(records), NAMES, "run operators_test.py --record")

        def problem(row):
            if records[row.name]["cases"] != evidence.checksum(evidence.DATA / f"{row.name}.jsonl.gz"):
                return "other cases"
            if (records[row.name]["part"] is not None) != row.floating:
                return "an error of what is not floating"
            return "beyond the tolerance" if (records[row.name]["part"] or 0) > 1 else None

        self.assert_none(problem, "run operators_test.py --record")

    def test_times_are_of_these_operators_and_peers(self):
        records = evidence.read_json("speed.json")["operators"]
        self.assertEqual(set(peers.PEERS), NAMES)
        self.assertEqual(set(records), NAMES, "run benchmark.py")
        self.assert_none(lambda row: records[row.name]["peer"] != peers.PEERS[row.name], "run benchmark.py")
        self.assert_none(lambda row: records[row.name]["ratio"] <= 0)


if __name__ == "__main__":
    unittest.main()
