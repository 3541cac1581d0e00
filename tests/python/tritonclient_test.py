"""The real tritonclient against a running opserved: the Open Inference Protocol as its users see it.

Numbers of checks are those of the list in server/kserve/README.md.
"""

import asyncio
import os
import queue
import time

import ml_dtypes
import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException

from conftest import Daemon


@pytest.fixture(scope="module")
def tcp_daemon():
    running = Daemon("--allow_named_shm", listen=",127.0.0.1:0")
    yield running
    running.close()


@pytest.fixture(scope="module")
def address(tcp_daemon):
    return tcp_daemon.ready["listen"][1]


@pytest.fixture
def client(address):
    with triton.InferenceServerClient(address) as connected:
        yield connected


def tensor(name, elements, datatype="FP32"):
    made = triton.InferInput(name, list(elements.shape), datatype)
    made.set_data_from_numpy(elements)
    return made


def l1_inputs(dtype=np.float32, datatype="FP32", shape=(2, 3)):
    """Inputs of L1LossBackward, and its result with reduction "sum"."""
    generator = np.random.default_rng(7)
    grad = np.array(2, dtype)
    own, target = (generator.integers(-3, 4, shape).astype(dtype) for _ in range(2))
    inputs = [
        tensor("self", own, datatype),
        tensor("grad_output", grad, datatype),
        tensor("target", target, datatype),
    ]
    return inputs, np.sign(own - target) * grad


SUM = {"reduction": "sum"}


def error_of(call, *arguments, **options):
    with pytest.raises(InferenceServerException) as caught:
        call(*arguments, **options)
    assert caught.value.message()
    return caught.value


def test_health_and_metadata(client):  # checks 3 to 9
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("KlDivBackward")
    assert client.is_model_ready("KlDivBackward", "1")
    assert not client.is_model_ready("NoSuchModel")
    assert client.get_server_metadata().name == "opserve"
    metadata = client.get_model_metadata("LogSoftmaxBackward")
    assert metadata.name == "LogSoftmaxBackward"
    assert list(metadata.versions) == ["1"]
    assert [i.name for i in metadata.inputs] == ["grad_output", "output"]
    config = client.get_model_config("LogSoftmaxBackward").config
    assert config.name == "LogSoftmaxBackward"
    assert config.max_batch_size == 0
    assert [i.name for i in config.input] == ["grad_output", "output"]
    assert config.parameters["parameter.dim"].string_value.startswith("int64, default -1")
    index = client.get_model_repository_index()
    assert "KlDivTargetBackward" in {model.name for model in index.models}
    # As JSON, which needs every field's description.
    assert client.get_model_metadata("KlDivBackward", as_json=True)["name"] == "KlDivBackward"


@pytest.mark.parametrize("shape", [(2, 3), (), (0,), (0, 3), (1, 1, 1, 1, 1, 1, 1, 5)])  # check 17
def test_infer(client, shape):
    inputs, expected = l1_inputs(shape=shape)
    result = client.infer("L1LossBackward", inputs, request_id="17", parameters=SUM)
    np.testing.assert_array_equal(result.as_numpy("grad_input"), expected)
    assert result.as_numpy("grad_input").shape == shape
    assert result.get_response().id == "17"  # check 19
    assert result.get_response().model_version == "1"


def test_output_by_name_priority_and_timeout(client):  # checks 20 and 23
    inputs, expected = l1_inputs()
    result = client.infer(
        "L1LossBackward",
        inputs,
        model_version="1",
        outputs=[triton.InferRequestedOutput("grad_input")],
        priority=1,
        timeout=60_000_000,
        client_timeout=60,
        parameters=SUM,
    )
    np.testing.assert_array_equal(result.as_numpy("grad_input"), expected)


def test_half_precision(client):  # check 14
    inputs, expected = l1_inputs(np.float16, "FP16")
    result = client.infer("L1LossBackward", inputs, parameters=SUM)
    assert result.as_numpy("grad_input").dtype == np.float16
    np.testing.assert_array_equal(result.as_numpy("grad_input"), expected)


def test_bfloat16(client):  # check 14
    try:  # the client's type for it was float32
        inputs, expected = l1_inputs(np.float32, "BF16")
    except InferenceServerException:  # since 2.71
        inputs, expected = l1_inputs(ml_dtypes.bfloat16, "BF16")
    result = client.infer("L1LossBackward", inputs, parameters=SUM)
    assert result.get_output("grad_input").datatype == "BF16"
    gradient = result.as_numpy("grad_input").astype(np.float32)
    np.testing.assert_array_equal(gradient, expected.astype(np.float32))


