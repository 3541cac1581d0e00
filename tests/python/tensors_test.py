"""Tensors in and out: kinds, layouts, how few bytes are sent."""

import concurrent.futures
import contextlib
import datetime
import threading

import ml_dtypes
import numpy as np
import pytest
from formulas import l1, normal

import opserve
from opserve import _connection, _frame, _wire
from opserve._connection import Download, Upload
from opserve._data_type import DataType
from opserve._payloads import Payloads
from opserve._tensors import view_of


def call(client, x, **options):
    one = np.ones((), x.dtype)
    return client.l1_loss_backward(
        one, x, np.zeros_like(x), reduction="none", **options
    )


def payload_bytes(*arrays):
    return sum(len(buffer) for buffer in Payloads([view_of(a) for a in arrays]).buffers)


def test_results_are_arrays_of_the_callers_own(client):
    result = call(client, normal(3, 5))
    assert result.flags.writeable and result.flags.aligned and result.flags.c_contiguous
    result += 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dtypes_come_back(client, dtype):
    x = normal(4, 3).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    result = call(client, x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result.astype("f4"), np.sign(x.astype("f4")))


def test_a_dtype_can_be_asked_for(client):
    assert call(client, normal(4), dtype="bfloat16").dtype == ml_dtypes.bfloat16
    assert call(client, normal(4), dtype=np.float16).dtype == np.float16


@pytest.mark.parametrize(
    "x",
    [
        normal(4, 6).T,
        normal(4, 6)[:, ::2],
        normal(4, 6)[::-1],
        normal(4, 6)[1:, 2:],
        normal(4, 6).astype(">f4"),
        np.broadcast_to(normal(6), (4, 6)),
        normal(3, 4, 5).transpose(2, 0, 1),
        normal(1, 4, 1).swapaxes(0, 2),
        np.float32(3),
        normal(0, 4),
        np.frombuffer(b"\0" + normal(8).tobytes(), "f4", offset=1),
        np.zeros(3, [("a", "i2"), ("x", "f4")])["x"],
    ],
    ids=range(12),
)
def test_layouts(client, x):
    target = normal(*np.shape(x), seed=1)
    result = client.l1_loss_backward(np.float32(2), x, target, reduction="none")
    np.testing.assert_array_equal(result, l1(2, np.asarray(x, "f4"), target))


def test_out_is_filled_and_returned(client):
    x = normal(4, 6)
    out = np.empty_like(x)
    assert call(client, x, out=out) is out
    np.testing.assert_array_equal(out, np.sign(x))
    with pytest.raises(
        ValueError, match=r"out is FLOAT \[3\]; the result is FLOAT \[4, 6\]"
    ):
        call(client, x, out=np.empty(3, "f4"))
    with pytest.raises(ValueError, match="writable and contiguous"):
        call(client, x, out=np.empty((6, 4), "f4").T)


@pytest.mark.parametrize(
    "tensor, message",
    [
        (np.zeros(3, np.uint16), "self is elements of dtype uint16; expected float32"),
        ("12", "self is a str; expected a numpy array"),
        ({1, 2}, "self is a set; expected a numpy array"),
        (["1", "2"], "self is a list with a str; expected numbers"),
        ([[1.0], [2j]], "self is elements of dtype complex128; expected float32"),
    ],
)
def test_what_is_no_tensor_is_refused_by_name(client, tensor, message):
    with pytest.raises(TypeError, match="L1LossBackward: " + message):
        client.l1_loss_backward(np.float32(1), tensor, np.zeros(3, "f4"))


def test_memory_in_common_is_sent_once():
    x = normal(100, 10)
    assert payload_bytes(x, x) == x.nbytes
    assert payload_bytes(x, x.T) == x.nbytes
    assert payload_bytes(x[:, :5], x[:, 5:]) == x.nbytes
    assert payload_bytes(x[:60], x[40:]) == x.nbytes
    assert payload_bytes(np.broadcast_to(np.float32(1), (1000,))) == 4
    assert payload_bytes(x[:, :1]) == 400  # not what is between them
    assert payload_bytes(x[:10], x[90:]) == 800


def test_shared_payloads_mean_the_same(client):
    x = normal(8, 8)
    for a, b in [(x, x.T), (x[:6], x[2:]), (x[:, :4], x[:, 4:]), (x[0], x)]:
        result = client.l1_loss_backward(np.float32(1), a, b, reduction="none")
        np.testing.assert_array_equal(result, l1(1, a, b))
    scalar = x.reshape(-1)[:1].reshape(())
    result = client.l1_loss_backward(scalar, x, x.T, reduction="none")
    np.testing.assert_array_equal(result, l1(scalar, x, x.T))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("g", [2, 2.0, [[2.0]], True, np.int64(2)])
