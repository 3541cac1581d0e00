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


def messages(directory, file, package):
    """Gives the classes of a .proto file's messages by name."""
    command = ["protoc", f"-I{directory}", "--include_imports", "--descriptor_set_out=/dev/stdout", file]
    binary = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    pool = descriptor_pool.DescriptorPool()
    for one in descriptor_pb2.FileDescriptorSet.FromString(binary).file:
        pool.Add(one)
    return lambda name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))


def read():
    """Pairs of the file and an operator, in the catalogue's order, and the class of arguments with its enumerators."""
    message = messages(CATALOG, "description.proto", "opserve.description")
    found = []
    for path in sorted(CATALOG.glob("*.textproto")):
        text = path.read_text(encoding="utf-8")
        found += [(path, operator) for operator in text_format.Parse(text, message("Operators")()).operator]
    return found, message("Argument")
