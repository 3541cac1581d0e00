"""The status and the trailers of each kind of refusal, as a daemon's wire has them."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from opserve import _wire

Code = grpc.StatusCode
MIB = 1 << 20
EXECUTE_STREAM = "/opserve.v1.OperatorService/ExecuteStream"
INFER = "/inference.GRPCInferenceService/ModelInfer"
INFER_STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
HEALTH = "/grpc.health.v1.Health/Check"

REASON = "opserve-reason"
LIMIT = "opserve-limit-bytes"
PUSHBACK = "grpc-retry-pushback-ms"
DEVICE_ERROR = "opserve-device-error"
OURS = (REASON, LIMIT, PUSHBACK, DEVICE_ERROR)
# A pushback that is a time: 10 ms to 10 s.
LATER = "later"
NEVER = "-1"

# The first launch is that of the golden case, with which the device proves itself.
L1 = "kernel=aclnnL1LossBackward,nth=2,count=all,"


@dataclasses.dataclass
class Answer:
    code: grpc.StatusCode
    trailers: dict[str, str]

    @classmethod
    def of(cls, call: Any) -> Answer:
        """Waits for the end of a call."""
        trailers = {
            key: value for key, value in call.trailing_metadata() or () if key in OURS
        }
        pushback = trailers.get(PUSHBACK)
        if pushback is not None and 10 <= int(pushback) <= 10_000:
            trailers[PUSHBACK] = LATER
        return cls(call.code(), trailers)


class Caller:
    """Sends bytes over one connection."""

    def __init__(self, target: str) -> None:
        options = [
            ("grpc.max_send_message_length", -1),
            ("grpc.enable_retries", 0),
        ]
        self.channel = grpc.insecure_channel(target, options)

    def begin(self, method: str, message: bytes, **options: Any) -> Any:
        options = {"timeout": 60, **options}
        return self.channel.unary_unary(method).future(message, **options)

    def call(self, method: str, message: bytes, **options: Any) -> Answer:
        return Answer.of(self.begin(method, message, **options))

    def execute(self, request: Any, **options: Any) -> Answer:
        return self.call(_wire.EXECUTE, request.SerializeToString(), **options)

    def stream(self, method: str, *messages: bytes, client_sends_one=False) -> Answer:
        kind = "unary_stream" if client_sends_one else "stream_stream"
        given = messages[0] if client_sends_one else iter(messages)
        call = getattr(self.channel, kind)(method)(given, timeout=60)
        with contextlib.suppress(grpc.RpcError):
            for _ in call:
                pass
        return Answer.of(call)

    def upload(self, shape: int, data: bytes = b"", crc32c: int = 0) -> Answer:
        header = {"dtype": FLOAT, "shape": [shape], "chunk_bytes": 1000}
        message = _wire.UploadRequest(header=header, data=data, crc32c=crc32c)
        call = self.channel.stream_unary(_wire.UPLOAD).future(
            iter([message.SerializeToString()]), timeout=60
        )
        return Answer.of(call)


FLOAT = {name: number for number, name in _wire.enum_names("DataType").items()}[
    "DATA_TYPE_FLOAT"
]


def ones(count: int = 3, operator: str = "L1LossBackward", **tensor: Any) -> Any:
    """A request that is right unless `tensor`, of its inputs, says otherwise."""
    request = _wire.ExecuteRequest(payloads=[bytes(4 * count)])
    tensor = {"dtype": FLOAT, "shape": [count], "payload": 0, **tensor}
    inputs = [
        {"name": name, "tensor": tensor} for name in ("grad_output", "self", "target")
    ]
    request.invocations.add(operator=operator, inputs=inputs)
    return request


def long_program() -> Any:
    """As many invocations as no small header holds."""
    request = ones()
    request.invocations.extend(list(request.invocations) * 100)
    return request


def shared() -> Any:
    request = ones()
    request.ClearField("payloads")
    for named in request.invocations[0].inputs:
        named.tensor.shared_memory.size = 12
    return request


@dataclasses.dataclass
class Case:
    """A row of the contract: what provokes a refusal, and the answer."""

    name: str
    provoke: Callable[[Caller, Any], Answer]
    code: grpc.StatusCode
    trailers: dict[str, str]
    flags: tuple[str, ...] = ()
    faults: str = ""
    tenants: str = ""


def token(name: str) -> dict[str, Any]:
    return {"metadata": (("authorization", f"Bearer {name}"),)}


def tenant(text: str) -> str:
    digest = hashlib.sha256(b"alice").hexdigest()
    return f'tenant {{ name: "alice" token_sha256: "{digest}" {text} }}'


def await_calls(caller: Caller, count: int, **options: Any) -> None:
    """Waits until the daemon has begun with the first of so many calls."""
    status = _wire.GetServerStatusResponse()
    ask = caller.channel.unary_unary(_wire.GET_SERVER_STATUS)
    for _ in range(2000):
        status.ParseFromString(ask(b"", timeout=60, metadata=options.get("metadata")))
        device = status.devices[0]
        executing = device.executing_requests
        if executing and executing + device.queued_requests == count:
            return
    raise AssertionError(f"{count} calls did not begin: {status}")


@contextlib.contextmanager
def held(caller: Caller, count: int, **options: Any) -> Iterator[list[Any]]:
    """Calls that are under way, one after another."""
    calls = []
    for number in range(count):
        message = ones().SerializeToString()
        calls.append(caller.begin(_wire.EXECUTE, message, **options))
        await_calls(caller, number + 1, **options)
    yield calls
    for call in calls:
        call.cancel()


def behind_others(count: int, **options: Any) -> Callable[[Caller, Any], Answer]:
    def provoke(caller: Caller, _: Any) -> Answer:
        with held(caller, count, **options):
            return caller.execute(ones(), **options)

    return provoke


def after_eight(caller: Caller, _: Any) -> Answer:
    """Once the daemon knows how long such a call takes."""
    for _ in range(2):
        calls = [
            caller.begin(_wire.EXECUTE, ones().SerializeToString()) for _ in range(4)
        ]
        for call in calls:
            assert Answer.of(call).code is Code.OK
    return caller.execute(ones(), timeout=0.5)


def while_it_drains(caller: Caller, daemon: Any) -> Answer:
    with held(caller, 1):
        daemon.process.send_signal(signal.SIGTERM)
        for _ in range(100):
            # One that comes before the signal waits for the lane.
            answer = caller.execute(ones(), timeout=0.2)
            if answer.code is not Code.DEADLINE_EXCEEDED:
                break
        return answer


def cancelled(caller: Caller, _: Any) -> Answer:
    with held(caller, 1) as calls:
        calls[0].cancel()
        return Answer.of(calls[0])


def second_upload(caller: Caller, _: Any) -> Answer:
    crc_of_zeros = 0x48674BC7
    assert caller.upload(1, bytes(4), crc_of_zeros).code is Code.OK
    return caller.upload(1, bytes(4), crc_of_zeros)


def above(limit: int, method: str, **options: Any) -> Callable[[Caller, Any], Answer]:
    message = bytes(limit + 1)
    return lambda caller, _: caller.call(method, message, **options)


TOO_LARGE = {REASON: "too_large", LIMIT: str(MIB)}
SMALL_MESSAGES = (f"--max_message_bytes={MIB}",)
SMALL_HEADERS = ("--max_header_bytes=4096",)
ONE_LANE = ("--streams_per_device=1",)

CASES = (
    Case(
        "a shape that does not fit",
        lambda caller, _: caller.execute(ones(shape=[4])),
        Code.INVALID_ARGUMENT,
        {REASON: "invalid"},
    ),
    Case(
        "bytes that are no message",
        lambda caller, _: caller.call(_wire.EXECUTE, b"\xff"),
        Code.INVALID_ARGUMENT,
        {REASON: "invalid"},
    ),
    *(
        Case(
            f"a message above the limit for {method}",
            above(MIB, method),
            Code.INVALID_ARGUMENT,
            TOO_LARGE,
            SMALL_MESSAGES,
        )
        for method in (
            _wire.EXECUTE,
            _wire.GET_SERVER_STATUS,
            _wire.PREPARE,
            _wire.RENEW,
            INFER,
            HEALTH,
        )
    ),
    *(
        Case(
            f"a message above the limit on {method}",
            lambda caller, _, method=method, one=one: caller.stream(
                method, bytes(MIB + 1), client_sends_one=one
            ),
            Code.INVALID_ARGUMENT,
            TOO_LARGE,
            SMALL_MESSAGES,
        )
        for method, one in (
            (EXECUTE_STREAM, False),
            (_wire.UPLOAD, False),
            (_wire.DOWNLOAD, True),
            (INFER_STREAM, False),
        )
    ),
    Case(
        "a message far above the limit",
        above(16 * MIB, _wire.EXECUTE),
        Code.INVALID_ARGUMENT,
        TOO_LARGE,
        SMALL_MESSAGES,
    ),
    Case(
        "a tensor above its limit",
        lambda caller, _: caller.execute(ones(2000)),
        Code.INVALID_ARGUMENT,
        {REASON: "too_large", LIMIT: "4096"},
        ("--max_tensor_bytes=4096",),
    ),
    Case(
        "an upload above its limit",
        lambda caller, _: caller.upload(2000),
        Code.INVALID_ARGUMENT,
        {REASON: "too_large", LIMIT: "4096"},
        ("--max_tensor_bytes=4096",),
    ),
    Case(
        "a request above its limit",
        lambda caller, _: caller.execute(ones(2000)),
        Code.INVALID_ARGUMENT,
        {REASON: "too_large", LIMIT: "4096"},
        ("--max_request_bytes=4096",),
    ),
    Case(
        "a program above the limit of a header",
        lambda caller, _: caller.execute(long_program()),
        Code.INVALID_ARGUMENT,
        {REASON: "too_large", LIMIT: "4096"},
        SMALL_HEADERS,
    ),
    Case(
        "a program to be prepared, likewise",
        above(4096, _wire.PREPARE),
        Code.INVALID_ARGUMENT,
        {REASON: "too_large", LIMIT: "4096"},
        SMALL_HEADERS,
    ),
    Case(
        "results above the limit of a message",
        lambda caller, _: caller.execute(ones(4096, shape=[64, 4096], strides=[0, 1])),
        Code.INVALID_ARGUMENT,
        TOO_LARGE,
        SMALL_MESSAGES,
    ),
    # gRPC refuses it before the message, and sends no trailers from there (server/README.md).
    Case(
        "a stranger",
        lambda caller, _: caller.execute(ones(), **token("bob")),
        Code.UNAUTHENTICATED,
        {},
        tenants=tenant(""),
    ),
    Case(
        "an operator that the tenant may not call",
        lambda caller, _: caller.execute(ones(), **token("alice")),
        Code.PERMISSION_DENIED,
        {REASON: "forbidden"},
        tenants=tenant('operator: "KlDivBackward"'),
    ),
    Case(
        "a queue that is full",
        behind_others(2),
        Code.RESOURCE_EXHAUSTED,
        {REASON: "queue_full", PUSHBACK: LATER},
        (*ONE_LANE, "--queue_capacity_total=1"),
        L1 + "hang",
    ),
    Case(
        "a tenant's queue that is full",
        behind_others(2),
        Code.RESOURCE_EXHAUSTED,
        {REASON: "tenant_queue_full", PUSHBACK: LATER},
        (*ONE_LANE, "--queue_capacity_per_tenant=1"),
        L1 + "hang",
    ),
    Case(
        "as many requests as the tenant may have",
        behind_others(1, **token("alice")),
        Code.RESOURCE_EXHAUSTED,
        {REASON: "tenant_queue_full", PUSHBACK: LATER},
        faults=L1 + "hang",
        tenants=tenant("max_pending_requests: 1"),
    ),
    Case(
        "a rate that is used up",
        lambda caller, _: [caller.execute(ones(), **token("alice")) for _ in range(40)][
            -1
        ],
        Code.RESOURCE_EXHAUSTED,
        {REASON: "rate_limited", PUSHBACK: LATER},
        tenants=tenant("requests_per_second: 1"),
    ),
    Case(
        "a quota that is used up",
        second_upload,
        Code.RESOURCE_EXHAUSTED,
        {REASON: "tenant_memory", PUSHBACK: LATER},
        ("--resident_max_tensors_per_tenant=1",),
    ),
    # The first call of the function is that of the golden cases.
    Case(
        "device memory that runs out",
        lambda caller, _: caller.execute(ones(10 * MIB)),
        Code.RESOURCE_EXHAUSTED,
        {REASON: "device_memory", PUSHBACK: LATER, DEVICE_ERROR: "207001"},
        faults="call=aclrtMalloc,nth=2,count=all,code=207001",
    ),
    Case(
        "a deadline that cannot be met",
        after_eight,
        Code.DEADLINE_EXCEEDED,
        {REASON: "deadline_infeasible", PUSHBACK: NEVER},
        ("--streams_per_device=4",),
        L1 + "slow=1000000",
    ),
    Case(
        "a deadline that passes in the queue",
        behind_others(1, timeout=None),
        Code.DEADLINE_EXCEEDED,
        {REASON: "deadline_expired"},
        (*ONE_LANE, "--default_deadline=1s"),
        L1 + "hang",
    ),
    Case(
        "more memory than there can ever be",
        lambda caller, _: caller.execute(ones(8 * MIB)),
        Code.FAILED_PRECONDITION,
        {REASON: "device_memory", PUSHBACK: NEVER},
        (f"--workspace_max_bytes={48 * MIB}",),
    ),
    Case(
        "more memory than the tenant can ever have",
        lambda caller, _: caller.execute(ones(2 * MIB), **token("alice")),
        Code.FAILED_PRECONDITION,
        {REASON: "tenant_memory", PUSHBACK: NEVER},
        tenants=tenant(f"device_memory {{ hard_bytes: {MIB} }}"),
    ),
    Case(
        "large results of a small request",
        lambda caller, _: caller.execute(ones(1, shape=[4 * MIB], strides=[0])),
        Code.FAILED_PRECONDITION,
        {REASON: "amplification", PUSHBACK: NEVER},
    ),
    Case(
        "a daemon that drains",
        while_it_drains,
        Code.UNAVAILABLE,
        {REASON: "draining", PUSHBACK: LATER},
        ONE_LANE,
        L1 + "hang",
    ),
    Case(
        "no device",
        lambda caller, _: caller.execute(ones()),
        Code.UNAVAILABLE,
        {REASON: "device_unavailable"},
        faults="device=0,lost",
    ),
    Case("a caller that leaves", cancelled, Code.CANCELLED, {}, faults=L1 + "hang"),
    Case(
        "a kernel that fails",
        lambda caller, _: caller.execute(ones()),
        Code.INTERNAL,
        {DEVICE_ERROR: "507035"},
        faults=L1 + "code=507035",
    ),
    Case(
        "bytes that changed on their way",
        lambda caller, _: caller.upload(1, bytes(4), 1),
        Code.DATA_LOSS,
        {},
    ),
    Case(
        "a feature that is off",
        lambda caller, _: caller.execute(shared()),
        Code.UNIMPLEMENTED,
        {REASON: "shm_disabled"},
    ),
    Case(
        "a method that there is none of",
        lambda caller, _: caller.call("/opserve.v1.OperatorService/Guess", b""),
        Code.UNIMPLEMENTED,
        {},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_refusal_has_its_status_and_trailers(case, start_daemon, tmp_path):
    flags = ["--device=0", *case.flags]
    if case.tenants:
        (tmp_path / "opserved.textproto").write_text(case.tenants)
        flags.append(f"--config={tmp_path}/opserved.textproto")
    daemon = start_daemon(*flags, faults=case.faults)
    caller = Caller(daemon.target)

    answer = case.provoke(caller, daemon)

    assert answer == Answer(case.code, case.trailers)
    caller.channel.close()