def test_attributes_reach_the_operator(client):  # checks 21 and 27
    generator = np.random.default_rng(3)
    target = generator.standard_normal((4, 5)).astype(np.float32)
    inputs = [
        tensor("grad_output", np.ones((), np.float32)),
        tensor("self", np.zeros((4, 5), np.float32)),
        tensor("target", target),
    ]
    for reduction, divisor in (("batchmean", 4), (1, 20), ("sum", 1)):
        result = client.infer(
            "KlDivBackward", inputs, parameters={"reduction": reduction, "log_target": True}
        )
        np.testing.assert_allclose(
            result.as_numpy("out"),
            -np.exp(target) / divisor,
            rtol=1e-5,
        )


def test_log_softmax(client):
    gradient = np.array([[1, 2], [3, -1]], np.float32)
    output = np.array([[0, -1], [-0.5, 0]], np.float32)
    result = client.infer(
        "LogSoftmaxBackward",
        [tensor("grad_output", gradient), tensor("output", output)],
        parameters={"dim": 1},
    )
    expected = gradient - np.exp(output) * gradient.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.as_numpy("out"), expected, rtol=1e-5)


def test_errors_are_understood(client):  # checks 9, 13, 15 and 21
    inputs, _ = l1_inputs()
    unknown = error_of(client.infer, "NoSuchModel", inputs)
    assert "Request for unknown model" in unknown.message()
    assert unknown.status() == "StatusCode.NOT_FOUND"
    missing = error_of(client.infer, "L1LossBackward", inputs[:2], request_id="9")
    assert missing.status() == "StatusCode.INVALID_ARGUMENT"
    assert "[request id: 9] expected 3 inputs but got 2" in missing.message()
    short = triton.InferInput("self", [4], "FP32")
    short.set_data_from_numpy(np.zeros(4, np.float32))
    short._raw_content = short._raw_content[:-1]
    wrong = error_of(client.infer, "L1LossBackward", [short, *inputs[1:]])
    assert "input byte size mismatch" in wrong.message()
    assert "Expected 16, got 15" in wrong.message()
    attribute = error_of(client.infer, "L1LossBackward", inputs, parameters={"reduction": "no"})
    assert "'reduction'" in attribute.message()
    assert error_of(client.load_model, "L1LossBackward").status() == "StatusCode.UNIMPLEMENTED"
    assert error_of(client.unload_model, "L1LossBackward").status() == "StatusCode.UNIMPLEMENTED"
    assert error_of(client.get_trace_settings).status() == "StatusCode.UNIMPLEMENTED"
    assert error_of(client.get_log_settings).status() == "StatusCode.UNIMPLEMENTED"


def test_async(client):
    inputs, expected = l1_inputs()
    answers = queue.Queue()
    for number in range(32):
        client.async_infer(
            "L1LossBackward",
            inputs,
            callback=lambda result, error: answers.put((result, error)),
            request_id=str(number),
            parameters=SUM,
        )
    seen = set()
    for _ in range(32):
        result, error = answers.get(timeout=60)
        assert error is None
        np.testing.assert_array_equal(result.as_numpy("grad_input"), expected)
        seen.add(result.get_response().id)
    assert seen == {str(number) for number in range(32)}


def test_asyncio(address):
    inputs, expected = l1_inputs()

    async def run():
        async with triton_aio.InferenceServerClient(address) as connected:
            results = await asyncio.gather(
                *(connected.infer("L1LossBackward", inputs, parameters=SUM) for _ in range(8))
            )
        return [result.as_numpy("grad_input") for result in results]

    for gradient in asyncio.run(run()):
        np.testing.assert_array_equal(gradient, expected)


def test_stream(client):  # checks 24 and 25
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    inputs, expected = l1_inputs()
    for number in range(100):
        model = "NoSuchModel" if number == 50 else "L1LossBackward"
        client.async_stream_infer(model, inputs, request_id=str(number), parameters=SUM)
    for number in range(100):
        result, error = answers.get(timeout=60)
        if number == 50:
            assert "Request for unknown model" in error.message()
            continue
        assert error is None
        assert result.get_response().id == str(number)
        np.testing.assert_array_equal(result.as_numpy("grad_input"), expected)
    client.stop_stream()
    assert answers.empty()


