"""Loops of formulas (kernels/cpu/map.h) compute in float32 with vectors, in each variant of the kernels: whether they do
is the compiler's choice, which a change of a formula, of the loop or of a flag can turn. Usage: vector_loops_test.py
BUILD_DIR. On x86-64, with GCC."""

import collections
import pathlib
import re
import subprocess
import sys
import unittest

LIBRARIES = pathlib.Path(sys.argv.pop()) / "lib/opserve/host-cann"

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
LOOP = re.compile(r"map_internal::Loop<(.*), float, 0ul")
# "ss": of one float, "ps": of a vector of them.
ARITHMETIC = re.compile(
    r"\tv?(?:add|sub|mul|div|min|max|sqrt|round|rndscale|fn?m(?:add|sub)(?:132|213|231))([sp]s)\b")
# Of the C library's mathematics, one element each: a power, say, which is no loop of vectors.
CALL = re.compile(r"\tcall .*<([a-z0-9]+f)@plt>")


def instructions(library):
    """Of the loops of `library`: how many have each suffix, and its calls of mathematics."""
    listing = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", library], check=True, capture_output=True,
                             text=True).stdout
    loops = {}
    counts = None
    for line in listing.splitlines():
        if function := FUNCTION.match(line):
            loop = LOOP.search(function[1])
            counts = loops.setdefault(loop[1], collections.Counter()) if loop else None
        elif counts is not None:
            counts.update(match[1] for match in (ARITHMETIC.search(line), CALL.search(line)) if match)
    return loops


class VectorLoopsTest(unittest.TestCase):

    def test_formulas_of_float32_are_vectors(self):
        for folder in ("", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v4"):
            loops = instructions(LIBRARIES / folder / "libopserve_kernels.so")
            self.assertGreater(len(loops), 100, folder)
            for formula, counts in loops.items():
                if set(counts) <= {"ss", "ps"}:
                    with self.subTest(variant=folder, formula=formula):
                        self.assertLessEqual(counts["ss"], counts["ps"], "most of its arithmetic is of single floats")


if __name__ == "__main__":
    unittest.main()
