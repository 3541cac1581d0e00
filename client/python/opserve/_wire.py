"""The messages of the wire protocol.

The package carries the protocol as descriptors (protocol.binpb, written by
tools/generate_protocol.py), and makes the message classes from them. Generated modules would tie
it to one range of protobuf versions, and could clash with those of another package in
protobuf's global pool.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "opserve.v1."


def _load_pool() -> tuple[Any, list[str]]:
    """The pool, and the names of its files."""
    data = (
        importlib.resources.files(__package__).joinpath("protocol.binpb").read_bytes()
    )
    files = descriptor_pb2.FileDescriptorSet.FromString(data).file
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return pool, [file.name for file in files]


_pool, _files = _load_pool()


def _message(name: str) -> Any:
    return _class_of(_pool.FindMessageTypeByName(_PACKAGE + name))


def _class_of(descriptor: Any) -> Any:
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22 and later
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(_pool).GetPrototype(descriptor)


def _classes_within(messages: Any) -> Iterator[Any]:
    for descriptor in messages:
        yield _class_of(descriptor)
        yield from _classes_within(descriptor.nested_types)


# protobuf itself keeps no class: it would make those of messages within others again and again,
# whenever Python has collected them, which takes longer than most requests.
_classes = [
    one
    for file in _files
    for one in _classes_within(_pool.FindFileByName(file).message_types_by_name.values())
]


def enum_names(name: str) -> dict[int, str]:
    """The names of an enum's values, by number."""
    values = _pool.FindEnumTypeByName(_PACKAGE + name).values
    return {value.number: value.name for value in values}


AttributeValue = _message("AttributeValue")
ExecuteRequest = _message("ExecuteRequest")
RequestIdentity = _message("RequestIdentity")
ExecuteResponse = _message("ExecuteResponse")
PreparedCall = _message("PreparedCall")
PrepareRequest = _message("PrepareRequest")
PrepareResponse = _message("PrepareResponse")
ReleaseProgramsRequest = _message("ReleaseProgramsRequest")
Tensor = _message("Tensor")
Receipt = _message("Receipt")
ListOperatorsRequest = _message("ListOperatorsRequest")
ListOperatorsResponse = _message("ListOperatorsResponse")
GetServerStatusRequest = _message("GetServerStatusRequest")
GetServerStatusResponse = _message("GetServerStatusResponse")
UploadRequest = _message("UploadRequest")
UploadResponse = _message("UploadResponse")
DownloadRequest = _message("DownloadRequest")
DownloadResponse = _message("DownloadResponse")
RenewRequest = _message("RenewRequest")
RenewResponse = _message("RenewResponse")
ReleaseRequest = _message("ReleaseRequest")
ReleaseResponse = _message("ReleaseResponse")
SharedMemoryRequest = _message("SharedMemoryRequest")
SharedMemoryResponse = _message("SharedMemoryResponse")
SessionHello = _message("SessionHello")
SessionGoingAway = _message("SessionGoingAway")
StatusDetails = _message("StatusDetails")
ErrorDetail = _message("ErrorDetail")

EXECUTE = "/opserve.v1.OperatorService/Execute"
PREPARE = "/opserve.v1.OperatorService/Prepare"
RELEASE_PROGRAMS = "/opserve.v1.OperatorService/ReleasePrograms"
SESSION = "/opserve.v1.OperatorService/Session"
LIST_OPERATORS = "/opserve.v1.OperatorService/ListOperators"
GET_SERVER_STATUS = "/opserve.v1.OperatorService/GetServerStatus"
UPLOAD = "/opserve.v1.TensorService/Upload"
DOWNLOAD = "/opserve.v1.TensorService/Download"
RENEW = "/opserve.v1.TensorService/Renew"
RELEASE = "/opserve.v1.TensorService/Release"
