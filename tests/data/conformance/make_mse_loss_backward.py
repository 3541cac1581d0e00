#!/usr/bin/python3
"""Writes aclnnMseLossBackward.values.jsonl and .status.jsonl beside it: see README.md for the format.

Expected values are the formula in float64, applied to the inputs as they were rounded. The same
data with every run.
"""
import base64
import itertools
import json
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
DTYPES = ("FLOAT", "FLOAT16", "BF16")
STORAGE = {"FLOAT": "<f4", "FLOAT16": "<f2", "BF16": "<u2"}
RTOL = {"FLOAT": 1e-6, "FLOAT16": 1e-3, "BF16": 8e-3}
SMALLEST = {"FLOAT": 2.0**-149, "FLOAT16": 2.0**-24, "BF16": 2.0**-133}
INPUTS = ("gradOutput", "self", "target")
random = np.random.default_rng(20260214)


def narrow(values, dtype):
    """Float64 values as raw elements of a dtype, rounded to nearest even."""
    if dtype != "BF16":
        return values.astype(STORAGE[dtype])
    bits = np.atleast_1d(values.astype("<f4")).view("<u4")
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    rounded[np.atleast_1d(np.isnan(values))] = 0x7FC0
    return rounded.reshape(values.shape)


def widen(raw, dtype):
    if dtype == "BF16":
        wide = (np.atleast_1d(raw).astype("<u4") << 16).view("<f4")
        return wide.astype("f8").reshape(raw.shape)
    return raw.astype("f8")


def nan_storage(count, dtype):
    return narrow(np.full(count, np.nan), dtype)


def contiguous_strides(shape):
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * max(shape[axis], 1)
    return strides


def described(dtype, shape, strides=None, offset=0, storage_shape=None):
    shape = list(shape)
    strides = list(strides) if strides is not None else contiguous_strides(shape)
    return {"dtype": dtype, "shape": shape, "strides": strides, "offset": offset,
            "storage_shape": list(storage_shape) if storage_shape is not None else shape}


def put(tensor, values):
    """The storage of a described tensor: its view holds `values` (rounded), the rest is NaN."""
    storage = nan_storage(int(np.prod(tensor["storage_shape"], dtype=int)), tensor["dtype"])
    if 0 not in tensor["shape"]:
        view = np.lib.stride_tricks.as_strided(
            storage[tensor["offset"]:], tensor["shape"],
            [stride * storage.itemsize for stride in tensor["strides"]])
        view[...] = narrow(np.asarray(values, "f8"), tensor["dtype"])
        values = widen(view, tensor["dtype"])
    return storage, np.asarray(values, "f8").reshape(tensor["shape"])


def encoded(array):
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


class Writer:
    def __init__(self):
        self.values, self.status, self.counts = [], [], {}

    def number(self, category):
        self.counts[category] = self.counts.get(category, 0) + 1
        return f"mse/{category}/{self.counts[category]:03}"

    def value(self, category, tensors, out, reduction=0, values=None, tags=()):
        """A case of three described inputs and an output; `values`: theirs, random if None."""
        if values is None:
            values = [random.normal(size=t["shape"]) for t in tensors]
        inputs, exact = [], []
        for name, tensor, wanted in zip(INPUTS, tensors, values):
            storage, held = put(tensor, np.broadcast_to(wanted, tensor["shape"]))
            inputs.append({"name": name, **tensor, "data": encoded(storage)})
            exact.append(held)
        grad, own, target = np.broadcast_arrays(*exact)
        divisor = max(grad.size, 1) if reduction == 1 else 1
        with np.errstate(all="ignore"):
            expected = 2 * (own - target) * grad / divisor
            magnitude = np.max(np.where(np.isfinite(own) & np.isfinite(target) & np.isfinite(grad),
                                        2 * (np.abs(own) + np.abs(target)) * np.abs(grad), 0),
                               initial=0) / divisor
        atol = max(1.25 * 2.0**-24 * 4 * magnitude, SMALLEST[out["dtype"]])
        self.values.append({
            "id": self.number(category), "operator": "aclnnMseLossBackward",
            "attrs": {"reduction": reduction}, "inputs": inputs,
            "output": {**out, "expected": encoded(expected.astype("<f8"))}, "expected_status": 0,
            "atol": float(atol), "rtol": RTOL[min((out["dtype"], tensors[0]["dtype"]),
                                                  key=lambda d: -RTOL[d])],
            "tags": sorted({category, *tags})})

    def of_status(self, category, tensors, out, status, reduction=0, **extra):
        inputs = [t if t is None else {"name": n, **t} for n, t in zip(INPUTS, tensors)]
        self.status.append({"id": self.number("status-" + category),
                            "operator": "aclnnMseLossBackward", "attrs": {"reduction": reduction},
                            "inputs": inputs, "output": out, "expected_status": status,
                            "tags": [category], **extra})

    def write(self):
        for name, rows in (("values", self.values), ("status", self.status)):
            with open(HERE / f"aclnnMseLossBackward.{name}.jsonl", "w", encoding="utf-8") as file:
                for row in rows:
                    file.write(json.dumps(row, separators=(",", ":")) + "\n")


