#!/usr/bin/python3
"""Sends the cases of tests/data/operators to an opserved and compares what comes back.

usage: operators_test.py [--operator NAME ...] [--verbose] [--record]; OPSERVED is the daemon's path.
generate.py says what a case is. Prints a row for each operator and what is wrong; exits with 1 if anything is.
--record writes the worst errors of a run without failures to errors.json beside the cases, for evidence.py.
"""

import argparse
import base64
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import zlib

import grpc
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool

from descriptions import GetMessageClass

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = ROOT / "tests/data/operators"
ERRORS = DATA / "errors.json"
NUMPY = {
    "FLOAT": "<f4",
    "FLOAT16": "<f2",
    "BF16": "<u2",
    "DOUBLE": "<f8",
    "INT8": "i1",
    "UINT8": "u1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "BOOL": "u1",
}
# Bits of the significand and the least exponent.
FORMATS = {"FLOAT": (24, -126), "FLOAT16": (11, -14), "BF16": (8, -126), "DOUBLE": (53, -1022)}
WINDOW = 64  # requests on the way
INVALID_ARGUMENT = grpc.StatusCode.INVALID_ARGUMENT.value[0]


def messages():
    """The classes of the protocol's messages."""
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet()
    files.ParseFromString((ROOT / "client/python/opserve/protocol.binpb").read_bytes())
    for file in files.file:
        pool.Add(file)
    return lambda name: GetMessageClass(pool.FindMessageTypeByName(f"opserve.v1.{name}"))


message = messages()
Request, Response, ErrorDetail, ListRequest, ListResponse = map(
    message,
    ("ExecuteStreamRequest", "ExecuteStreamResponse", "ErrorDetail", "ListOperatorsRequest", "ListOperatorsResponse"),
)
DTYPES = message("Tensor").DESCRIPTOR.fields_by_name["dtype"].enum_type
NUMBERS = {v.name[len("DATA_TYPE_") :]: v.number for v in DTYPES.values}
NAMES = {number: name for name, number in NUMBERS.items()}


# Requests


def write_tensor(given, tensor, payloads):
    dtype, shape, data, *view = given
    tensor.dtype = NUMBERS[dtype]
    tensor.shape.extend(shape)
    if view:
        tensor.strides.extend(view[0] or [])
        tensor.offset = view[1]
    if isinstance(data, int):
        tensor.payload = data
    elif data is not None:
        tensor.payload = len(payloads)
        payloads.append(base64.b64decode(data))


def write_attribute(name, given, invocation):
    attribute = invocation.attributes.add(name=name)
    for field, value in given.items():
        if field == "scalar":
            scalar = attribute.value.scalar_value
            scalar.dtype = NUMBERS[value[0]]
            if value[0] in ("FLOAT", "FLOAT16", "BF16", "DOUBLE"):
                scalar.double_value = value[1]
            else:
                scalar.int64_value = int(value[1])
        elif field == "dtype_value":
            attribute.value.dtype_value = NUMBERS[value]
        elif field.endswith("_list"):
            getattr(attribute.value, field).SetInParent()
            getattr(attribute.value, field).values.extend(value)
        else:
            setattr(attribute.value, field, value)


def write_request(operator, case, number):
    request = Request(id=number)
    invocation = request.request.invocations.add(operator=case.get("operator", operator))
    for name, given in case["inputs"].items():
        for _ in range(2 if case.get("twice") == name else 1):
            named = invocation.inputs.add(name=name)
            if isinstance(given, dict):
                named.list.SetInParent()
                for tensor in given["list"]:
                    write_tensor(tensor, named.list.tensors.add(), request.payloads)
            else:
                write_tensor(given, named.tensor, request.payloads)
    for name, given in case.get("attributes", {}).items():
        for _ in range(2 if case.get("attribute_twice") == name else 1):
            write_attribute(name, given, invocation)
    for name, dtype in case.get("outputs", []):
        invocation.outputs.add(name=name, dtype=NUMBERS[dtype] if dtype else 0)
    return request


# Answers


