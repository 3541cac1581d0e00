#!/usr/bin/env python3
"""Installs the build, compiles each sample against the installation with pkg-config's flags, runs it,
and compares the numbers that it prints with the operator's formula."""

import argparse
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

def kl_div_backward():
    grad, target = [1, 2, 3, 4, 5, 6], [0.5, 0.25, 1, 0, -2, 3]
    return [-t * g / len(grad) for g, t in zip(grad, target)]


def kl_div_target_backward():
    grad, self, target = [1, 2, 3, 4], [0.5, -1, 2, 0], [0.5, 0.25, 0, 2]
    return [g * (math.log(t) - s + 1) if t != 0 else 0 for g, s, t in zip(grad, self, target)]


def l1_loss_backward():
    self, target = [1, 2, 3, 4], [2, 2, 1, -4]
    return [((s > t) - (s < t)) * 3 / len(self) for s, t in zip(self, target)]


def logsoftmax_backward():
    rows = [([1, 2, 3], [-0.5, -1, -2]), ([4, 5, 6], [0, 0.25, -3])]
    return [g - math.exp(o) * sum(grad) for grad, output in rows for g, o in zip(grad, output)]


def run(command, **options):
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if result.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}: exit code {result.returncode}\n{result.stdout}")
    return result.stdout


def difference(printed, expected):
    """What is wrong with a sample's output, or nothing."""
    values = [float(value) for value in re.findall(r"^result\[\d+\] is: (\S+)$", printed, re.MULTILINE)]
    if len(values) != len(expected):
        return f"{len(values)} results instead of {len(expected)}"
    for i, (got, want) in enumerate(zip(values, expected)):
        if not math.isclose(got, want, rel_tol=1e-5, abs_tol=1e-6):
            return f"result[{i}] is {got}, not {want}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build directory")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--libdir", default="lib", help="library directory, relative to the prefix")
    parser.add_argument("--flags", default="", help="further compiler flags")
    arguments = parser.parse_args()
    sources = pathlib.Path(__file__).parent

    with tempfile.TemporaryDirectory() as prefix:
        run([arguments.cmake, "--install", arguments.build, "--prefix", prefix])
        environment = dict(os.environ, PKG_CONFIG_PATH=f"{prefix}/{arguments.libdir}/pkgconfig")
        environment.pop("LD_LIBRARY_PATH", None)  # the flags alone must do
        flags = shlex.split(run(["pkg-config", "--cflags", "--libs", "opserve-cann"], env=environment))

        samples = [kl_div_backward, kl_div_target_backward, l1_loss_backward, logsoftmax_backward]
        for sample in samples:
            program = f"{prefix}/{sample.__name__}"
            source = sources / f"{sample.__name__}.cpp"
            run([arguments.compiler, *shlex.split(arguments.flags), source, "-o", program, *flags])
            printed = run([program], env=environment)
            problem = difference(printed, sample())
            if problem:
                sys.exit(f"{sample.__name__}: {problem}\n{printed}")
            print(f"{sample.__name__}: ok")


if __name__ == "__main__":
    main()