def make_values(w):
    for dtype, out, reduction in itertools.product(DTYPES, DTYPES, (0, 1, 2)):
        w.value("dtype", [described(dtype, (6, 5))] * 3, described(out, (6, 5)), reduction)
    for shapes in (((), (7,), (7,)), ((4, 1), (1, 5), (4, 5)), ((3, 4, 5), (5,), (4, 1)),
                   ((2, 1, 3), (1, 4, 1), (1,)), ((1,), (8, 1), (1, 9)), ((), (), ()),
                   ((2, 3), (), (3,))):
        full = np.broadcast_shapes(*shapes)
        for dtype, reduction in itertools.product(DTYPES, (0, 1)):
            w.value("broadcast", [described(dtype, s) for s in shapes], described(dtype, full),
                    reduction)
    for size in (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 255, 257, 1023, 1025, 4097):
        w.value("size", [described(DTYPES[size % 3], (size,))] * 3,
                described(DTYPES[size % 3], (size,)), 1)
    for rank in range(9):
        shape = (2, 1, 3, 2, 1, 2, 2, 3)[:rank]
        w.value("rank", [described("FLOAT", shape)] * 3, described("FLOAT", shape), 2)
    for dtype in DTYPES:
        transposed = described(dtype, (5, 6), (1, 5), 0, (6, 5))
        sliced = described(dtype, (5, 6), (14, 2), 3, (5, 14))
        repeated = described(dtype, (5, 6), (0, 1), 2, (8,))
        plain = described(dtype, (5, 6))
        for tensors, out in (((transposed, plain, plain), plain), ((plain, sliced, plain), plain),
                             ((plain, plain, transposed), plain), ((plain, plain, plain), sliced),
                             ((plain, plain, plain), transposed),
                             ((sliced, transposed, sliced), transposed)):
            w.value("layout", tensors, out, 1)
        w.value("layout-broadcast", (repeated, plain, plain), plain, 0,
                values=[random.normal(size=6), random.normal(size=(5, 6)),
                        random.normal(size=(5, 6))])
    inf, nan = np.inf, np.nan
    for grad, own, target in ((3, inf, 1), (3, inf, inf), (3, -inf, inf), (0, inf, 1), (3, nan, 1),
                              (3, 1, nan), (nan, 1, 2), (inf, 1, 2), (inf, 2, 2), (1, 2**-149, 0),
                              (3, -0.0, 0.0), (1, 3e38, -3e38), (2.0**-140, 2.0**-9, 0)):
        w.value("special", [described("FLOAT", (3,))] * 3, described("FLOAT", (3,)), 0,
                values=[grad, own, target])
    w.value("special", [described("FLOAT16", (2,))] * 3, described("FLOAT16", (2,)), 0,
            values=[300, 200, -200], tags=("inf-output",))
    w.value("special", [described("FLOAT16", (40000,))] * 3, described("FLOAT16", (40000,)), 1,
            values=[300, 200, -200], tags=("wide-intermediate",))
    for shape in ((0,), (3, 0), (0, 2, 3)):
        w.value("empty", [described("FLOAT", shape)] * 3, described("FLOAT", shape), 1)
    w.value("large", [described("FLOAT", ()), described("FLOAT", (130, 257)),
                      described("FLOAT", (257,))], described("FLOAT", (130, 257)), 1)


def make_status(w):
    plain = described("FLOAT", (6, 8))
    three = [plain] * 3
    for missing in range(3):
        w.of_status("null", [None if i == missing else plain for i in range(3)], plain, 161001)
    w.of_status("null", three, None, 161001)
    for missing in ("workspaceSize", "executor"):
        w.of_status("null-parameter", three, plain, 161001, null_params=[missing])
    w.of_status("null-first", [None, described("INT32", (6, 8)), plain], plain, 161001, 9)
    for dtype in DTYPES:
        for other in DTYPES:
            tensors = [described(dtype, (6, 8))] * 3
            w.of_status("dtype", tensors, described(other, (6, 8)), 0)
            if other == dtype:
                continue
            for place in range(3):
                mixed = list(tensors)
                mixed[place] = described(other, (6, 8))
                w.of_status("dtype", mixed, described(dtype, (6, 8)), 161002)
    for dtype in ("DOUBLE", "INT8", "INT32", "INT64", "UINT8", "BOOL", "COMPLEX64"):
        w.of_status("dtype", [described(dtype, (6, 8))] * 3, plain, 161002)
        w.of_status("dtype", three, described(dtype, (6, 8)), 161002)
    for reduction, status in ((-1, 161002), (0, 0), (1, 0), (2, 0), (3, 161002),
                              (2**62, 161002), (-(2**63), 161002)):
        w.of_status("reduction", three, plain, status, reduction)
    for shapes, status in ((((6, 7), (6, 8), (6, 8)), 161002), (((6, 8), (5, 8), (6, 8)), 161002),
                           (((6, 8), (6, 8), (2, 8)), 161002), (((8,), (6, 1), (1,)), 0),
                           (((), (), (6, 8)), 0), (((2, 6, 8), (6, 8), (6, 8)), 161002)):
        w.of_status("broadcast", [described("FLOAT", s) for s in shapes], plain, status)
    w.of_status("grad-larger", [described("FLOAT", (2, 6, 8)), plain, plain],
                described("FLOAT", (2, 6, 8)), 0)
    for shape in ((6, 7), (8, 6), (48,), (1, 6, 8), ()):
        w.of_status("out-shape", three, described("FLOAT", shape), 161002)
    nine = (1,) * 9
    for place in range(3):
        tensors = list(three)
        tensors[place] = described("FLOAT", nine)
        w.of_status("rank", tensors, plain, 161002)
    w.of_status("rank", [described("FLOAT", nine)] * 3, described("FLOAT", nine), 161002)
    w.of_status("rank", [described("FLOAT", (1,) * 8)] * 3, described("FLOAT", (1,) * 8), 0)
    for shape in ((0,), (3, 0, 2)):
        empty = [described("FLOAT", shape)] * 3
        w.of_status("empty", empty, described("FLOAT", shape), 0, 1, expected_workspace=0)
        w.of_status("empty-checked", empty, described("FLOAT", shape), 161002, 3)


writer = Writer()
make_values(writer)
make_status(writer)
writer.write()
print(len(writer.values), "value cases,", len(writer.status), "status cases")
