"""Deposits tensors at a daemon that takes a byte of its peers, until it is killed.

usage: deposit_too_much.py TARGET
"""

import sys
import time

import grpc

RUN = b"some run"


def field(number: int, contents: bytes) -> bytes:
    return bytes([number << 3 | 2, len(contents)]) + contents


def main() -> None:
    # A DepositHello, and a DepositOffer of a FLOAT tensor with two elements.
    tensor = field(1, bytes(22) + RUN) + b"\x10\x01" + field(3, b"\x02") + b"\x20\x01"
    messages = [field(1, field(1, RUN)), field(2, field(1, b"default") + field(3, tensor))]
    with grpc.insecure_channel(sys.argv[1]) as channel:
        deposit = channel.stream_stream("/opserve.v1.PeerService/Deposit")
        while True:
            welcome, verdict = deposit(iter(messages))
            assert b"peer.max_bytes" in verdict, (welcome, verdict)
            time.sleep(0.05)


if __name__ == "__main__":
    main()