def test_numbers_take_the_dtype_of_the_first_tensor(dtype, g):
    x = normal(1, 3).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    invocation = opserve.Program()
    invocation.mul(g, x)
    sent = invocation.invocations[0].inputs["self"]
    expected = {True: "bool", 2: dtype}[g if g is True else 2]
    if isinstance(g, np.generic):
        expected = "int64"  # it has a dtype of its own
    assert (sent.dtype.numpy.name, sent.shape) == (expected, np.shape(g))


@pytest.mark.parametrize(
    "value, dtype",
    [
        (1, np.int64),
        (1.5, np.float32),
        (True, np.bool_),
        ([], np.float32),
        ([[1, 2], [3, 4]], np.int64),
        ([[1, 2.5]], np.float32),
        ([np.float16(1), np.float16(2)], np.float16),
        ([np.zeros(3, "i2"), np.ones(3, "i2")], np.int16),
        ((False, True), np.bool_),
    ],
)
def test_numbers_without_a_tensor_have_the_usual_dtypes(value, dtype):
    view = view_of(value)
    assert (view.dtype.numpy, view.shape) == (dtype, np.shape(value))
    np.testing.assert_array_equal(view.owner, value)


@pytest.mark.parametrize(
    "value, like, dtype",
    [
        (300, DataType.INT8, np.int64),
        (-1, DataType.UINT8, np.int64),
        (255, DataType.UINT8, np.uint8),
        (2.5, DataType.INT32, np.float32),
        (2, DataType.BOOL, np.int64),
        (2**63, DataType.INT64, np.float32),
        (1e5, DataType.FLOAT16, np.float32),
        (1e5, DataType.BF16, ml_dtypes.bfloat16),
        (float("inf"), DataType.FLOAT16, np.float16),
    ],
)
def test_numbers_are_not_cut_to_fit_a_dtype(value, like, dtype):
    view = view_of(value, like)
    assert view.dtype.numpy == dtype
    np.testing.assert_allclose(view.owner.astype("f8"), value, rtol=1e-2)


def test_numbers_get_a_dtype_that_the_operator_takes(client):
    x, t = [[1.0, -2.0, 3.0]], [[0, 0, 5]]
    result = client.l1_loss_backward(1, x, t, reduction="none")
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [[1, -1, -1]])
    rows = client.index_select(normal(4, 3), [2, 0], dim=0)  # indices are no floats
    np.testing.assert_array_equal(rows, normal(4, 3)[[2, 0]])


def test_the_first_tensor_that_is_no_list_says_what_comes_back(client):
    import torch
    x = torch.ones(2, dtype=torch.float16)
    result = client.l1_loss_backward(1.0, x, [0.0, 2.0], reduction="none")
    assert isinstance(result, torch.Tensor) and result.dtype == torch.float16
    assert result.tolist() == [1, -1]


def test_lists_are_uploaded_and_given_to_prepared_programs(client):
    tensor = client.upload([[1.0, 2.0]])
    np.testing.assert_array_equal(client.download(tensor), np.array([[1, 2]], "f4"))
    client.release([tensor])
    program = opserve.Program()
    program.abs(program.input("float16", (2,)))
    [result] = client.prepare(program)([-1, 2]).results
    assert result.dtype == np.float16 and result.tolist() == [1, 2]


@pytest.mark.parametrize("tensor", [[[1, 2], [3]], [[[1.0]], [2.0]]])
def test_lists_of_different_lengths_are_refused(client, tensor):
    with pytest.raises(ValueError, match="L1LossBackward: self is a nested list whose"):
        client.l1_loss_backward(1, tensor, 1)


@pytest.mark.parametrize("out", [[0.0, 0.0], 1.0, np.float32(1)])
def test_a_result_is_not_written_to_a_copy(client, out):
    with pytest.raises(TypeError, match="out is a .*; expected a tensor to write to"):
        call(client, normal(2), out=out)


def test_checksums_are_castagnolis():
    upload = Upload(
        np.frombuffer(b"123456789", np.uint8),
        lease=0,
        device=None,
        chunk_bytes=9,
        on_progress=None,
    )
    [message] = upload.messages()
    assert _wire.UploadRequest.FromString(message).crc32c == 0xE3069283


def test_a_download_with_a_wrong_checksum_is_refused():
    download = Download([resident(b"x")], None)
    download.add(download_header(9))
    chunk = _wire.DownloadResponse(crc32c=0xE3069283)
    with pytest.raises(opserve.DataLossError, match="the chunk at byte 0"):
        download.add(_frame.join(chunk, [b"123456780"]))
    download.add(_frame.join(chunk, [b"123456789"]))
    assert bytes(download.end()[0]) == b"123456789"


