"""Writes opserve/protocol.binpb: the wire protocol (proto/) as the package carries it.

usage: generate_protocol.py [--check]

Run it after a change of proto/. Needs protoc. --check writes nothing and exits with 1
if the file is not what it would write.
"""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parents[2] / "proto"
TARGET = HERE.parent / "opserve" / "protocol.binpb"


def compile_protocol() -> bytes:
    """All of opserve.v1 and what it imports, as a serialised FileDescriptorSet."""
    files = sorted(
        str(path.relative_to(PROTO)) for path in PROTO.glob("opserve/v1/*.proto")
    )
    with tempfile.NamedTemporaryFile() as output:
        subprocess.run(
            ["protoc", f"-I{PROTO}", "--include_imports", f"-o{output.name}", *files],
            check=True,
        )
        return pathlib.Path(output.name).read_bytes()


def main() -> int:
    current = compile_protocol()
    if "--check" not in sys.argv[1:]:
        TARGET.write_bytes(current)
        return 0
    if TARGET.read_bytes() == current:
        return 0
    print(f"{TARGET} is not current; run {__file__}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
