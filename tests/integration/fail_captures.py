"""Prepares programs and runs each until the daemon has tried to capture it three times, until it is killed.

usage: fail_captures.py TARGET
"""

import itertools
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "client/python"))
import numpy as np

import opserve


def main() -> None:
    with opserve.Client(sys.argv[1]) as client:
        values = np.zeros((2, 3), "f4")
        for depth in itertools.cycle(range(2, 100)):
            program = opserve.Program()
            result = program.input("float32", values.shape)
            for _ in range(depth):
                result = program.log_softmax(result, dim=1)
            run = client.prepare(program, [result])
            for _ in range(4):
                run(values)
            time.sleep(0.02)


if __name__ == "__main__":
    main()
