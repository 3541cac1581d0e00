#!/usr/bin/python3
"""Writes ops/EVIDENCE.md, a row of evidence for each operator: evidence.py. evidence_test.py holds the page against it.

Counts come from the catalogue and the cases (generate.py). Measured facts come from two records beside the cases:

  errors.json  the worst errors, by operators_test.py --record
  speed.json   times beside PyTorch's, by tests/benchmark/operators/benchmark.py

Needs protoc and Python's protobuf.
"""

import gzip
import json
import pathlib
import re
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/benchmark/operators"))

import descriptions  # noqa: E402
import rules  # noqa: E402

PAGE = ROOT / "ops/EVIDENCE.md"
DATA = ROOT / "tests/data/operators"

HEAD = """# Evidence for the operators

Made by `tests/conformance/operators/evidence.py`; the test `conformance_evidence_test` fails if a row is missing, is
out of date or has an empty cell. [OPERATORS.md](OPERATORS.md) says what the operators compute.

* **Header** declares the function as the vendor does. **Stage one** follows the rules of the description, {rules} in
  all. **Kernel** is the source of the host CANN's kernel. **Golden** calls are those that a device has to get right
  before it serves.
* **Values** and **Status** count the cases in `tests/data/operators`: calls with results from PyTorch in float64, and
  calls that stage one has to refuse, {cases} in all. Each rule is broken by at least one. `conformance_operators_test`
  and `conformance_inference_operators_test` send them to a daemon, `conformance_c_abi_operators_test` calls the C ABI.
* **Tolerance**: distance from the exact result, rounded once, in units of the last place (ulp). Results that are sums
  or products may be off by so many roundings (u is 2^-24, with DOUBLE 2^-53) of the sum of magnitudes M besides.
  "equal" stands for results that are not rounded. **Worst error** is the greatest of all cases: in ulp, of sums as a
  part of the tolerance.
* **Time / torch**: time of the kernel through the C ABI over that of PyTorch {torch}, each with one thread, the
  shortest of {turns} turns or more; then dtype, shape of the greatest tensor, and the calls of torch. The processor is
  called {processor}.

`operators_test.py --record` in `tests/conformance/operators` records the worst errors, and
`build/venv-torch/bin/python tests/benchmark/operators/benchmark.py build` the times.

| Function | Header | Stage one | Kernel | Golden | Values | Status | Tolerance | Worst error | Time / torch |
|---|---|---|---|---|---|---|---|---|---|
"""


def read_json(name):
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def checksum(path):
    return f"{zlib.crc32(path.read_bytes()):08x}"


def read_cases(name):
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def kernel_sources():
    """The kernels' sources by function: those of their tables, as others use kernels by name."""
    found = {}
    for path in sorted((ROOT / "kernels/cpu").glob("*.cc")):
        for name in re.findall(r'\{"(aclnn\w+)",', path.read_text(encoding="utf-8")):
            found.setdefault(name, path)
    return found


def link(path):
    """To a file, from the page."""
    relative = path.relative_to(PAGE.parent) if path.is_relative_to(PAGE.parent) else f"../{path.relative_to(ROOT)}"
    return f"[{path.name}]({relative})"


class Evidence:
    """What is known of one operator."""

    def __init__(self, path, description, kinds, kernels, errors, speed):
        self.path, self.description, self.kinds = path, description, kinds
        self.name = description.name
        self.kernel = kernels.get(description.function)
        cases = read_cases(self.name) if (DATA / f"{self.name}.jsonl.gz").exists() else []
        self.refused = [case for case in cases if "refused" in case]
        self.values = [case for case in cases if "refused" not in case]
        self.floating = any("ulps" in case for case in self.values)
        self.error, self.speed = errors.get(self.name), speed.get(self.name)

    def tolerance(self):
        tolerance = self.description.tolerance
        if not self.floating:
            return "equal"
        return f"{tolerance.ulps or 2} ulp" + (f" + {tolerance.sums} u M" if tolerance.sums else "")

    def worst(self):
        if self.error is None:
            return ""
        if not self.floating:
            return "equal"
        return f"{self.error['part']:.0%}" if self.description.tolerance.sums else f"{self.error['ulps']:.2g} ulp"

    def time(self):
        if self.speed is None:
            return ""
        return "{ratio:.2f}: {dtype} {shape}, `{peer}`".format(**self.speed)

    def rules(self):
        return len(rules.rules_of(self.description, self.kinds))

    def cells(self):
        header = ROOT / "ops/abi/aclnnop" / self.description.header
        return [
            f"[{self.description.function}](OPERATORS.md#{self.name.lower()})",
            link(header) if header.exists() else "",
            f"{link(self.path)}, {self.rules()} rules",
            link(self.kernel) if self.kernel else "",
            str(len(self.description.golden) or ""),
            str(len(self.values) or ""),
            str(len(self.refused) or ""),
            self.tolerance(),
            self.worst(),
            self.time(),
        ]


def collect():
    """Of all operators, by name."""
    kernels, errors, speed = kernel_sources(), read_json("errors.json"), read_json("speed.json")["operators"]
    found, kinds = descriptions.read()
    rows = [Evidence(path, description, kinds, kernels, errors, speed) for path, description in found]
    return sorted(rows, key=lambda row: row.name)


def render(rows):
    record = read_json("speed.json")
    head = HEAD.format(
        rules=sum(row.rules() for row in rows),
        cases=sum(len(row.values) + len(row.refused) for row in rows),
        **{name: record[name] for name in ("torch", "processor", "turns")},
    )
    return head + "".join(f"| {' | '.join(row.cells())} |\n" for row in rows)


def main():
    PAGE.write_text(render(collect()), encoding="utf-8")


if __name__ == "__main__":
    main()
