#!/usr/bin/env python3
"""Runs a prepared program of one node (Add of 1 KiB) again and again, in unary calls, until it is killed.

  prepared_calls.py TARGET IN_FLIGHT

Needs the Python client's packages, numpy and gRPC.
"""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "client/python"))
import numpy as np
import opserve


def main():
    target, in_flight = sys.argv[1], int(sys.argv[2])
    client = opserve.Client(target)
    program = opserve.Program()
    inputs = [program.input("float32", (256,)) for _ in range(2)]
    adding = client.prepare(program, [program.add(*inputs)])
    values = [np.ones(256, np.float32) for _ in inputs]

    def call_again():
        while True:
            adding(*values)

    # A thread has a call in flight at any time, as each caller of `opserve bench` does.
    for _ in range(in_flight):
        threading.Thread(target=call_again).start()


if __name__ == "__main__":
    main()
