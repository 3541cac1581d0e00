"""Calls of the host CANN's functions from Python, by the operators' descriptions."""

import ctypes
import os
import pathlib

import numpy as np

DTYPES = {
    "FLOAT": 0,
    "FLOAT16": 1,
    "INT8": 2,
    "INT32": 3,
    "UINT8": 4,
    "INT16": 6,
    "INT64": 9,
    "DOUBLE": 11,
    "BOOL": 12,
    "BF16": 27,
}
SCALARS = {
    "FLOAT": ctypes.c_float,
    "DOUBLE": ctypes.c_double,
    "INT64": ctypes.c_int64,
    "INT32": ctypes.c_int32,
    "BOOL": ctypes.c_bool,
}
FORMAT_ND = 2
TO_DEVICE, FROM_DEVICE = 1, 2


class Failed(RuntimeError):
    """A call of the ABI that gave another status than 0."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Library:
    """The ABI, with one device that has one core, and a stream of it."""

    def __init__(self, build):
        os.environ.update(OPSERVE_HOST_DEVICES="1", OPSERVE_HOST_THREADS="1")
        directory = pathlib.Path(build) / "lib/opserve/host-cann"
        names = ("ascendcl", "nnopbase", "opapi", "cust_opapi")
        self._libraries = [ctypes.CDLL(directory / f"lib{name}.so", ctypes.RTLD_GLOBAL) for name in names]
        self._functions = {}
        self.call("aclInit", None)
        self.call("aclrtSetDevice", ctypes.c_int32(0))
        self.stream = ctypes.c_void_p()
        self.call("aclrtCreateStream", ctypes.byref(self.stream))

    def function(self, name, result=ctypes.c_int32):
        if name not in self._functions:
            found = next(library for library in self._libraries if hasattr(library, name))
            self._functions[name] = getattr(found, name)
            self._functions[name].restype = result
        return self._functions[name]

    def call(self, name, *arguments):
        status = self.function(name)(*arguments)
        if status != 0:
            text = self.function("aclGetRecentErrMsg", ctypes.c_char_p)()
            raise Failed(status, f"{name}: {status}: {(text or b'').decode()}")

    def create(self, name, *arguments):
        handle = self.function(name, ctypes.c_void_p)(*arguments)
        if not handle:
            raise RuntimeError(f"{name} gives no handle")
        return ctypes.c_void_p(handle)

    def synchronize(self):
        self.call("aclrtSynchronizeStream", self.stream)


class Buffer:
    """A tensor in device memory: a view of a storage, whose elements are those of `storage`."""

    def __init__(self, library, dtype, storage, shape=None, strides=None, offset=0):
        """Left out: a contiguous tensor of the storage's shape."""
        self.library, self.dtype, self.like = library, dtype, storage
        self.address = ctypes.c_void_p()
        library.call("aclrtMalloc", ctypes.byref(self.address), ctypes.c_size_t(max(storage.nbytes, 64)), 0)
        self.write(storage)
        view = storage.shape if shape is None else shape
        whole = storage.shape if strides is not None or shape is None else shape
        self.handle = library.create(
            "aclCreateTensor",
            integers(view),
            ctypes.c_uint64(len(view)),
            DTYPES[dtype],
            None if strides is None else integers(strides),
            ctypes.c_int64(offset),
            FORMAT_ND,
            integers(whole),
            ctypes.c_uint64(len(whole)),
            self.address,
        )

    def write(self, array):
        self._copy(self.address, ctypes.c_void_p(array.ctypes.data), TO_DEVICE)

    def read(self):
        array = np.empty_like(self.like)
        self._copy(ctypes.c_void_p(array.ctypes.data), self.address, FROM_DEVICE)
        return array

    def _copy(self, to, source, direction):
        size = ctypes.c_size_t(self.like.nbytes)
        if size.value:
            self.library.call("aclrtMemcpy", to, size, source, size, direction)

    def free(self):
        self.library.call("aclDestroyTensor", self.handle)
        self.library.call("aclrtFree", self.address)