def floating(data, dtype):
    bits = np.frombuffer(data, NUMPY[dtype])
    if dtype == "BF16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.astype(np.float64)


def units(values, dtype):
    """Of the last place that numbers of `dtype` have at `values`."""
    digits, least = FORMATS[dtype]
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.where(values == 0, least, np.frexp(values)[1] - 1)
    return np.ldexp(1.0, np.maximum(exponents, least).astype(int) - digits + 1)


class Worst:
    error = 0.0  # in units of the last place
    allowed = 0.0  # as a part of what is allowed


def compare(expected, dtype, data, case, slack, worst):
    """What is wrong with a result; nothing if it is as it should be."""
    if dtype not in FORMATS:
        wanted, got = np.frombuffer(expected, NUMPY[dtype]), np.frombuffer(data, NUMPY[dtype])
        wrong = np.flatnonzero(wanted != got)
    else:
        wanted, got = floating(expected, dtype), floating(data, dtype)
        nan, infinite = np.isnan(wanted), np.isinf(wanted)
        with np.errstate(invalid="ignore"):
            error = np.abs(got - wanted)
        error = np.where(
            nan, np.where(np.isnan(got), 0, np.inf), np.where(infinite, np.where(got == wanted, 0, np.inf), error)
        )
        error[np.isnan(error)] = np.inf
        ulp = units(np.where(nan | infinite, 1.0, wanted), dtype)
        unit = np.maximum(ulp, units(np.where(nan | infinite, 1.0, wanted), case["unit"])) if "unit" in case else ulp
        allowed = case["ulps"] * unit
        if slack:
            allowed = allowed + np.frombuffer(base64.b64decode(slack), "<f4")
        if error.size:
            worst.error = max(worst.error, np.max(error / unit))
            worst.allowed = max(worst.allowed, np.max(error / allowed))
        wrong = np.flatnonzero(error > allowed)
    if not wrong.size:
        return ""
    at = wrong[0]
    return f"{wrong.size} of {wanted.size} elements, first [{at}]: {got[at]!r}, expected {wanted[at]!r}"


def check(operator, case, response, worst):
    """What is wrong with an answer."""
    if response.HasField("error"):
        error = response.error
        detail = ErrorDetail()
        if error.details:
            error.details[0].Unpack(detail)
        if "refused" not in case:
            return f"refused: {error.message}"
        if error.code != INVALID_ARGUMENT:
            return f"code {error.code}: {error.message}"
        if detail.operator != case.get("operator", operator):
            return f"the error names operator {detail.operator!r}: {error.message}"
        if detail.argument not in case["refused"]:
            return f"the error names {detail.argument!r}, not {' or '.join(case['refused'])}: {error.message}"
        return ""
    if "refused" in case:
        return "not refused"
    results = {r.source.output: r.tensor for r in response.response.results}
    expected = case["expected"]
    if not expected.keys() <= results.keys():
        return f"outputs {', '.join(results)}, expected {', '.join(expected)}"
    for name, (dtype, shape, data) in expected.items():
        tensor = results[name]
        if NAMES[tensor.dtype] != dtype or list(tensor.shape) != shape:
            return f"{name} is {NAMES[tensor.dtype]} {list(tensor.shape)}, expected {dtype} {shape}"
        problem = compare(
            base64.b64decode(data),
            dtype,
            response.payloads[tensor.payload],
            case,
            case.get("slack", {}).get(name),
            worst,
        )
        if problem:
            return f"{name}: {problem}"
    return ""


def error_record(path, cases, worst):
    """Of an operator: the worst error, with a checksum of the cases that it was seen in."""
    floating = any("ulps" in case for case in cases)
    return {
        "cases": f"{zlib.crc32(path.read_bytes()):08x}",
        "ulps": float(f"{worst.error:.3g}") if floating else None,  # null: only results that must be equal
        "part": float(f"{worst.allowed:.3g}") if floating else None,  # of the tolerance
    }


