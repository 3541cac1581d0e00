"""Calls that are sent, and whose answers are waited for later."""

import gc
import weakref

import grpc
import opserve
import opserve.client
import pytest
from integration.await_true import await_true
from opserve import _one_batch, _wire

# Fits in the connection's buffers, or does not.
SIZES = {"small": 0, "large": 1 << 20}


@pytest.fixture(params=["one operation", "gRPC's own"], autouse=True)
def way(request, client, monkeypatch):
    """Calls are made in both ways, whatever the version of gRPC."""
    if request.param == "gRPC's own":
        monkeypatch.setattr(opserve.client, "one_batch", lambda method: method)
    monkeypatch.setattr(client, "_methods", {})  # made anew
    return request.param


def test_it_is_known_how_this_version_of_grpc_makes_calls_of_one_operation(client, way):
    made = client._method(_wire.GET_SERVER_STATUS)
    assert isinstance(made, _one_batch._Method) == (way == "one operation")


def test_another_channel_is_left_as_it_is():
    with grpc.insecure_channel("unix:/nowhere") as channel:
        method = channel.unary_stream(_wire.GET_SERVER_STATUS)
        assert _one_batch.one_batch(method) is method


def test_other_parameters_of_grpcs_are_no_fault(client, way, monkeypatch):
    made = client._method(_wire.GET_SERVER_STATUS)
    if way == "one operation":
        monkeypatch.setattr(made, "_call", lambda one_more: None)
    sent = client._send(_wire.GET_SERVER_STATUS, b"", 60)
    assert _wire.GetServerStatusResponse.FromString(sent.result()).version


def test_an_error_has_code_message_and_details(client):
    handle = _wire.ReleaseProgramsRequest(handles=[b"x"])  # another message
    sent = client._send(_wire.EXECUTE, handle.SerializeToString(), 60)
    with pytest.raises(opserve.InvalidArgumentError) as caught:
        sent.result()
    expected = opserve.InvalidArgumentError
    with pytest.raises(expected) as waited:
        client._call(_wire.EXECUTE, handle.SerializeToString(), 60)
    assert caught.value.message == waited.value.message
    assert caught.value.reason == waited.value.reason


def test_a_deadline_ends_the_call(client):
    sent = client._send(_wire.GET_SERVER_STATUS, b"", -1)  # it has passed
    sent.wait()
    assert isinstance(sent._failure, opserve.DeadlineExceededError)


def send(client, size):
    """Asks for the status, in a message that also has so many bytes of a field that nobody knows."""
    length = [size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127]
    message = bytes([0b11111010, 0b01111111, *length]) + bytes(size) if size else b""
    return client._send(_wire.GET_SERVER_STATUS, message, 60)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_an_answer_is_read_though_nobody_waits_for_it(client, size):
    sent = send(client, size)
    await_true(lambda: sent.is_over, "the answer is read")
    assert _wire.GetServerStatusResponse.FromString(sent.result()).devices


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_the_answer_comes_once_to_the_one_that_asks(client, size):
    for _ in range(50):
        sent = send(client, size)
        assert _wire.GetServerStatusResponse.FromString(sent.result()).devices
        sent.wait()


def test_a_call_lives_no_longer_than_its_caller_needs_it(client):
    sent = send(client, 0)
    there = weakref.ref(sent)
    del sent
    gc.collect()
    assert there() is None


def test_answers_of_many_calls_are_read(client):
    calls = [send(client, size) for size in (0, 1 << 16) * 20]
    await_true(lambda: all(one.is_over for one in calls), "all answers are read")
    for one in calls:
        one.result()
