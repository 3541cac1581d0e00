"""Calls of operators that are repeated with other contents, which the client makes from the first.

Each result is compared with that of a program of the same operator, which is made anew each time.
"""

import asyncio

import numpy as np
import pytest
import torch

import opserve
from opserve import _frame, _known_requests, _wire

GENERATOR = np.random.default_rng(7)


def numbers(*shape, dtype=np.float32):
    return np.asarray(GENERATOR.integers(1, 100, shape)).astype(dtype)


def anew(client, operator, inputs, attributes=None):
    program = opserve.Program()
    program.invoke(operator, inputs, attributes or {})
    return client.execute(program).outputs


def is_known(client):
    """How many requests the client knows."""
    return len(client._known_requests._known)


@pytest.fixture
def own(daemon):
    with opserve.Client(daemon.target) as made:
        yield made


def check(client, operator, make_inputs, attributes=None):
    """Calls it three times with other contents: the last two requests are made from the first."""
    for _ in range(3):
        inputs = make_inputs()
        seen = client.op(operator, inputs, attributes)
        right = anew(client, operator, inputs, attributes)
        one = not isinstance(right, tuple)
        for got, expected in zip((seen,) if one else seen, (right,) if one else right):
            assert type(got) is type(expected)
            if expected is not None:
                assert got.dtype == expected.dtype
                np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))


CASES = {
    "two inputs": ("Add", lambda: {"self": numbers(3, 4), "other": numbers(4)}),
    "halves": ("Mul", lambda: {"self": numbers(5, dtype=np.float16), "other": numbers(5)}),
    "integers": (
        "Add",
        lambda: {"self": numbers(5, dtype=np.int64), "other": numbers(5, dtype=np.int64)},
    ),
    "truth values": ("LogicalNot", lambda: {"self": numbers(6) > 60}),
    "no axes": ("Add", lambda: {"self": numbers(), "other": numbers(2)}),
    "no elements": ("Add", lambda: {"self": numbers(0, 3), "other": numbers(3)}),
    "several outputs": ("MaxDim", lambda: {"self": numbers(4, 6)}),
    "part of an array": ("Add", lambda: {"self": numbers(8)[2:6], "other": numbers(4)}),
    "part of a torch tensor": ("Neg", lambda: {"self": torch.from_numpy(numbers(8))[2:6]}),
    "torch": (
        "Add",
        lambda: {"self": torch.from_numpy(numbers(4)), "other": torch.from_numpy(numbers(4))},
    ),
    "torch and numpy": ("Add", lambda: {"self": torch.from_numpy(numbers(4)), "other": numbers(4)}),
    "a parameter of torch": (
        "Neg",
        lambda: {"self": torch.nn.Parameter(torch.from_numpy(numbers(4)))},
    ),
}
ATTRIBUTES = {"MaxDim": {"dim": 1, "keepdim": False}}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_requests_that_are_made_anew(own, name):
    operator, make_inputs = CASES[name]
    check(own, operator, make_inputs, ATTRIBUTES.get(operator))
    assert is_known(own) == 1


ANEW = {
    "a transposed matrix": lambda: {"self": numbers(4, 4).T, "other": numbers(4)},
    "elements backwards": lambda: {"self": numbers(4)[::-1], "other": numbers(4)},
    "another byte order": lambda: {"self": numbers(4).astype(">f4"), "other": numbers(4)},
    "a number": lambda: {"self": numbers(4), "other": 2.0},
    "many bytes": lambda: {"self": numbers(1 << 15), "other": numbers(1 << 15)},
}


@pytest.mark.parametrize("name", ANEW)
def test_other_inputs_are_described_anew(own, name):
    check(own, "Add", ANEW[name])
    assert is_known(own) == 0


@pytest.mark.parametrize("first", ["one tensor", "two tensors"])
def test_one_tensor_may_be_two_inputs(own, first):
    if first == "two tensors":
        own.op("Add", {"self": numbers(4), "other": numbers(4)})
    for _ in range(3):
        x = numbers(4)
        np.testing.assert_array_equal(own.op("Add", {"self": x, "other": x}), x + x)
        y = numbers(4)
        np.testing.assert_array_equal(own.op("Add", {"self": x, "other": y}), x + y)


def test_the_second_one_is_not_described(own, monkeypatch):
    own.neg(numbers(4))
    monkeypatch.setattr(_known_requests, "Program", None)
    x = numbers(4)
    np.testing.assert_array_equal(own.neg(x), -x)


def test_results_are_of_the_first_tensors_library(own):
    for kind in (np.asarray, torch.from_numpy, np.asarray, torch.from_numpy):
        x = kind(numbers(4))
        assert type(own.neg(x)) is type(x)


def answer(dtype=1):
    return _wire.ExecuteResponse(results=[{"tensor": {"dtype": dtype, "shape": [2]}}] * 2)