def resident(handle):
    lease_end = datetime.datetime.now(datetime.timezone.utc)
    return opserve.ResidentTensor(handle, DataType.UINT8, (), lease_end, 0)


def download_header(*shape):
    message = _wire.DownloadResponse()
    message.header.dtype = DataType.UINT8
    message.header.shape.extend(shape)
    return message.SerializeToString()


def download_chunk(data):
    return _frame.join(_wire.DownloadResponse(crc32c=_connection._crc32c(memoryview(data))), [data])


@pytest.mark.parametrize(
    "messages, error",
    [
        ([download_header(2), download_chunk(b"12"), download_header(0)], None),
        ([download_header(2), download_header(0)], opserve.DataLossError),
        ([download_header(2), download_chunk(b"12")], opserve.InternalError),
        ([download_header(0)] * 3, opserve.InternalError),
        ([download_chunk(b"12")], opserve.InternalError),
        ([download_header(2), download_chunk(b"123")], opserve.DataLossError),
        ([download_header(0), download_header(2)], opserve.DataLossError),
    ],
)
def test_a_snapshot_has_all_its_tensors_or_is_refused(messages, error):
    download = Download([resident(b"x"), resident(b"y")], None)
    with pytest.raises(error) if error else contextlib.nullcontext():
        for message in messages:
            download.add(message)
        assert [one.shape for one in download.end()] == [(2,), (0,)]


def test_a_snapshot_is_of_one_moment(client):
    """Each step of a training changes all tensors; no snapshot has those of two steps."""
    weights = [client.upload(np.zeros(shape, "f4")) for shape in [(3000,), (), (0, 3), (7, 5)]]
    program = opserve.Program()
    inputs = [program.input(weight.data_type, weight.shape) for weight in weights]
    step = client.prepare(
        program, [program.replace(one, program.add(one, np.float32(1))) for one in inputs]
    )
    is_over = threading.Event()

    def train():
        while not is_over.is_set():
            step(*weights)

    with concurrent.futures.ThreadPoolExecutor() as executor:
        training = executor.submit(train)
        try:
            seen = set()
            for _ in range(1000):
                arrays = client.snapshot(weights)
                assert [one.shape for one in arrays] == [one.shape for one in weights]
                [value] = {float(element) for array in arrays for element in array.flat}
                seen.add(value)
                if len(seen) == 10:
                    break
        finally:
            is_over.set()
            training.result()
    assert len(seen) == 10
    assert client.snapshot([]) == []
    with pytest.raises(opserve.InvalidArgumentError, match=r"handles\[1\]: .* named twice"):
        client.snapshot([weights[0], weights[0]])
    client.release(weights)


def test_messages_are_taken_apart_as_they_were_put_together():
    header = _wire.DownloadResponse(crc32c=7)
    header.header.shape.extend([1, 300, 70000])
    message = _frame.join(header, [b"", b"x" * 1000])
    again, payloads = _frame.split(message, _wire.DownloadResponse)
    assert again == header
    assert [bytes(payload) for payload in payloads] == [b"", b"x" * 1000]


@pytest.mark.parametrize(
    "message", [b"\x7a\x05abc", b"\x7a", b"\x0b", b"\x7a" + b"\xff" * 11]
)
def test_what_is_no_message_is_an_error(message):
    with pytest.raises(_frame.FrameError):
        _frame.split(message, _wire.ExecuteResponse)


def test_the_table_of_operators_says_what_they_take():
    info = opserve.OPERATORS["KlDivBackward"]
    assert info.method == "kl_div_backward"
    assert info.inputs["self"] == ("float32", "float16", "bfloat16", "float64")
    assert info.output == "out"


@pytest.mark.parametrize("is_shared", [False, True])
def test_out_where_the_dtype_follows_from_the_inputs(client, is_shared):
    """SoftmaxBackward's result has the dtype of its inputs, and that cannot be asked for."""
    y = np.full((2, 3), 0.5, "f4")
    with client.create_region(1 << 16) as region:
        empty = region.empty if is_shared else np.empty
        out = empty((2, 3), np.float32)
        assert client.softmax_backward(y, y, out=out) is out
        np.testing.assert_allclose(out, np.full((2, 3), -0.125))
        for wrong in (empty((3, 2), np.float32), empty((2, 3), np.int32)):
            with pytest.raises(
                ValueError, match=r"out is .*; the result is FLOAT \[2, 3\]"
            ):
                client.softmax_backward(y, y, out=wrong)


def test_zeros_of_torch_without_memory(client):
    import torch
    zeros = torch._efficientzerotensor((2, 3))
    result = client.l1_loss_backward(1, zeros, torch.ones(2, 3), reduction="sum")
    torch.testing.assert_close(result, torch.full((2, 3), -1.0))
