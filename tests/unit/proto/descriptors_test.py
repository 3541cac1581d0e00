#!/usr/bin/python3
"""The wire's descriptors are those stored in tests/data/wire, with additions only: usage descriptors_test.py ROOT."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(sys.argv.pop())
STORED = ROOT / "tests/data/wire/descriptors.binpb"

Set = descriptor_pb2.FileDescriptorSet
Field = descriptor_pb2.FieldDescriptorProto


def todays():
    protos = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").rglob("*.proto"))
    with tempfile.NamedTemporaryFile() as output:
        subprocess.run(["protoc", f"-I{ROOT / 'proto'}", "--include_imports", f"-o{output.name}", *protos],
                       check=True)
        return Set.FromString(output.read())


def stored():
    return Set.FromString(STORED.read_bytes())


def field_parts(message, field):
    in_oneof = field.HasField("oneof_index") and not field.proto3_optional
    return {
        "number": field.number,
        "type": Field.Type.Name(field.type) + field.type_name,
        "label": Field.Label.Name(field.label),
        "json name": field.json_name,
        "oneof": message.oneof_decl[field.oneof_index].name if in_oneof else None,
        "optional": field.proto3_optional,
        "default": field.default_value,
        "packed": field.options.packed if field.options.HasField("packed") else None,
    }


def enum_parts(scope, enum):
    name = f"{scope}.{enum.name}"
    yield f"enum {name}", {}
    for value in enum.value:
        yield f"value {name}.{value.name}", {"number": value.number}


def message_parts(scope, message):
    name = f"{scope}.{message.name}"
    yield f"message {name}", {"map entry": message.options.map_entry}
    for field in message.field:
        yield f"field {name}.{field.name}", field_parts(message, field)
    for enum in message.enum_type:
        yield from enum_parts(name, enum)
    for nested in message.nested_type:
        yield from message_parts(name, nested)


def parts(files):
    """All that a peer relies on: the kind and full name of each thing, and its properties that must not change."""
    for file in files.file:
        for message in file.message_type:
            yield from message_parts(file.package, message)
        for enum in file.enum_type:
            yield from enum_parts(file.package, enum)
        for service in file.service:
            name = f"{file.package}.{service.name}"
            yield f"service {name}", {}
            for method in service.method:
                yield f"method {name}.{method.name}", {
                    "request": method.input_type, "answer": method.output_type,
                    "client streaming": method.client_streaming,
                    "server streaming": method.server_streaming}


def breaks(before, after):
    """A line for each thing that is gone or has another property."""
    now = dict(parts(after))
    for name, properties in parts(before):
        if name not in now:
            yield f"{name} is gone"
            continue
        for kind, value in properties.items():
            if now[name][kind] != value:
                yield f"{name}: {kind} was {value}, is {now[name][kind]}"


def named(items, name):
    return next(item for item in items if item.name == name)


def of_file(files, name):
    return named(files.file, f"opserve/v1/{name}.proto")


def message_of(files, file, *names):
    scope = of_file(files, file).message_type
    for name in names:
        message = named(scope, name)
        scope = message.nested_type
    return message


def field_of(files, file, *names):
    return named(message_of(files, file, *names[:-1]).field, names[-1])


def method_of(files, name):
    return named(of_file(files, "operator_service").service[0].method, name)


def remove(items, name):
    items.remove(named(items, name))


def change(item, **values):
    for name, value in values.items():
        setattr(item, name, value)


def move_into_oneof(files):
    field_of(files, "tensor", "Tensor", "offset").oneof_index = 0


def add_everything(files):
    """One more of each kind."""
    tensor = message_of(files, "tensor", "Tensor")
    tensor.field.add(name="more", json_name="more", number=100, type=Field.TYPE_STRING,
                     label=Field.LABEL_OPTIONAL)
    tensor.field.add(name="elsewhere", json_name="elsewhere", number=101, type=Field.TYPE_BYTES,
                     label=Field.LABEL_OPTIONAL, oneof_index=0)
    tensor.nested_type.add(name="More")
    file = of_file(files, "tensor")
    named(file.enum_type, "DataType").value.add(name="DATA_TYPE_MORE", number=100)
    file.message_type.add(name="More")
    file.service.add(name="MoreService")
    of_file(files, "operator_service").service[0].method.add(
        name="More", input_type=".opserve.v1.More", output_type=".opserve.v1.More")
    files.file.add(name="opserve/v1/more.proto", package="opserve.v1").message_type.add(name="Another")


# A change of a copy, and the lines that breaks() has for it; None: some.
CHANGES = {
    "a removed field": (
        lambda files: remove(message_of(files, "tensor", "Tensor").field, "offset"),
        ["field opserve.v1.Tensor.offset is gone"]),
    "a renamed field": (
        lambda files: change(field_of(files, "tensor", "Tensor", "offset"), name="first"),
        ["field opserve.v1.Tensor.offset is gone"]),
    "a changed number": (
        lambda files: change(field_of(files, "tensor", "Tensor", "offset"), number=44),
        ["field opserve.v1.Tensor.offset: number was 4, is 44"]),
    "a changed type": (
        lambda files: change(field_of(files, "tensor", "Tensor", "offset"), type=Field.TYPE_SINT64),
        ["field opserve.v1.Tensor.offset: type was TYPE_INT64, is TYPE_SINT64"]),
    "another message as type": (
        lambda files: change(field_of(files, "operator_service", "NamedTensor", "tensor"),
                             type_name=".opserve.v1.Result"),
        ["field opserve.v1.NamedTensor.tensor: type was TYPE_MESSAGE.opserve.v1.Tensor, "
         "is TYPE_MESSAGE.opserve.v1.Result"]),
    "a changed label": (
        lambda files: change(field_of(files, "tensor", "Tensor", "shape"), label=Field.LABEL_OPTIONAL),
        ["field opserve.v1.Tensor.shape: label was LABEL_REPEATED, is LABEL_OPTIONAL"]),
    "a changed JSON name": (
        lambda files: change(field_of(files, "operator_service", "ExecuteRequest", "want_receipt"),
                             json_name="want_receipt"),
        ["field opserve.v1.ExecuteRequest.want_receipt: json name was wantReceipt, is want_receipt"]),
    "a field moved into a oneof": (
        move_into_oneof, ["field opserve.v1.Tensor.offset: oneof was None, is storage"]),
    "a field whose presence is no longer told": (
        lambda files: change(field_of(files, "tensor_service", "UploadHeader", "device"),
                             proto3_optional=False),
        ["field opserve.v1.UploadHeader.device: oneof was None, is _device",
         "field opserve.v1.UploadHeader.device: optional was True, is False"]),
    "a field no longer packed": (
        lambda files: change(field_of(files, "tensor", "Tensor", "shape").options, packed=False),
        ["field opserve.v1.Tensor.shape: packed was None, is False"]),
    "a removed message": (
        lambda files: remove(of_file(files, "operator_service").message_type, "GetServerStatusRequest"),
        ["message opserve.v1.GetServerStatusRequest is gone"]),
    "a renamed enum value": (
        lambda files: change(named(of_file(files, "tensor").enum_type, "DataType").value[3],
                             name="DATA_TYPE_BFLOAT16"),
        ["value opserve.v1.DataType.DATA_TYPE_BF16 is gone"]),
    "a renumbered enum value": (
        lambda files: change(named(of_file(files, "tensor").enum_type, "DataType").value[3], number=27),
        ["value opserve.v1.DataType.DATA_TYPE_BF16: number was 3, is 27"]),
    "a removed enum value of a message": (
        lambda files: remove(message_of(files, "operator_service", "DeviceStatus").enum_type[0].value,
                             "STATE_FAILED"),
        ["value opserve.v1.DeviceStatus.State.STATE_FAILED is gone"]),
    "a removed method": (
        lambda files: remove(of_file(files, "operator_service").service[0].method, "Execute"),
        ["method opserve.v1.OperatorService.Execute is gone"]),
    "another request of a method": (
        lambda files: change(method_of(files, "Execute"), input_type=".opserve.v1.Invocation"),
        ["method opserve.v1.OperatorService.Execute: request was .opserve.v1.ExecuteRequest, "
         "is .opserve.v1.Invocation"]),
    "a method that no longer streams": (
        lambda files: change(method_of(files, "ExecuteStream"), server_streaming=False),
        ["method opserve.v1.OperatorService.ExecuteStream: server streaming was True, is False"]),
    "another package": (
        lambda files: change(of_file(files, "shared_memory"), package="opserve.v2"), None),
    "one more of each kind": (add_everything, []),
    "nothing": (lambda files: None, []),
}


class DescriptorsTest(unittest.TestCase):

    def test_what_was_on_the_wire_still_is(self):
        self.assertEqual(list(breaks(stored(), todays())), [])

    def test_every_service_is_stored(self):
        services = {name for name, _ in parts(stored()) if name.startswith("service ")}
        self.assertLessEqual({"service opserve.v1.OperatorService", "service opserve.v1.TensorService",
                              "service opserve.v1.AdminService", "service grpc.health.v1.Health",
                              "service inference.GRPCInferenceService"}, services)

    def test_changes_are_told_and_additions_are_not(self):
        for title, (make, expected) in CHANGES.items():
            with self.subTest(title):
                files = stored()
                make(files)
                found = list(breaks(stored(), files))
                if expected is None:
                    self.assertTrue(found)
                else:
                    self.assertEqual(found, expected)


if __name__ == "__main__":
    unittest.main()
