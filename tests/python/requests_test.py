"""Requests and answers of operators of every kind, against a daemon that is made up."""

import asyncio
import concurrent.futures
import importlib.util
import inspect
import pathlib

import grpc
import ml_dtypes
import numpy as np
import pytest
from google.protobuf import text_format

import opserve
from opserve import _operators, _wire
from opserve._attributes import encode
from opserve._data_type import DataType
from opserve._operator import OperatorInfo, OutputInfo, Parameters
from opserve._request import Request
from opserve._tensors import view_of

ROOT = pathlib.Path(__file__).resolve().parents[2]

MIX = OperatorInfo(
    "Mix",
    "mix",
    {"x": ("float32",), "tensors": ("int64",), "weight": ("float32",)},
    {
        "mode": "text",
        "dims": "ints",
        "alpha": "scalar",
        "to": "dtype",
        "reduction": "int",
    },
    (
        OutputInfo("out"),
        OutputInfo("grad_weight", is_masked=True),
        OutputInfo("grad_bias", is_masked=True),
        OutputInfo("parts", is_list=True),
    ),
    ("tensors",),
)
PAIR = OperatorInfo(
    "Pair",
    "pair",
    {"x": ("float32",)},
    {},
    (OutputInfo("values"), OutputInfo("indices")),
)
SPLIT = OperatorInfo(
    "Split", "split", {"x": ("float32",)}, {}, (OutputInfo("out", is_list=True),)
)


@pytest.fixture(autouse=True)
def operators(monkeypatch):
    for info in (MIX, PAIR, SPLIT):
        monkeypatch.setitem(_operators.OPERATORS, info.name, info)


def request_of(program, **options):
    return Request(program, lambda view, message: False, **options)


def answer_of(**results):
    """An answer with these results, whose names have _ for a dot before a number."""
    answer, payloads = _wire.ExecuteResponse(), []
    for name, array in results.items():
        head, _, number = name.rpartition("_")
        result = answer.results.add()
        result.source.output = f"{head}.{number}" if number.isdigit() else name
        view = view_of(array)
        result.tensor.dtype = view.dtype
        result.tensor.shape.extend(view.shape)
        result.tensor.payload = len(payloads)
        payloads.append(memoryview(array.tobytes()))
    return answer, payloads


def outputs_of(program, **results):
    return request_of(program).read(*answer_of(**results)).outputs


def invocation_of(operator, inputs=None, attributes=None, **parameters):
    program = opserve.Program()
    program.invoke(operator, inputs or {}, attributes or {}, Parameters(**parameters))
    return request_of(program).header.invocations[0]


X = np.arange(3, dtype="f4")


@pytest.mark.parametrize("dtype", list(DataType))
def test_elements_of_each_type_come_and_go(dtype):
    array = np.array([[0, 1, 1]]).astype(dtype.numpy)
    view = view_of(array)
    assert (view.dtype, view.shape) == (dtype, (1, 3))
    result = outputs_of(program_of("Split"), out_0=array)[0]
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)
    assert view_of(array[:, ::-1]).dtype == dtype


def program_of(operator, *arguments, **named):
    program = opserve.Program()
    program.invoke(operator, {"x": X}, *(arguments or ({},)), **named)
    return program


@pytest.mark.parametrize("dtype", [d for d in DataType if d != DataType.BOOL])
def test_elements_of_each_type_come_by_dlpack(dtype):
    import torch

    class Other:  # not a torch.Tensor
        def __init__(self, tensor):
            self.__dlpack__ = tensor.__dlpack__
            self.__dlpack_device__ = tensor.__dlpack_device__

    tensor = torch.ones(2, dtype=getattr(torch, str(dtype.numpy)))
    assert view_of(tensor).dtype == dtype
    assert view_of(Other(tensor)).dtype == dtype


def test_bools_of_torch():
    import torch
    assert view_of(torch.tensor([True])).dtype == DataType.BOOL
    program = opserve.Program()
    program.invoke("Split", {"x": torch.tensor([1])}, {})
    [result] = outputs_of(program, out_0=np.array([True, False]))
    assert result.dtype == torch.bool and result.tolist() == [True, False]


