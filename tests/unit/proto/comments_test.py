#!/usr/bin/python3
"""Every part of proto/opserve/v1 has a comment: usage comments_test.py ROOT."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(sys.argv.pop())

File = descriptor_pb2.FileDescriptorProto
Message = descriptor_pb2.DescriptorProto
# Numbers of the fields that lead to a part, for SourceCodeInfo.Location.path.
MESSAGES = File.MESSAGE_TYPE_FIELD_NUMBER
ENUMS = File.ENUM_TYPE_FIELD_NUMBER
SERVICES = File.SERVICE_FIELD_NUMBER
FIELDS = Message.FIELD_FIELD_NUMBER
NESTED_MESSAGES = Message.NESTED_TYPE_FIELD_NUMBER
NESTED_ENUMS = Message.ENUM_TYPE_FIELD_NUMBER
VALUES = descriptor_pb2.EnumDescriptorProto.VALUE_FIELD_NUMBER
METHODS = descriptor_pb2.ServiceDescriptorProto.METHOD_FIELD_NUMBER


def compiled(root, files):
    with tempfile.NamedTemporaryFile() as output:
        subprocess.run(["protoc", f"-I{root}", "--include_source_info",
                        f"--descriptor_set_out={output.name}", *map(str, files)], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(output.read()).file


def children(scope, path, items, number):
    """(full name, path, descriptor) of each item."""
    return [(f"{scope}.{item.name}", (*path, number, i), item) for i, item in enumerate(items)]


def enum_parts(scope, path, enums, number):
    for name, place, enum in children(scope, path, enums, number):
        yield name, place
        yield from (part[:2] for part in children(name, place, enum.value, VALUES))


def message_parts(scope, path, messages, number):
    for name, place, message in children(scope, path, messages, number):
        if message.options.map_entry:
            continue
        yield name, place
        yield from (part[:2] for part in children(name, place, message.field, FIELDS))
        yield from enum_parts(name, place, message.enum_type, NESTED_ENUMS)
        yield from message_parts(name, place, message.nested_type, NESTED_MESSAGES)


def parts(file):
    """The full name and the path of each message, field, enum, value, service and method."""
    yield from message_parts(file.package, (), file.message_type, MESSAGES)
    yield from enum_parts(file.package, (), file.enum_type, ENUMS)
    for name, place, service in children(file.package, (), file.service, SERVICES):
        yield name, place
        yield from (part[:2] for part in children(name, place, service.method, METHODS))


def without_comment(files):
    for file in files:
        commented = {tuple(place.path) for place in file.source_code_info.location
                     if (place.leading_comments + place.trailing_comments).strip()}
        yield from (name for name, path in parts(file) if path not in commented)


SAMPLE = """syntax = "proto3";
package sample;
// 1
service S {
  // 2
  rpc Call(M) returns (M);
}
// 3
message M {
  int32 field = 1;  // 4
  // 5
  message Inner {
    oneof choice {
      bytes one = 1;  // 6
    }
    map<string, string> pairs = 2;  // 7
  }
  // 8
  enum Kind {
    NONE = 0;  // 9
  }
}
// 10
enum E {
  ZERO = 0;  // 11
}
"""
# Parts of the sample, in the order of their comments.
NAMES = ["S", "S.Call", "M", "M.field", "M.Inner", "M.Inner.one", "M.Inner.pairs", "M.Kind", "M.Kind.NONE",
         "E", "E.ZERO"]


class CommentsTest(unittest.TestCase):

    def test_every_part_has_a_comment(self):
        files = compiled(ROOT / "proto", sorted((ROOT / "proto/opserve").rglob("*.proto")))
        self.assertGreater(sum(1 for file in files for _ in parts(file)), 400)
        self.assertEqual(list(without_comment(files)), [])

    def test_a_missing_comment_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "sample.proto")
            for number, name in [(0, None), *enumerate(NAMES, start=1)]:
                with self.subTest(name):
                    path.write_text("\n".join(line.removesuffix(f"// {number}")
                                              for line in SAMPLE.splitlines()) + "\n", encoding="utf-8")
                    found = list(without_comment(compiled(directory, [path])))
                    self.assertEqual(found, [] if name is None else [f"sample.{name}"])


if __name__ == "__main__":
    unittest.main()
