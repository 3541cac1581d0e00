"""Elements of tensors, from float64 and int64 to what lies in memory."""

import base64
import zlib

import numpy as np
import torch

FLOATS = ["FLOAT", "FLOAT16", "BF16"]
INTEGERS = ["INT8", "UINT8", "INT16", "INT32", "INT64"]
DTYPES = FLOATS + ["DOUBLE"] + INTEGERS + ["BOOL"]
TORCH = dict(
    zip(
        DTYPES,
        [
            torch.float32,
            torch.float16,
            torch.bfloat16,
            torch.float64,
            torch.int8,
            torch.uint8,
            torch.int16,
            torch.int32,
            torch.int64,
            torch.bool,
        ],
    )
)
NAME = {dtype: name for name, dtype in TORCH.items()}
NUMPY = dict(zip(DTYPES, ["<f4", "<f2", "<u2", "<f8", "i1", "u1", "<i2", "<i4", "<i8", "u1"]))


def is_floating(dtype):
    return dtype in FLOATS or dtype == "DOUBLE"


def accepted(argument):
    """The dtypes that it may have."""
    words = argument.dtypes.split()
    return [dtype for word in words for dtype in {"floats": FLOATS, "integers": INTEGERS}.get(word, [word])]


def bfloat16_bits(values):
    """Of float64 values, each rounded once."""
    nearest = values.astype(np.float32)
    bits = nearest.view(np.uint32).copy()
    wide = nearest.astype(np.float64)
    inexact = (wide != values) & np.isfinite(values)
    bits[inexact & (np.abs(wide) > np.abs(values))] -= 1
    bits[inexact] |= 1
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def encode(values, dtype):
    """A float64, int64 or bool tensor as an array of `dtype`: rounded once, or wrapped."""
    array = values.detach().contiguous().numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == "BOOL":
            return (array != 0).astype("u1")
        if dtype == "BF16":
            return bfloat16_bits(array.astype(np.float64).reshape(-1)).reshape(array.shape)
        if not is_floating(dtype) and array.dtype.kind == "f":
            limits = np.iinfo(NUMPY[dtype])
            whole = np.where(np.isnan(array), 0, np.trunc(array))
            inside = (whole > limits.min) & (whole < limits.max)
            return np.where(
                inside,
                np.where(inside, whole, 0).astype(NUMPY[dtype]),
                np.where(whole >= limits.max, limits.max, limits.min),
            ).astype(NUMPY[dtype])
        return array.astype(NUMPY[dtype])


def decode(array, dtype):
    """What `encode` gave, as a float64 or int64 tensor."""
    if dtype == "BF16":
        wide = (array.reshape(-1).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return torch.from_numpy(wide.reshape(array.shape))
    if is_floating(dtype):
        return torch.from_numpy(np.asarray(array.astype(np.float64)))
    return torch.from_numpy(np.asarray(array.astype(np.int64)))


def rounded(number, dtype):
    """What `dtype` makes of it."""
    if not is_floating(dtype):
        return number
    return float(decode(encode(torch.tensor(float(number), dtype=torch.float64), dtype), dtype))


class Tensor:
    """An input: `array` has its elements as encode gives them, whatever lies between them in memory."""

    def __init__(self, dtype, array, layout="plain"):
        self.dtype = dtype
        self.array = np.ascontiguousarray(array).reshape(np.shape(array))
        self.layout = layout

    @property
    def shape(self):
        return list(self.array.shape)

    def values(self):
        return decode(self.array, self.dtype)

    def json(self):
        array, rank = self.array, self.array.ndim
        if self.layout == "plain" or array.size == 0:
            return [self.dtype, self.shape, text(array)]
        if self.layout == "transposed" and rank >= 2:
            order = list(range(rank))[::-1]
            storage = np.ascontiguousarray(array.transpose(order))
            strides = [s // array.itemsize for s in storage.transpose(order).strides]
            return [self.dtype, self.shape, text(storage), strides, 0]
        if self.layout == "repeated" and rank >= 1:  # the caller has made all rows equal
            strides = [0] + [s // array.itemsize for s in array.strides[1:]]
            return [self.dtype, self.shape, text(array[0]), strides, 0]
        # Gaps between elements, and some before them.
        step, offset = 2, 3
        strides = [s // array.itemsize * step for s in array.strides]
        storage = np.full(offset + array.size * step, 1, array.dtype)
        storage[offset::step] = array.reshape(-1)
        return [self.dtype, self.shape, text(storage), strides, offset]


def text(array):
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def special_values(dtype):
    if dtype == "BOOL":
        return [0, 1]
    if not is_floating(dtype):
        limits = np.iinfo(NUMPY[dtype])
        return sorted(
            {
                limits.min,
                limits.min + 1,
                max(limits.min, -2),
                max(limits.min, -1),
                0,
                1,
                2,
                3,
                limits.max - 1,
                limits.max,
            }
        )
    tiny, least, most = {
        "FLOAT": (2.0**-149, 2.0**-126, 3.4028234663852886e38),
        "FLOAT16": (2.0**-24, 2.0**-14, 65504.0),
        "BF16": (2.0**-133, 2.0**-126, 3.3895313892515355e38),
        "DOUBLE": (5e-324, 2.2250738585072014e-308, 1.7976931348623157e308),
    }[dtype]
    nan, inf = float("nan"), float("inf")
    return [
        nan,
        inf,
        -inf,
        0.0,
        -0.0,
        tiny,
        -tiny,
        3 * tiny,
        least,
        most,
        -most,
        1.0,
        -1.0,
        0.5,
        -2.5,
        3.0,
        -3.0,
        6.0,
        20.5,
        -100.0,
    ]


class Source:
    """Elements of inputs, the same for the same operator in every run."""

    def __init__(self, name):
        self.random = np.random.default_rng(zlib.crc32(name.encode()))

    def elements(self, shape, dtype, domain=None, small=False):
        """`domain`: (least, most), "distinct", or a function of the shape and the generator."""
        size = int(np.prod(shape, dtype=np.int64))
        if callable(domain):
            values = torch.as_tensor(domain(shape, self.random))
            if is_floating(dtype):
                values = values.to(torch.float64)
            return encode(values, dtype)
        if domain == "distinct":
            values = torch.from_numpy(self.random.permutation(size).reshape(shape) - size // 2)
            return encode(values.to(torch.float64) if is_floating(dtype) else values, dtype)
        if dtype == "BOOL":
            return self.random.integers(0, 2, shape).astype("u1")
        if is_floating(dtype):
            values = self.random.uniform(*domain, shape) if domain else self.random.normal(0, 2, shape)
            array = encode(torch.from_numpy(np.asarray(values, np.float64)), dtype)
            return array
        low, high = domain or ((-8, 8) if small else (-100, 100))
        if dtype == "UINT8":
            low = max(low, 0)
        return np.asarray(self.random.integers(int(np.ceil(low)), int(high) + 1, shape)).astype(NUMPY[dtype])


def as_json(inputs):
    return {
        n: (
            {"list": [t.json() for t in v]}
            if isinstance(v, list) and (not v or isinstance(v[0], Tensor))
            else v.json() if isinstance(v, Tensor) else v
        )
        for n, v in inputs.items()
    }