def test_inputs_that_are_lists_or_left_out():
    program = opserve.Program()
    first = program.invoke("Pair", {"x": X}, {})
    program.invoke(
        "Mix",
        {"x": first.values, "tensors": [X, (X + 1), first.indices], "weight": None},
        {},
    )
    mix = request_of(program).header.invocations[1]
    assert [entry.name for entry in mix.inputs] == ["x", "tensors"]
    assert mix.inputs[0].tensor.invocation_output.output == "values"
    assert not mix.inputs[1].HasField("tensor")
    tensors = mix.inputs[1].list.tensors
    assert [tensor.WhichOneof("storage") for tensor in tensors] == [
        *("payload", "payload", "invocation_output")
    ]
    assert tensors[2].invocation_output.output == "indices"
    empty = invocation_of("Mix", {"tensors": []})
    assert empty.inputs[0].HasField("list")


def test_wrong_inputs_are_named():
    with pytest.raises(TypeError, match="Mix: x is a list with a str; expected num"):
        invocation_of("Mix", {"x": ["1"]})
    with pytest.raises(TypeError, match="Mix: tensors is a ndarray; expected a list"):
        invocation_of("Mix", {"tensors": X})
    with pytest.raises(TypeError, match=r"Mix: tensors\[1\] is a str; expected"):
        invocation_of("Mix", {"tensors": [X, "1"]})


@pytest.mark.parametrize(
    "kind, value, expected",
    [
        ("int", 3, "int64_value: 3"),
        ("int", np.int32(3), "int64_value: 3"),
        ("int", "mean", 'name: "mean"'),
        ("bool", True, "bool_value: true"),
        ("bool", np.bool_(False), "bool_value: false"),
        ("float", 2, "double_value: 2"),
        ("float", np.float32(0.5), "double_value: 0.5"),
        ("float", ml_dtypes.bfloat16(0.5), "double_value: 0.5"),
        ("text", "ij", 'text_value: "ij"'),
        ("dtype", "bfloat16", "dtype_value: DATA_TYPE_BF16"),
        ("dtype", np.int64, "dtype_value: DATA_TYPE_INT64"),
        ("dtype", np.dtype("bool"), "dtype_value: DATA_TYPE_BOOL"),
        ("dtype", DataType.INT8, "dtype_value: DATA_TYPE_INT8"),
        ("scalar", 2, "int64_value: 2"),
        ("scalar", 2.5, "double_value: 2.5"),
        ("scalar", True, "bool_value: true"),
        (
            "scalar",
            np.float32(2.5),
            "scalar_value { dtype: DATA_TYPE_FLOAT double_value: 2.5 }",
        ),
        (
            "scalar",
            np.array(2, "i1"),
            "scalar_value { dtype: DATA_TYPE_INT8 int64_value: 2 }",
        ),
        (
            "scalar",
            ml_dtypes.bfloat16(1),
            "scalar_value { dtype: DATA_TYPE_BF16 double_value: 1 }",
        ),
        ("ints", (1, -2), "int64_list { values: 1 values: -2 }"),
        ("ints", 1, "int64_list { values: 1 }"),
        ("ints", np.array([1, 2]), "int64_list { values: 1 values: 2 }"),
        ("ints", [], "int64_list { }"),
        ("bools", [True, False], "bool_list { values: true values: false }"),
        ("floats", (1, 0.5), "double_list { values: 1 values: 0.5 }"),
        (None, 3, "int64_value: 3"),
        (None, 0.5, "double_value: 0.5"),
        (None, True, "bool_value: true"),
        (None, "mean", 'name: "mean"'),
        (None, [1, 2], "int64_list { values: 1 values: 2 }"),
        (None, [1, 2.5], "double_list { values: 1 values: 2.5 }"),
        (None, [True], "bool_list { values: true }"),
        (None, np.float16, "dtype_value: DATA_TYPE_FLOAT16"),
        (None, DataType.BOOL, "dtype_value: DATA_TYPE_BOOL"),
    ],
)
def test_attributes(kind, value, expected):
    assert encode(kind, value) == text_format.Parse(expected, _wire.AttributeValue())


def test_dtypes_of_torch_are_attributes():
    import torch
    assert encode("dtype", torch.int32).dtype_value == DataType.INT32


@pytest.mark.parametrize(
    "kind, value, message",
    [
        ("int", 1.5, "1.5; expected an integer"),
        ("bool", 1, "1; expected True or False"),
        ("float", "x", "'x'; expected a number"),
        ("text", 3, "3; expected a string"),
        ("dtype", "complex64", "'complex64'; expected a dtype: float32"),
        ("scalar", "x", "'x'; expected a number"),
        ("ints", [1, 2.5], "2.5; expected an integer"),
        ("ints", "12", "'12'; expected an integer"),
        ("floats", [None], "None; expected a number"),
    ],
)
def test_wrong_attributes(kind, value, message):
    with pytest.raises(TypeError) as raised:
        encode(kind, value)
    assert message in str(raised.value)


