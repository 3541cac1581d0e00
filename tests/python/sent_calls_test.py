"""Calls that are sent, and whose answers are waited for later."""

import gc
import weakref

import pytest
from integration.await_true import await_true
from opserve import _wire

# Fits in the connection's buffers, or does not.
SIZES = {"small": 0, "large": 1 << 20}


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
