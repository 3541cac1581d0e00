"""Prepares programs that push each other out, until it is killed.

usage: prepare_again.py TARGET
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "client/python"))
import numpy as np

import opserve


def main() -> None:
    with opserve.Client(sys.argv[1]) as client:
        runs = []
        for columns in (3, 4):
            program = opserve.Program()
            x = program.input("float32", (2, columns))
            result = program.log_softmax(x, dim=1)
            runs.append((client.prepare(program, [result]), np.zeros((2, columns), "f4")))
        while True:
            for run, values in runs:
                run(values)
            time.sleep(0.02)


if __name__ == "__main__":
    main()
