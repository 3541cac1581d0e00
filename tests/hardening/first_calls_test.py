"""A new client may begin all its calls at once: the bounds on a connection without an identity leave it room.

gRPC's clients begin every call that waits as soon as the connection is there, and their health watch beside them, which
carries no identity and stays open. So "one stream until a call is identified" would end the connection of every client
of two threads; this test fails then.

usage: first_calls_test.py BUILD_DIR
"""

import json
import pathlib
import sys
import unittest

import attack
import grpc

BUILD = pathlib.Path(sys.argv[-1]).resolve()
STATUS = "/opserve.v1.OperatorService/GetServerStatus"
# A health watch as in the service configuration of clients that balance over several daemons.
WATCHES_HEALTH = json.dumps({"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}})


class FirstCallsTest(unittest.TestCase):

    def check(self, listener, calls, service_config="{}"):
        daemon = attack.Daemon(BUILD, listener)
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.service_config", service_config)]
        try:
            if daemon.address.ca_file:
                credentials = grpc.ssl_channel_credentials(pathlib.Path(daemon.address.ca_file).read_bytes())
                channel = grpc.secure_channel(daemon.address.target, credentials, options)
            else:
                channel = grpc.insecure_channel(daemon.address.target, options)
            with channel:
                call = channel.unary_unary(STATUS)
                answers = [call.future(b"", timeout=60, wait_for_ready=True, metadata=[("authorization", "Bearer healthy")])
                           for _ in range(calls)]
                failures = [str(answer.exception().code()) for answer in answers if answer.exception()]
        finally:
            daemon.close()
        self.assertEqual(failures, [], f"of {calls} calls")

    def test_two_threads(self):
        self.check("unix", 2)

    def test_a_health_watch_and_a_call(self):
        self.check("tcp", 1, WATCHES_HEALTH)

    def test_a_hundred_threads_on_each_listener(self):
        for listener in ("unix", "tcp", "tls"):
            with self.subTest(listener=listener):
                self.check(listener, 100)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