def test_wrong_attributes_are_named():
    with pytest.raises(TypeError, match="Mix: mode is 3; expected a string"):
        invocation_of("Mix", {}, {"mode": 3})
    with pytest.raises(ValueError, match="Mix: reduction is 9223372036854775808"):
        invocation_of("Mix", {}, {"reduction": 2**63})


def test_attributes_that_are_none_are_left_out():
    invocation = invocation_of("Mix", {}, {"mode": None, "dims": (1,)})
    assert [attribute.name for attribute in invocation.attributes] == ["dims"]


@pytest.mark.parametrize(
    "parameters, requests",
    [
        ({}, {}),
        ({"outputs": ["grad_bias"]}, {"grad_bias": 0}),
        ({"outputs": "grad_bias"}, {"grad_bias": 0}),
        ({"dtype": "int8"}, {"out": DataType.INT8}),
        (
            {"dtype": {"grad_bias": "float16"}},
            {"grad_bias": DataType.FLOAT16, "grad_weight": 0},
        ),
        (
            {"dtype": {"grad_bias": "float16"}, "outputs": ["grad_bias"]},
            {"grad_bias": DataType.FLOAT16},
        ),
    ],
)
def test_outputs_that_are_asked_for(parameters, requests):
    invocation = invocation_of("Mix", **parameters)
    assert {output.name: output.dtype for output in invocation.outputs} == requests


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"outputs": ["out"]}, "none of those that may be left out"),
        ({"outputs": []}, "outputs names none"),
        ({"dtype": {"nope": "int8"}}, 'no output is named "nope"'),
        (
            {"dtype": {"grad_bias": "int8"}, "outputs": ["grad_weight"]},
            "grad_bias is not among outputs",
        ),
        ({"out": X}, "out is one tensor"),
        ({"out": (X,)}, "out has 1 tensors; there are 4 outputs"),
        ({"out": {"parts": X}}, "parts, which is a list"),
    ],
)
def test_outputs_that_cannot_be_asked_for(parameters, message):
    with pytest.raises(ValueError, match=message):
        invocation_of("Mix", **parameters)


def test_several_outputs_are_a_named_tuple():
    program = program_of("Mix")
    outputs = outputs_of(program, out=X, grad_bias=X + 1, parts_0=X + 2, parts_1=X + 3)
    assert type(outputs).__name__ == "Mix"
    assert outputs._fields == ("out", "grad_weight", "grad_bias", "parts")
    assert outputs.grad_weight is None
    np.testing.assert_array_equal(outputs.grad_bias, X + 1)
    np.testing.assert_array_equal(outputs.parts, [X + 2, X + 3])
    assert not request_of(program).header.results  # all there are


def test_one_output_is_itself():
    np.testing.assert_array_equal(
        outputs_of(program_of("L1LossBackward"), grad_input=X), X
    )
    [one, other] = outputs_of(program_of("Split"), out_0=X, out_1=X + 1)
    np.testing.assert_array_equal(other, one + 1)
    assert outputs_of(program_of("Split")) == []
    with pytest.raises(opserve.InternalError, match="no results"):
        outputs_of(program_of("L1LossBackward"))


def test_operators_that_this_package_does_not_know():
    program = program_of("Other", {"dims": [1, 2]})
    np.testing.assert_array_equal(outputs_of(program, out=X), X)
    outputs = outputs_of(program, out=X, parts_0=X, parts_1=X)
    assert outputs._fields == ("out", "parts") and len(outputs.parts) == 2


def test_results_can_be_written_to_several_places():
    values, indices = np.empty(3, "f4"), np.empty(2, "i8")
    program = opserve.Program()
    program.invoke("Pair", {"x": X}, {}, Parameters(out=(values, indices)))
    request = request_of(program)
    assert [result.output for result in request.header.results] == ["values", "indices"]
    answer = answer_of(values=X, indices=np.array([4, 5]))
    outputs = request.read(*answer).outputs
    assert outputs.values is values and outputs.indices is indices
    assert indices.tolist() == [4, 5]

    program = opserve.Program()
    program.invoke("Pair", {"x": X}, {}, Parameters(out={"indices": indices}))
    outputs = outputs_of(program, values=X, indices=np.array([6, 7]))
    assert outputs.values is not values and outputs.indices is indices
    assert indices.tolist() == [6, 7]


