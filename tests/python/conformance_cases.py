"""The conformance set (tests/data/conformance, its README.md has the format) as numpy arrays."""

import base64
import json
import pathlib
import re

import numpy as np
from opserve._data_type import DataType

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/conformance"
DTYPES = {dtype.name: dtype.numpy for dtype in DataType}
# From where on values are infinite in the output's type.
LIMITS = {
    "FLOAT": 3.4028235677973366e38,
    "FLOAT16": 65520.0,
    "BF16": 3.39617752923046e38,
    "DOUBLE": float("inf"),
}


def operators():
    """Names in the catalogue."""
    names = sorted(path.name for path in DATA.glob("aclnn*.values.jsonl"))
    return [name[len("aclnn") : -len(".values.jsonl")] for name in names]


def load(operator, kind):
    """Cases of kind "values" or "status"."""
    with open(DATA / f"aclnn{operator}.{kind}.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def snake(name):
    """grad_output for gradOutput."""
    return re.sub("([A-Z])", lambda found: "_" + found.group(1).lower(), name)


def input_array(tensor):
    """A numpy array that lies as the case says; what is around it is NaN."""
    dtype = DTYPES[tensor["dtype"]]
    storage = np.frombuffer(base64.b64decode(tensor["data"]), dtype)
    if 0 in tensor["shape"]:
        return storage[:0].reshape(tensor["shape"])
    steps = [step * dtype.itemsize for step in tensor["strides"]]
    return np.lib.stride_tricks.as_strided(
        storage[tensor["offset"] :], tensor["shape"], steps
    )


def check_result(case, values):
    """Fails unless float64 `values` are what the case expects."""
    output = case["output"]
    expected = np.frombuffer(base64.b64decode(output["expected"]), "<f8")
    got = values.reshape(-1)
    nan = np.isnan(expected)
    infinite = np.abs(expected) >= LIMITS[output["dtype"]]
    rest = ~nan & ~infinite
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(
        got[infinite], np.copysign(np.inf, expected[infinite])
    )
    np.testing.assert_allclose(
        got[rest], expected[rest], rtol=case["rtol"], atol=case["atol"]
    )
