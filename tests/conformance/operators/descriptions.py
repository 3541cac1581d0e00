"""The operators that the catalogue describes, for whatever is made from them. Needs protoc and Python's protobuf."""

import pathlib
import subprocess

from google.protobuf import descriptor_pb2, descriptor_pool, text_format

try:
    from google.protobuf.message_factory import GetMessageClass
except ImportError:  # before protobuf 4.22
    from google.protobuf.message_factory import MessageFactory

    def GetMessageClass(descriptor):
        return MessageFactory().GetPrototype(descriptor)


ROOT = pathlib.Path(__file__).resolve().parents[3]
CATALOG = ROOT / "ops/catalog"


def read():
    """Pairs of the file and an operator, in the catalogue's order, and the class of arguments with its enumerators."""
    binary = subprocess.run(
        ["protoc", f"-I{CATALOG}", "--descriptor_set_out=/dev/stdout", "description.proto"],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(binary).file:
        pool.Add(file)
    message = lambda name: GetMessageClass(pool.FindMessageTypeByName(f"opserve.description.{name}"))
    found = []
    for path in sorted(CATALOG.glob("*.textproto")):
        text = path.read_text(encoding="utf-8")
        found += [(path, operator) for operator in text_format.Parse(text, message("Operators")()).operator]
    return found, message("Argument")
