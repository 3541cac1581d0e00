"""Announces requests in sessions and sends none of their payloads, until it is killed.

usage: stall.py TARGET
"""

import pathlib
import struct
import sys
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import session_client
from session_client import ANNOUNCEMENT, ERROR, START, Frame, messages

ELEMENTS = 1 << 20
SIZES = struct.pack("<IQ", 1, 4 * ELEMENTS)


def main() -> None:
    request = messages.ExecuteRequest()
    tensor = request.invocations.add(operator="Neg").inputs.add(name="self").tensor
    tensor.dtype = 1  # float
    tensor.shape.append(ELEMENTS)
    tensor.payload = 0
    body = START.pack(0, 0) + SIZES + request.SerializeToString()
    with grpc.insecure_channel(sys.argv[1]) as channel:
        session = session_client.Session(channel)
        for number in range(1, 1 << 40):
            session.send(Frame(ANNOUNCEMENT, number, body))
            end = next(frame for frame in session.incoming if frame.kind == ERROR)
            assert b"stalled" in end.body, end
            session.send(Frame(session_client.CANCEL, number))
            time.sleep(0.05)


if __name__ == "__main__":
    main()