def test_outputs_of_a_program():
    program = opserve.Program()
    outputs = program.invoke("Mix", {}, {}, Parameters(outputs=["grad_bias"]))
    assert outputs.grad_weight is None
    assert outputs.grad_bias.output == "grad_bias"
    program.invoke("Pair", {"x": outputs.parts[2]}, {})
    header = request_of(program, results=[outputs.parts[0], outputs.out]).header
    assert header.invocations[1].inputs[0].tensor.invocation_output.output == "parts.2"
    assert [result.output for result in header.results] == ["parts.0", "out"]
    with pytest.raises(TypeError, match="take each by its number"):
        list(outputs.parts)
    with pytest.raises(IndexError):
        outputs.parts[-1]
    answer = answer_of(parts_0=X, out=X)
    response = request_of(program, results=[outputs.parts[0], outputs.out]).read(
        *answer
    )
    assert len(response.results) == 2 and response.outputs is None


class MadeUpDaemon:
    """Answers each request for Pair with its input and what is behind it."""

    def answer(self, request, payloads):
        [array] = [np.frombuffer(payload, "f4") for payload in payloads]
        answer, results = answer_of(values=array, indices=np.arange(len(array)))
        return answer, [bytes(result) for result in results]

    def execute(self, message, context):
        request = _wire.ExecuteRequest.FromString(message)
        answer, payloads = self.answer(request, request.payloads)
        answer.payloads.extend(payloads)
        return answer.SerializeToString()


@pytest.fixture
def made_up(tmp_path):
    daemon = MadeUpDaemon()
    handlers = {
        "Execute": grpc.unary_unary_rpc_method_handler(daemon.execute),
    }
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("opserve.v1.OperatorService", handlers)]
    )
    target = f"unix:{tmp_path}/s"
    server.add_insecure_port(target)
    server.start()
    yield target
    server.stop(None).wait()


def check_pair(outputs):
    np.testing.assert_array_equal(outputs.values, X)
    assert outputs.indices.tolist() == [0, 1, 2]


def test_clients_and_streams_give_named_tuples(made_up):
    arguments = "Pair", {"x": X}, {}, Parameters()
    with opserve.Client(made_up) as client:
        check_pair(client._call_operator(*arguments))
        with client.open_stream() as stream:
            check_pair(stream._call_operator(*arguments).result(timeout=30))

    async def run():
        async with opserve.AsyncClient(made_up) as client:
            check_pair(await client._call_operator(*arguments))

    asyncio.run(run())


DESCRIPTOR = """
  name: "MixBackward" summary: "Mixes."
  documentation: "Formula."
  inputs { name: "bias" documentation: "B." dtypes: DATA_TYPE_FLOAT optional: true }
  inputs { name: "tensors" documentation: "T." dtypes: DATA_TYPE_INT64 list: true }
  inputs { name: "self" documentation: "S." dtypes: DATA_TYPE_BOOL in_place: true }
  inputs { name: "weight" documentation: "W." dtypes: DATA_TYPE_FLOAT optional: true }
  attributes { name: "dims" documentation: "D." type: TYPE_INT64S required: true }
  attributes { name: "lambda" documentation: "L." type: TYPE_DOUBLE
               default_value { double_value: inf } }
  attributes { name: "mode" documentation: "M." type: TYPE_TEXT texts: "a" texts: "b"
               default_value { text_value: "b" } }
  attributes { name: "dtype" documentation: "To." type: TYPE_DTYPE
               default_value { dtype_value: DATA_TYPE_BF16 } }
  attributes { name: "alpha" documentation: "A." type: TYPE_SCALAR
               default_value { scalar_value { dtype: DATA_TYPE_FLOAT double_value: 1.5 } } }
  attributes { name: "beta" documentation: "B." type: TYPE_SCALAR
               default_value { int64_value: 1 } }
  attributes { name: "mask" documentation: "M." type: TYPE_BOOLS
               default_value { bool_list { values: true } } }
  attributes { name: "scales" documentation: "S." type: TYPE_DOUBLES
               default_value { double_list { values: 1 values: 0.5 } } }
  attributes { name: "padding" documentation: "P." type: TYPE_INT64S
               default_value { int64_list { } } }
  attributes { name: "reduction" documentation: "R." type: TYPE_INT64
               names { name: "mean" value: 1 } default_value { int64_value: 1 } }
  attributes { name: "seed" documentation: "N." type: TYPE_INT64 }
  attributes { name: "flag" documentation: "F." type: TYPE_BOOL
               default_value { bool_value: true } }
  outputs { name: "self" documentation: "S." dtypes: DATA_TYPE_BOOL in_place: true }
  outputs { name: "grad_bias" documentation: "G." dtypes: DATA_TYPE_FLOAT masked: true }
  outputs { name: "parts" documentation: "P." dtypes: DATA_TYPE_INT64 list: true }
"""


