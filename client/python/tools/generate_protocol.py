"""Writes the package's part of the wire protocol (proto/): opserve/protocol.binpb, and
opserve/_data_type.py, its element types, from the rows of proto/dtypes/table.inc.

usage: generate_protocol.py [--check]

Run it after a change of proto/. Needs protoc. --check writes nothing and exits with 1
if a file is out of date.
"""

import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parents[2] / "proto"
PACKAGE = HERE.parent / "opserve"
ROW = "OPSERVE_DTYPE("

HEADER = '''"""Element types: the wire's numbers beside numpy's dtypes and DLPack's.

Written by tools/generate_protocol.py from proto/dtypes/table.inc; not to be edited.
"""

from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np


class DataType(enum.IntEnum):
    """Element types of the wire, by their numbers there."""

'''

PROPERTIES = """
    @property
    def itemsize(self) -> int:
        return NUMPY[self].itemsize

    @property
    def numpy(self) -> np.dtype[Any]:
        return NUMPY[self]

"""

NUMPY = """}
# Types that numpy lacks are those of ml_dtypes.
NUMPY: dict[DataType, np.dtype[Any]] = {
    dtype: np.dtype(getattr(ml_dtypes, name, name)) for dtype, name in NAMES.items()
}
"""


def compile_protocol() -> bytes:
    """All of opserve.v1 and its imports, as a serialised FileDescriptorSet."""
    files = sorted(
        str(path.relative_to(PROTO)) for path in PROTO.glob("opserve/v1/*.proto")
    )
    with tempfile.NamedTemporaryFile() as output:
        subprocess.run(
            ["protoc", f"-I{PROTO}", "--include_imports", f"-o{output.name}", *files],
            check=True,
        )
        return pathlib.Path(output.name).read_bytes()


def numbers(protocol: bytes) -> dict[str, int]:
    """The wire's number of each element type, by its name there."""
    for file in descriptor_pb2.FileDescriptorSet.FromString(protocol).file:
        for enum in file.enum_type:
            if (file.package, enum.name) == ("opserve.v1", "DataType"):
                return {value.name: value.number for value in enum.value}
    raise LookupError("the protocol has no DataType")


def rows() -> list[list[str]]:
    """The columns of each element type, without quotes."""
    text = (PROTO / "dtypes" / "table.inc").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith(ROW)]
    return [
        [column.strip().strip('"') for column in line[len(ROW) : -1].split(",")]
        for line in lines
    ]


def element_types(protocol: bytes) -> bytes:
    """The module of the element types."""
    number_of = numbers(protocol)
    members, names, dlpack = [], [], []
    for name, size, _, _, _, _, code, python_name, *_ in rows():
        members.append(f"    {name} = {number_of[f'DATA_TYPE_{name}']}\n")
        names.append(f'    DataType.{name}: "{python_name}",\n')
        dlpack.append(f"    ({code}, {8 * int(size)}): DataType.{name},\n")
    parts = [HEADER, *members, PROPERTIES]
    parts += ["\n# In numpy, ml_dtypes and torch.\nNAMES = {\n", *names, NUMPY]
    parts += ["# By code and bits.\nDLPACK = {\n", *dlpack, "}\n"]
    return "".join(parts).encode()


def main() -> int:
    protocol = compile_protocol()
    files = {
        PACKAGE / "protocol.binpb": protocol,
        PACKAGE / "_data_type.py": element_types(protocol),
    }
    stale = [
        path
        for path, current in files.items()
        if not path.exists() or path.read_bytes() != current
    ]
    if "--check" not in sys.argv[1:]:
        for path in stale:
            path.write_bytes(files[path])
        return 0
    for path in stale:
        print(f"{path} is not current; run {__file__}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