def test_large_tensors(client):
    inputs, expected = l1_inputs(shape=(1 << 21,))
    result = client.infer("L1LossBackward", inputs, parameters=SUM)
    np.testing.assert_array_equal(result.as_numpy("grad_input"), expected)


def test_statistics(client):  # checks 29 and 30
    inputs, _ = l1_inputs()
    before = client.get_inference_statistics("L1LossBackward").model_stats[0]
    for _ in range(5):
        client.infer("L1LossBackward", inputs, parameters=SUM)
    after = client.get_inference_statistics("L1LossBackward", "1").model_stats[0]
    assert after.version == "1"
    assert after.inference_count - before.inference_count == 5
    stats = after.inference_stats
    assert (
        stats.success.count
        == stats.queue.count
        == stats.compute_input.count
        == stats.compute_infer.count
        == stats.compute_output.count
    )
    assert stats.success.ns > before.inference_stats.success.ns
    assert abs(after.last_inference / 1000 - time.time()) < 3600
    assert len(client.get_inference_statistics().model_stats) >= 4
    error_of(client.get_inference_statistics, "NoSuchModel")


class Region:
    """A region of shared memory, made, registered and taken apart as in the client's examples."""

    def __init__(self, client, name, size):
        self.client, self.name = client, name
        key = f"/opserve-{os.getpid()}-{name}"
        self.handle = shm.create_shared_memory_region(name, key, size)
        client.register_system_shared_memory(name, key, size)

    def close(self):
        self.client.unregister_system_shared_memory(self.name)
        shm.destroy_shared_memory_region(self.handle)


def test_shared_memory(client):  # checks 31, 34 and 35
    client.unregister_system_shared_memory()
    client.unregister_cuda_shared_memory()
    own = np.array([[1, 5, 3], [7, 0, -2]], np.float32)
    target = np.array([[1, 2, 4], [9, 0, -3]], np.float32)
    source = Region(client, "source", 2 * own.nbytes)
    result_region = Region(client, "result", own.nbytes)
    try:
        shm.set_shared_memory_region(source.handle, [own, target])
        inputs = []
        for number, name in enumerate(("self", "target")):
            made = triton.InferInput(name, own.shape, "FP32")
            made.set_shared_memory("source", own.nbytes, offset=number * own.nbytes)
            inputs.append(made)
        inputs.insert(1, tensor("grad_output", np.array(3, np.float32)))  # not in shared memory
        output = triton.InferRequestedOutput("grad_input")
        output.set_shared_memory("result", own.nbytes)
        result = client.infer("L1LossBackward", inputs, outputs=[output], parameters=SUM)
        described = result.get_output("grad_input")
        assert list(described.shape) == [2, 3]
        gradient = shm.get_contents_as_numpy(result_region.handle, np.float32, [2, 3])
        np.testing.assert_array_equal(gradient, np.sign(own - target) * 3)
        assert set(client.get_system_shared_memory_status().regions) == {"source", "result"}
        twice = error_of(
            client.register_system_shared_memory, "source", f"/opserve-{os.getpid()}-source", 4
        )
        assert twice.status() == "StatusCode.ALREADY_EXISTS"
    finally:
        source.close()
        result_region.close()
    assert not client.get_system_shared_memory_status().regions
    assert not client.get_cuda_shared_memory_status().regions
    error_of(client.register_system_shared_memory, "r", "/opserve-no-such-object", 4)
    cuda = error_of(client.register_cuda_shared_memory, "r", b"", 0, 4)
    assert "GPUs not supported" in cuda.message()


def test_shared_memory_is_off_by_default(start_daemon):
    daemon = start_daemon(listen=",127.0.0.1:0")
    with triton.InferenceServerClient(daemon.ready["listen"][1]) as connected:
        refused = error_of(connected.register_system_shared_memory, "r", "/r", 4)
        assert refused.status() == "StatusCode.UNIMPLEMENTED"
        assert "Client shared memory is disabled" in refused.message()
        assert not connected.get_system_shared_memory_status().regions


def test_compressed_requests_are_refused(client):  # check 42 is not met, on purpose
    inputs, _ = l1_inputs(shape=(1000,))
    refused = error_of(
        client.infer, "L1LossBackward", inputs, parameters=SUM, compression_algorithm="gzip"
    )
    assert refused.status() == "StatusCode.UNIMPLEMENTED"


def test_unix_socket(tcp_daemon):
    with triton.InferenceServerClient(tcp_daemon.target) as connected:
        inputs, expected = l1_inputs()
        result = connected.infer("L1LossBackward", inputs, parameters=SUM)
        np.testing.assert_array_equal(result.as_numpy("grad_input"), expected)