def write_records(records):
    """Replaces those of the same operators; one operator a line."""
    known = json.loads(ERRORS.read_text(encoding="utf-8")) if ERRORS.exists() else {}
    known = {name: r for name, r in {**known, **records}.items() if (DATA / f"{name}.jsonl.gz").exists()}
    lines = [f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known)]
    ERRORS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


class Daemon:
    """An opserved on a Unix socket in a directory of its own."""

    def __init__(self):
        self._directory = tempfile.TemporaryDirectory(prefix="opserve-operators-")
        self.target = f"unix:{self._directory.name}/socket"
        self._process = subprocess.Popen(
            [
                os.environ["OPSERVED"],
                f"--listen={self.target}",
                "--metrics_listen=none",
                "--admin_listen=none",
                "--drain_delay=0s",
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ, OPSERVE_HOST_DEVICES="1"),
        )
        for line in self._process.stderr:
            if json.loads(line)["event"] == "ready":
                break
        else:
            raise AssertionError("opserved ended before it was ready")
        threading.Thread(target=self._process.stderr.read, daemon=True).start()

    def close(self):
        self._process.kill()
        self._process.wait()
        self._directory.cleanup()


def run(channel, operator, cases):
    """The answers to `cases`, in their order; None where there is none."""
    room = threading.Semaphore(WINDOW)

    def requests():
        for number, case in enumerate(cases):
            room.acquire()
            yield write_request(operator, case, number)

    call = channel.stream_stream(
        "/opserve.v1.OperatorService/ExecuteStream", Request.SerializeToString, Response.FromString
    )(requests(), timeout=300)
    answers = [None] * len(cases)
    try:
        for response in call:
            answers[response.id] = response
            room.release()
    except grpc.RpcError as error:
        print(f"{operator}: the stream ended with {error.code()}: {error.details()}")
        room.release(len(cases))
    return answers


def without_cases(channel, paths):
    """Operators of the daemon for which there is no file."""
    listed = channel.unary_unary(
        "/opserve.v1.OperatorService/ListOperators", ListRequest.SerializeToString, ListResponse.FromString
    )(ListRequest(), timeout=60)
    return {operator.name for operator in listed.operators} - {path.name.split(".")[0] for path in paths}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operator", action="append", help="only this one (may be repeated)")
    parser.add_argument("--verbose", action="store_true", help="show every failure, not three of an operator")
    parser.add_argument("--record", action="store_true", help="write the worst errors to errors.json")
    arguments = parser.parse_args()
    paths = sorted(DATA.glob("*.jsonl.gz"))
    if arguments.operator:
        paths = [DATA / f"{name}.jsonl.gz" for name in arguments.operator]
    failures = total = 0
    records = {}
    daemon = Daemon()
    try:
        with grpc.insecure_channel(daemon.target) as channel:
            if not arguments.operator:
                for name in sorted(without_cases(channel, paths)):
                    print(f"{name}: no cases; run generate.py")
                    failures += 1
            print(f"{'operator':44} values refused  worst ulp  of allowed")
            for path in paths:
                operator = path.name.split(".")[0]
                with gzip.open(path, "rt", encoding="utf-8") as lines:
                    cases = [json.loads(line) for line in lines]
                worst = Worst()
                problems = []
                for case, response in zip(cases, run(channel, operator, cases)):
                    problem = check(operator, case, response, worst) if response else "no answer"
                    if problem:
                        problems.append(f"  {operator}: {case['name']}: {problem}")
                refused = sum("refused" in case for case in cases)
                print(
                    f"{operator:44} {len(cases) - refused:6} {refused:7} {worst.error:10.3g} {worst.allowed:11.3g}"
                    + (f"  {len(problems)} FAILED" if problems else "")
                )
                print("\n".join(problems if arguments.verbose else problems[:3]), end="\n" if problems else "")
                total += len(cases)
                failures += len(problems)
                records[operator] = error_record(path, cases, worst)
    finally:
        daemon.close()
    if arguments.record and not failures:
        write_records(records)
    print(f"{total} cases of {len(paths)} operators, {failures} failed")
    sys.exit(1 if failures or not total else 0)


if __name__ == "__main__":
    main()
