#!/usr/bin/python3
"""Runs the cases of tests/data/operators through the host CANN's C ABI: c_abi_operators_test.py BUILD [NAME ...].

Like operators_test.py without a daemon: both stages of each operator on tensors in device memory, where outputs begin
as bytes of 0xA5; and calls that break a rule, which stage one has to refuse. Requests that the ABI cannot express (a
list in the place of a tensor, an unknown name) are left to operators_test.py. Prints what is wrong; exits with 1 if
anything is.
"""

import base64
import sys

import numpy as np

import acl
import descriptions
import evidence
import rules
from elements import NUMPY
from generate import Operator
from operators_test import Worst, compare

NULL_POINTER, INVALID = 161001, 161002
# Outputs that a function leaves as they are or does not compute: their shapes.
UNWRITTEN = {
    "buffer": lambda case: case["inputs"]["self"][1],
    "mask_out": lambda case: [(int(np.prod(case["inputs"]["input"][1])) + 127) // 128 * 16],
    "zloss_out": lambda case: case["expected"]["loss_out"][1],
    "lse_for_zloss_out": lambda case: case["inputs"]["target"][1],
    "total_weight_out": lambda case: [1],
    "save_mean": lambda case: case["inputs"]["input"][1][1:2],
    "save_invstd": lambda case: case["inputs"]["input"][1][1:2],
}


def buffer(library, given):
    dtype, shape, data, *view = given
    storage = np.frombuffer(base64.b64decode(data), NUMPY[dtype])
    return acl.Buffer(library, dtype, storage, shape, *view)


def blank(library, dtype, shape):
    count = int(np.prod(shape, dtype=np.int64))
    width = np.dtype(NUMPY[dtype]).itemsize
    return acl.Buffer(library, dtype, np.full(count * width, 0xA5, "u1").view(NUMPY[dtype]), shape)


def make_tensors(library, operator, case, like=None):
    """The buffers of a call by argument; `expected` tells the outputs, `like` (a call that is right) the others."""
    like = like or case
    tensors = {
        name: [buffer(library, t) for t in given["list"]] if isinstance(given, dict) else buffer(library, given)
        for name, given in case["inputs"].items()
    }
    for output in [o for o in operator.outputs if o.role == operator.kinds.OUTPUT]:
        expected = {n: t for n, t in case["expected"].items() if n.split(".")[0] == output.name}
        made = [blank(library, dtype, shape) for dtype, shape, _ in expected.values()]
        if output.kind == operator.kinds.TENSOR_LIST:
            tensors[output.name] = made
        elif made:
            tensors[output.name] = made[0]
        elif not output.optional and not output.HasField("mask"):
            dtype = "UINT8" if output.name == "mask_out" else next(iter(like["inputs"].values()))[0]
            tensors[output.name] = blank(library, dtype, UNWRITTEN[output.name](like))
    return tensors


def can_express(operator, case):
    """Whether a refused case is a call of the ABI that breaks a rule of the vendor's."""
    rule = case.get("rule")
    broken = [rules.check_rule(*check) for check in rules.checks_of(operator.description)]
    own = broken[len(operator.description.check) :]  # the daemon's
    if rule is None or rule in own:
        return False
    kinds = operator.kinds
    plain = (kinds.INT64, kinds.INT32, kinds.INT8, kinds.UINT64, kinds.BOOL, kinds.DOUBLE, kinds.FLOAT, kinds.DTYPE)
    for argument in operator.attributes:
        value = case.get("attributes", {}).get(argument.name)
        if rule == rules.missing(argument.name) and argument.kind in plain:
            return False
        if value is not None and (not value or value.get("name") == "no_such" or "UNSPECIFIED" in value.values()):
            return False
    return True


def refused(library, operator, case, like):
    """What is wrong with stage one's answer to a case, whose outputs are those of the case `like`."""
    asked = dict(case.get("outputs", []))
    expected = {n: [asked.get(n) or dtype, shape, None] for n, (dtype, shape, _) in like["expected"].items()}
    tensors = {}
    try:
        tensors = make_tensors(library, operator, {**case, "expected": expected}, like)
        acl.Call(library, operator, tensors, case.get("attributes", {})).free()
        return "not refused"
    except acl.Failed as error:
        return "" if error.status in (NULL_POINTER, INVALID) else str(error)
    finally:
        free(tensors)


def free(tensors):
    for value in tensors.values():
        for one in value if isinstance(value, list) else [value]:
            one.free()


def run(library, operator, case):
    """What is wrong with the results of a case, or nothing."""
    tensors = make_tensors(library, operator, case)
    call = None
    try:
        call = acl.Call(library, operator, tensors, case.get("attributes", {}))
        call.launch()
        library.synchronize()
        for name, (dtype, _, data) in case["expected"].items():
            argument, *index = name.split(".")
            result = tensors[argument][int(index[0])] if index else tensors[argument]
            slack = case.get("slack", {}).get(name)
            problem = compare(base64.b64decode(data), dtype, result.read().tobytes(), case, slack, Worst())
            if problem:
                return f"{name}: {problem}"
        return ""
    except acl.Failed as error:
        return str(error)
    finally:
        if call:
            call.free()
        free(tensors)


def main():
    build, *names = sys.argv[1:]
    library = acl.Library(build)
    found, kinds = descriptions.read()
    total = failures = 0
    for _, description in found:
        if names and description.name not in names:
            continue
        operator = Operator(description, kinds)
        cases = evidence.read_cases(description.name)
        values = [case for case in cases if "refused" not in case]
        wrong = [case for case in cases if "refused" in case and can_express(operator, case)]
        problems = [(case, run(library, operator, case)) for case in values]
        problems += [(case, refused(library, operator, case, values[0])) for case in wrong]
        total += len(problems)
        for case, problem in problems:
            if problem:
                failures += 1
                print(f"{description.name}: {case['name']}: {problem}")
    print(f"{total} cases, {failures} failed")
    sys.exit(1 if failures or not total else 0)


if __name__ == "__main__":
    main()