ANSWER = answer()


@pytest.mark.parametrize(
    "message, fits",
    [
        (_frame.join(ANSWER, [b"13572468", b"8642"]), True),
        (_frame.join(ANSWER, [b"1357246", b"8642"]), False),
        (_frame.join(ANSWER, [b"1357", b"86422468"]), False),
        (_frame.join(ANSWER, [b"13572468", b"8642", b""]), False),
        (_frame.join(answer(dtype=2), [b"12345678", b"1234"]), False),
    ],
)
def test_an_answer_fits_if_its_contents_alone_are_others(message, fits):
    known = _known_requests._Answer.of(_frame.join(ANSWER, [b"12345678", b"1234"]))
    assert known.fits(message) == fits
    if fits:
        assert known.payloads_of(message) == _frame.split(message, _wire.ExecuteResponse)[1]


@pytest.mark.parametrize(
    "message",
    [
        _frame.append(b"", [b"12345678"]) + ANSWER.SerializeToString(),  # the header is behind
        _frame.join(_wire.ExecuteResponse(receipt={}), [b"12345678"]),  # which differ
    ],
)
def test_other_answers_are_read_anew(message):
    assert _known_requests._Answer.of(message) is None


def test_a_tensor_may_be_in_shared_memory(own):
    region = own.create_region(64)
    shared = region.empty((4,), "float32")
    for _ in range(3):
        shared[:] = numbers(4)
        np.testing.assert_array_equal(own.neg(shared), -shared)
    assert is_known(own) == 0
    own.neg(numbers(4))
    for _ in range(3):
        shared[:] = numbers(4)
        np.testing.assert_array_equal(own.neg(shared), -shared)


def test_equal_attributes_of_other_kinds_are_other_attributes(own):
    x = numbers(4) - 50
    assert own.op("LeakyRelu", {"self": x}, {"negative_slope": 1.0}) is not None
    # To be refused, though 1.0 == True.
    with pytest.raises(TypeError):
        own.op("LeakyRelu", {"self": x}, {"negative_slope": "1.0"})
    for slope in (0.0, -0.0):
        given = {"negative_slope": slope}
        seen = own.op("LeakyRelu", {"self": x}, given)
        assert seen.tobytes() == anew(own, "LeakyRelu", {"self": x}, given).tobytes()
    assert is_known(own) == 3


def test_inputs_of_another_dtype_or_shape_are_other_requests(own):
    for shape in ((4,), (2, 2), (4, 1)):
        for dtype in (np.float32, np.float16, np.int32):
            check(own, "Neg", lambda: {"self": numbers(*shape, dtype=dtype)})
    assert is_known(own) == 9


def test_an_input_that_is_left_out_is_another_request(own):
    x = numbers(2, 3)
    full = {"input": x, "weight": numbers(3), "bias": numbers(3)}
    for inputs in (full, {**full, "bias": None}, {**full, "weight": None}, {"input": x}):
        for _ in range(2):
            seen = own.layer_norm(normalized_shape=[3], **inputs)
            right = anew(own, "LayerNorm", inputs, {"normalized_shape": [3]})
            np.testing.assert_array_equal(seen.out, right.out)


def test_results_may_be_written_and_are_the_callers_own(own):
    x = numbers(4)
    results = [own.neg(x) for _ in range(3)]
    results[1][:] = 0
    np.testing.assert_array_equal(results[0], -x)
    np.testing.assert_array_equal(results[2], -x)


def test_an_error_is_the_same_as_of_the_first_call(own):
    x, y = numbers(4), numbers(5)
    texts = []
    for _ in range(2):
        with pytest.raises(opserve.InvalidArgumentError) as caught:
            own.op("Add", {"self": x, "other": y})
        texts.append(caught.value.message)
    assert texts[0] == texts[1]
    assert is_known(own) == 0


def test_their_number_is_bounded(own, monkeypatch):
    monkeypatch.setattr(_known_requests, "_MAX_REQUESTS", 3)
    for size in range(1, 9):
        x = numbers(size)
        np.testing.assert_array_equal(own.neg(x), -x)
        assert is_known(own) <= 3


def test_a_client_that_wants_receipts_gets_each(daemon):
    receipts = []
    with opserve.Client(daemon.target, on_receipt=receipts.append) as client:
        for _ in range(3):
            client.neg(numbers(4))
    assert len(receipts) == 3 and all(map(str, receipts))


def test_a_client_for_asyncio_knows_them_too(daemon):
    async def call():
        async with opserve.AsyncClient(daemon.target) as client:
            for _ in range(3):
                x = numbers(4)
                np.testing.assert_array_equal(await client.neg(x), -x)
            return is_known(client)

    assert asyncio.run(call()) == 1