def generated(descriptor):
    """The module that is generated for one operator."""
    path = ROOT / "client/python/tools/generate_operators.py"
    spec = importlib.util.spec_from_file_location("generate_operators", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    answer = text_format.Parse(
        f"operators {{ {descriptor} }}", _wire.ListOperatorsResponse()
    )
    module = {}
    exec(tool.generate(answer.operators), module)
    return module


def test_methods_are_generated_for_all_there_is():
    module = generated(DESCRIPTOR)
    calls = []

    class Calls(module["Operators"]):
        def _call_operator(self, *arguments):
            calls.append(arguments)

    Calls().mix_backward([X], X, dims=(1,))
    [(operator, inputs, attributes, parameters)] = calls
    assert operator == "MixBackward"
    assert inputs == {"bias": None, "tensors": [X], "self": X, "weight": None}
    assert attributes == {
        "dims": (1,),
        "lambda": float("inf"),
        "mode": "b",
        "dtype": "bfloat16",
        "alpha": None,
        "beta": 1,
        "mask": (True,),
        "scales": (1.0, 0.5),
        "padding": (),
        "reduction": "mean",
        "seed": None,
        "flag": True,
    }
    assert parameters == Parameters()
    method = inspect.signature(Calls.mix_backward)
    kinds = {name: parameter.kind.name for name, parameter in method.parameters.items()}
    assert list(kinds)[:5] == ["client", "tensors", "self", "weight", "bias"]
    assert (
        kinds["weight"] == "POSITIONAL_OR_KEYWORD" and kinds["bias"] == "KEYWORD_ONLY"
    )
    assert method.parameters["dims"].default is inspect.Parameter.empty
    annotations = {
        name: str(p.annotation).replace("'", '"')
        for name, p in method.parameters.items()
    }
    assert annotations["mode"] == 'Literal["a", "b"]'
    assert annotations["alpha"] == "Optional[Scalar]"
    assert annotations["outputs"] == 'Optional[Sequence[Literal["grad_bias"]]]'
    text = Calls.mix_backward.__doc__
    for line in (
        "weight: W. float32. Optional.",
        "tensors: T. int64. A list of tensors.",
        "lambda_: L.",
        "alpha: A. Default: 1.5 (float32).",
        "seed: N. Optional.",
        "grad_bias: G. float32. None if it is not among `outputs`.",
    ):
        assert f"            {line}\n" in text

    info = module["OPERATORS"]["MixBackward"]
    assert info.lists == ("tensors",) and info.masked == ("grad_bias",)
    assert info.outputs[2] == OutputInfo("parts", is_list=True)
    assert list(info.attributes.values()) == [
        *("ints", "float", "text", "dtype", "scalar", "scalar", "bools", "floats"),
        *("ints", "int", "int", "bool"),
    ]


@pytest.mark.parametrize(
    "operator, method",
    [
        ("L1LossBackward", "l1_loss_backward"),
        ("NLLLoss2dBackward", "nll_loss2d_backward"),
        ("KlDiv", "kl_div"),
        ("Lambda", "lambda_"),
    ],
)
def test_methods_have_the_names_of_operators(operator, method):
    module = generated(f'name: "{operator}" outputs {{ name: "out" }}')
    assert module["OPERATORS"][operator].method == method
    assert hasattr(module["Operators"], method)


def test_names_of_other_methods_are_refused():
    with pytest.raises(SystemExit, match="Upload: Client has another upload"):
        generated('name: "Upload" outputs { name: "out" }')


def test_arguments_come_before_parameters_of_the_same_name():
    module = generated(
        """name: "Cast" summary: "S." documentation: "D."
        inputs { name: "out" dtypes: DATA_TYPE_FLOAT }
        attributes { name: "dtype" type: TYPE_DTYPE required: true }
        outputs { name: "out" dtypes: DATA_TYPE_FLOAT }"""
    )

    class Calls(module["Operators"]):
        def _call_operator(self, *arguments):
            return arguments

    _, inputs, attributes, parameters = Calls().cast("x", dtype="int8", timeout=3)
    assert inputs == {"out": "x"} and attributes == {"dtype": "int8"}
    assert parameters == Parameters(timeout=3)