# Operators of every kind.


def test_several_outputs_of_which_one_is_asked_for(client):
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    arguments = {"dim": "[1]"}
    both = client.infer("VarMean", [tensor("self", data)], parameters=arguments)
    names = [output.name for output in both.get_response().outputs]
    assert names == ["var_out", "mean_out"]
    np.testing.assert_allclose(both.as_numpy("var_out"), data.var(1, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(both.as_numpy("mean_out"), data.mean(1), rtol=1e-6)
    for name in names:
        one = client.infer(
            "VarMean",
            [tensor("self", data)],
            outputs=[triton.InferRequestedOutput(name)],
            parameters=arguments,
        )
        assert [output.name for output in one.get_response().outputs] == [name]
        np.testing.assert_array_equal(one.as_numpy(name), both.as_numpy(name))


def test_a_list_of_inputs(client):
    parts = [np.full((2, n), n, np.int32) for n in (1, 2, 3)]
    inputs = [tensor(f"tensors.{i}", part, "INT32") for i, part in enumerate(parts)]
    result = client.infer("Cat", inputs, parameters={"dim": 1})
    np.testing.assert_array_equal(result.as_numpy("out"), np.concatenate(parts, 1))
    refused = error_of(client.infer, "Cat", inputs[::-1], parameters={"dim": 1})
    assert "out of order" in refused.message()


def test_a_list_of_outputs(client):
    data = np.arange(5, dtype=np.int64)
    result = client.infer(
        "SplitTensor", [tensor("self", data, "INT64")], parameters={"split_sections": 2, "dim": 0}
    )
    names = [output.name for output in result.get_response().outputs]
    assert [name.rpartition(".")[2] for name in names] == ["0", "1", "2"]
    for name, expected in zip(names, ([0, 1], [2, 3], [4])):
        np.testing.assert_array_equal(result.as_numpy(name), expected)


def test_integers_bools_and_numbers_with_a_dtype(client):
    left, right = np.array([1, 2, 3], np.int64), np.array([3, 2, 1], np.int64)
    equal = client.infer("EqTensor", [tensor("self", left, "INT64"), tensor("other", right, "INT64")])
    np.testing.assert_array_equal(equal.as_numpy("out"), left == right)
    assert equal.as_numpy("out").dtype == np.bool_
    sums = client.infer(
        "Adds", [tensor("self", left, "INT64")], parameters={"other": 2, "alpha": 3}
    )
    np.testing.assert_array_equal(sums.as_numpy("out"), left + 6)


def test_an_argument_in_place(client):
    own, other = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    result = client.infer(
        "InplaceAdd", [tensor("self", own), tensor("other", other)], parameters={"alpha": 2}
    )
    np.testing.assert_array_equal(result.as_numpy("self"), own + 2 * other)


def test_an_optional_input_is_left_out(client):
    data = np.arange(8, dtype=np.float32).reshape(2, 4)
    result = client.infer(
        "LayerNorm",
        [tensor("input", data)],
        outputs=[triton.InferRequestedOutput("out")],
        parameters={"normalized_shape": "[4]", "eps": "0.0"},
    )
    expected = (data - data.mean(1, keepdims=True)) / data.std(1, keepdims=True)
    np.testing.assert_allclose(result.as_numpy("out"), expected, rtol=1e-5)
    assert [output.name for output in result.get_response().outputs] == ["out"]


@pytest.mark.parametrize(
    "datatype, dtype",
    [("INT8", "int8"), ("UINT8", "uint8"), ("INT16", "int16"), ("INT32", "int32"), ("INT64", "int64")],
)
def test_typed_contents_of_integers(client, datatype, dtype):
    field = {"INT64": "int64_contents", "UINT8": "uint_contents"}.get(datatype, "int_contents")
    data = np.array([1, 2, 100], dtype)
    made = triton.InferInput("self", [3], datatype)
    getattr(made._get_tensor().contents, field).extend(data.tolist())
    result = client.infer("EqScalar", [made], parameters={"other": 2})
    np.testing.assert_array_equal(result.as_numpy("out"), [False, True, False])
    if datatype in ("INT32", "INT64"):  # nothing else fits their fields
        return
    getattr(made._get_tensor().contents, field)[0] = 1 << 20
    refused = error_of(client.infer, "EqScalar", [made], parameters={"other": 2})
    assert "has an element that is no" in refused.message()
