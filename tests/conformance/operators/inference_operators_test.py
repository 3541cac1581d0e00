#!/usr/bin/python3
"""Sends the cases of tests/data/operators as requests of the Open Inference Protocol.

usage: inference_operators_test.py [NAME ...]; OPSERVED is the daemon's path.
Values, and calls that break a rule. Requests that the protocol cannot express (other dtypes of outputs, numbers of a
certain dtype, empty lists) are left to operators_test.py. Prints what is wrong; exits with 1 if anything is.
"""

import base64
import sys

import grpc
import numpy as np

import descriptions
import evidence
from elements import NUMPY, is_floating, rounded
from operators_test import Daemon, Worst, compare

message = descriptions.messages(descriptions.ROOT / "proto", "inference/grpc_service.proto", "inference")
Request, Response = message("ModelInferRequest"), message("ModelInferResponse")
DATATYPES = {"FLOAT": "FP32", "FLOAT16": "FP16", "DOUBLE": "FP64"}  # others have the dtype's name
WINDOW = 64  # requests on the way


class Inexpressible(Exception):
    """The protocol has no request for a case."""


def contiguous(given):
    """The bytes of a view's elements."""
    dtype, shape, data, *view = given
    if not isinstance(data, str):
        raise Inexpressible
    content = base64.b64decode(data)
    if not view:
        return content
    storage = np.frombuffer(content, NUMPY[dtype])
    strides = [s * storage.itemsize for s in view[0]]
    return np.lib.stride_tricks.as_strided(storage[view[1] :], shape, strides).tobytes()


def write_parameter(parameter, value):
    if len(value) != 1:
        raise Inexpressible
    ((field, content),) = value.items()
    if field == "scalar":
        dtype, content = content
        if dtype == "DOUBLE" and rounded(content, "FLOAT") != content or dtype not in ("FLOAT", "DOUBLE", "INT64"):
            raise Inexpressible
        field = "double_value" if is_floating(dtype) else "int64_value"
    if field.endswith("_list"):
        parameter.string_param = str(content).lower()
    elif field in ("name", "text_value"):
        parameter.string_param = content
    elif field == "dtype_value":
        parameter.string_param = DATATYPES.get(content, content)
    elif field == "bool_value":
        parameter.bool_param = content
    elif field == "int64_value":
        parameter.int64_param = content
    else:
        parameter.double_param = content


def write_request(description, kinds, case):
    request = Request(model_name=description.name)
    if any(dtype for _, dtype in case.get("outputs", [])):
        raise Inexpressible
    for name, given in case["inputs"].items():
        many = isinstance(given, dict)
        if many and not given["list"]:
            raise Inexpressible
        for i, tensor in enumerate(given["list"] if many else [given]):
            dtype, shape = tensor[:2]
            request.inputs.add(name=f"{name}.{i}" if many else name, datatype=DATATYPES.get(dtype, dtype), shape=shape)
            request.raw_input_contents.append(contiguous(tensor))
    for name, value in case.get("attributes", {}).items():
        write_parameter(request.parameters[name], value)
    wanted = [name for name, _ in case.get("outputs", [])]
    if any(a.role == kinds.OUTPUT and a.optional for a in description.argument):
        wanted = list(case.get("expected", wanted))  # those are only there if asked for, and then no others
    for name in wanted:
        request.outputs.add(name=name)
    return request


def problem(case, call):
    """What is wrong with the answer to a case, or nothing."""
    error = call.exception()
    if error is not None:
        wanted = "refused" in case and error.code() == grpc.StatusCode.INVALID_ARGUMENT
        return "" if wanted else f"{error.code()}: {error.details()}"
    if "refused" in case:
        return "not refused"
    response = call.result()
    contents = {o.name: (o, data) for o, data in zip(response.outputs, response.raw_output_contents)}
    for name, (dtype, shape, data) in case["expected"].items():
        if name not in contents:
            return f"no output {name}"
        output, content = contents[name]
        if output.datatype != DATATYPES.get(dtype, dtype) or list(output.shape) != shape:
            return f"{name} is {output.datatype} {list(output.shape)}, expected {dtype} {shape}"
        found = compare(base64.b64decode(data), dtype, content, case, case.get("slack", {}).get(name), Worst())
        if found:
            return f"{name}: {found}"
    return ""


def main():
    found, kinds = descriptions.read()
    names = set(sys.argv[1:])
    total = failures = left = 0
    daemon = Daemon()
    try:
        with grpc.insecure_channel(daemon.target) as channel:
            infer = channel.unary_unary(
                "/inference.GRPCInferenceService/ModelInfer", Request.SerializeToString, Response.FromString
            )
            for description in [d for _, d in found if not names or d.name in names]:
                requests = []
                for case in evidence.read_cases(description.name):
                    try:
                        if "refused" not in case or "rule" in case:
                            requests.append((case, write_request(description, kinds, case)))
                    except Inexpressible:
                        left += 1
                for batch in (requests[i : i + WINDOW] for i in range(0, len(requests), WINDOW)):
                    calls = [(case, infer.future(request, timeout=60)) for case, request in batch]
                    for case, call in calls:
                        what = problem(case, call)
                        total += 1
                        failures += bool(what)
                        if what:
                            print(f"{description.name}: {case['name']}: {what}")
    finally:
        daemon.close()
    print(f"{total} cases, {failures} failed; {left} that the protocol cannot express")
    sys.exit(1 if failures or not total else 0)


if __name__ == "__main__":
    main()
