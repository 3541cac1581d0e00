"""Opens sessions and breaks their protocol, until it is killed.

usage: misspeak.py TARGET
"""

import sys
import time

import grpc

# A SessionMessage with one frame: a ping (kind 6), where the first frame must be hello.
MESSAGE = bytes([0x0A, 16, 0, 0, 0, 0, 6]) + bytes(11)


def main() -> None:
    with grpc.insecure_channel(sys.argv[1]) as channel:
        session = channel.stream_stream("/opserve.v1.OperatorService/Session")
        while True:
            try:
                for _ in session(iter([MESSAGE])):
                    pass
            except grpc.RpcError as error:
                assert "the first frame must be hello" in error.details(), error.details()
            time.sleep(0.05)


if __name__ == "__main__":
    main()