def integers(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


class Call:
    """One prepared call of an operator: stage one is done, `launch` queues stage two, as often as wanted."""

    def __init__(self, library, operator, tensors, attributes):
        """`tensors`: by argument, a Buffer or a list of them, inputs and outputs; `attributes` as in cases."""
        self._library = library
        self._kept = []
        arguments = [self._argument(operator, a, tensors, attributes) for a in operator.description.argument]
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        name = operator.description.function
        library.call(f"{name}GetWorkspaceSize", *arguments, ctypes.byref(size), ctypes.byref(executor))
        library.call("aclSetAclOpExecutorRepeatable", executor)
        self._workspace = ctypes.c_void_p()
        if size.value:
            library.call("aclrtMalloc", ctypes.byref(self._workspace), size, 0)
        self._executor = executor
        self._second = library.function(name)
        self._arguments = (self._workspace, size, executor, library.stream)

    def launch(self):
        if self._second(*self._arguments) != 0:
            raise RuntimeError("stage two fails")

    def free(self):
        self._library.call("aclDestroyAclOpExecutor", self._executor)
        if self._workspace:
            self._library.call("aclrtFree", self._workspace)

    def _argument(self, operator, argument, tensors, attributes):
        library, kinds = self._library, operator.kinds
        if argument.kind == kinds.TENSOR:
            return tensors[argument.name].handle if argument.name in tensors else None
        if argument.kind == kinds.TENSOR_LIST:
            if argument.name not in tensors:
                return None
            handles = [buffer.handle for buffer in tensors[argument.name]]
            array = (ctypes.c_void_p * len(handles))(*handles)
            return self._create("aclCreateTensorList", array, ctypes.c_uint64(len(handles)))
        if argument.role == kinds.MASK:
            masked = sorted((o for o in operator.outputs if o.HasField("mask")), key=lambda o: o.mask)
            array = (ctypes.c_bool * len(masked))(*[o.name in tensors for o in masked])
            return self._create("aclCreateBoolArray", array, ctypes.c_uint64(len(masked)))
        value = operator.python_value(argument, attributes.get(argument.name))
        if value is None:
            return None
        if argument.kind == kinds.SCALAR:
            return self._scalar(self._dtype_of(argument, value, attributes), value)
        if argument.kind == kinds.SCALAR_LIST:
            array = (ctypes.c_void_p * len(value))(*[self._scalar("FLOAT", v) for v in value])
            return self._create("aclCreateScalarList", array, ctypes.c_uint64(len(value)))
        lists = {
            kinds.INT_ARRAY: ("aclCreateIntArray", ctypes.c_int64),
            kinds.BOOL_ARRAY: ("aclCreateBoolArray", ctypes.c_bool),
            kinds.FLOAT_ARRAY: ("aclCreateFloatArray", ctypes.c_float),
        }
        if argument.kind in lists:
            create, element = lists[argument.kind]
            return self._create(create, (element * max(len(value), 1))(*value), ctypes.c_uint64(len(value)))
        if argument.kind == kinds.TEXT:
            text = ctypes.create_string_buffer(value.encode())
            self._kept.append(text)
            return text
        if argument.kind == kinds.DTYPE:
            return ctypes.c_int32(DTYPES[value])
        plain = {
            kinds.INT64: ctypes.c_int64,
            kinds.UINT64: ctypes.c_uint64,
            kinds.INT32: ctypes.c_int32,
            kinds.INT8: ctypes.c_int8,
            kinds.BOOL: ctypes.c_bool,
            kinds.DOUBLE: ctypes.c_double,
            kinds.FLOAT: ctypes.c_float,
        }
        return plain[argument.kind](value)

    def _dtype_of(self, argument, value, attributes):
        """Of a scalar: the case's, or the description's default."""
        if argument.name in attributes:
            return attributes[argument.name]["scalar"][0]
        words = argument.default.split()
        return words[0] if len(words) > 1 else "INT64" if isinstance(value, int) else "FLOAT"

    def _scalar(self, dtype, value):
        held = SCALARS[dtype](value)
        self._kept.append(held)
        return self._create("aclCreateScalar", ctypes.byref(held), DTYPES[dtype])

    def _create(self, name, *arguments):
        handle = self._library.create(name, *arguments)
        self._kept.append(arguments)
        return handle
