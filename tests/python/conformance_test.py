"""The conformance set through the Python client: every operator, every layout."""

import base64

import conformance_cases as cases
import numpy as np
import pytest
import torch

import opserve


def call(client, case, convert=lambda array: array):
    info = opserve.OPERATORS[case["operator"][len("aclnn") :]]
    inputs = {
        cases.snake(tensor["name"]): convert(cases.input_array(tensor))
        for tensor in case["inputs"]
    }
    attributes = {cases.snake(name): value for name, value in case["attrs"].items()}
    dtype = cases.DTYPES[case["output"]["dtype"]]
    return getattr(client, info.method)(**inputs, **attributes, dtype=dtype)


def to_torch(array):
    """The same memory, seen by torch."""
    if array.dtype != cases.DTYPES["BF16"]:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writ")
@pytest.mark.parametrize("kind", ["numpy", "torch", "dlpack"])
@pytest.mark.parametrize("operator", cases.operators())
def test_every_value_case(client, operator, kind):
    class Foreign:
        """What another library's tensor is: only DLPack."""

        def __init__(self, tensor):
            self._tensor = tensor

        def __dlpack__(self, stream=None):
            return self._tensor.__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    convert = {
        "numpy": lambda array: array,
        "torch": to_torch,
        "dlpack": lambda array: Foreign(to_torch(array)),
    }[kind]
    loaded = cases.load(operator, "values")
    assert len(loaded) > 100
    for case in loaded:
        result = call(client, case, convert)
        if kind == "torch":
            assert isinstance(result, torch.Tensor)
            values = result.double().numpy()
        else:
            assert result.dtype == cases.DTYPES[case["output"]["dtype"]], case["id"]
            values = result.astype(np.float64)
        assert list(values.shape) == case["output"]["shape"], case["id"]
        cases.check_result(case, values)


def can_be_said(case):
    """Whether a status case is one of tensors that numpy has, whose output the daemon chooses."""
    tensors = [*case["inputs"], case["output"]]
    if "null_params" in case or any(tensor is None for tensor in tensors):
        return False
    return all(
        tensor["dtype"] in cases.DTYPES
        and tensor.get("format", "ND") == "ND"
        and len(tensor["shape"]) <= 32
        for tensor in tensors
    )


@pytest.mark.parametrize("operator", cases.operators())
def test_what_stage_one_refuses_is_refused_with_its_status(client, operator):
    checked = 0
    for case in cases.load(operator, "status"):
        if not can_be_said(case) or case["expected_status"] == 0:
            continue
        for tensor in case["inputs"]:
            dtype = cases.DTYPES[tensor["dtype"]]
            size = max(int(np.prod(tensor["storage_shape"])), 1)
            tensor["data"] = base64.b64encode(bytes(size * dtype.itemsize))
        try:
            result = call(client, case)
        except opserve.InvalidArgumentError as error:
            assert error.aclnn_status == case["expected_status"], case["id"]
            assert error.operator == operator, case["id"]
            checked += 1
        else:  # the case is about an output of another shape, which cannot be asked for
            assert list(result.shape) != case["output"]["shape"], case["id"]
    assert checked >= 10
