"""The outputs of an invocation: which are computed, where they go, how they are given."""

from __future__ import annotations

import collections
import dataclasses
import functools
import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

from opserve import _dtypes, _tensors
from opserve._data_type import DataType
from opserve._operator import OperatorInfo, Parameters
from opserve._views import TensorView


@dataclasses.dataclass(frozen=True)
class Destination:
    """Where a result is to be written: a tensor of the caller's, and its view."""

    out: Any
    view: TensorView


@dataclasses.dataclass(frozen=True)
class Wishes:
    """The caller's wishes for the outputs of one invocation.

    Attributes:
        requests: named to the daemon, with the dtype, if it is not to be the default.
        destinations: by output.
    """

    requests: Mapping[str, Optional[DataType]]
    destinations: Mapping[str, Destination]


def wishes(info: Optional[OperatorInfo], parameters: Parameters) -> Wishes:
    """TypeError, ValueError: there are no such outputs, or they cannot be given so."""
    first = info.output if info is not None else ""
    dtypes = parameters.dtype
    if info is None and dtypes is not None and not isinstance(dtypes, Mapping):
        raise ValueError(
            f"dtype is {dtypes!r}; expected a dict by outputs, as this package does not know "
            "those of the operator"
        )
    if not isinstance(dtypes, Mapping):
        dtypes = {} if dtypes is None else {first: dtypes}
    requests: dict[str, Optional[DataType]] = {
        name: _dtypes.from_any(dtype) for name, dtype in dtypes.items()
    }
    destinations = {
        name: Destination(out, _tensors.destination_view(out))
        for name, out in _outs(info, parameters.out).items()
    }
    fixed = [one.name for one in info.outputs if one.is_dtype_fixed] if info else []
    for name, destination in destinations.items():
        if info is None:  # the daemon's choice, which must then be the destination's
            continue
        requests.setdefault(name, None if name in fixed else destination.view.dtype)
    if info is not None:
        known = [output.name for output in info.outputs]
        for name in requests:
            if name not in known:
                raise ValueError(
                    f'no output is named "{name}"; there are {", ".join(known)}'
                )
    for name in _masked_wanted(info, requests, parameters.outputs):
        requests.setdefault(name, None)
    return Wishes(requests, destinations)


def _outs(info: Optional[OperatorInfo], out: Any) -> dict[str, Any]:
    """The tensors to write to, by output."""
    if out is None:
        return {}
    if info is None:
        return {"": out}
    if info.gives_one_tensor and not isinstance(out, Mapping):
        return {info.output: out}
    lists = [output.name for output in info.outputs if output.is_list]
    if isinstance(out, (tuple, list)):
        if len(out) != len(info.outputs):
            raise ValueError(
                f"out has {len(out)} tensors; there are {len(info.outputs)} outputs"
            )
        out = dict(zip((output.name for output in info.outputs), out))
    if not isinstance(out, Mapping):
        raise ValueError(
            "out is one tensor; expected a tuple with one for each output, or a dict"
        )
    named = {name: tensor for name, tensor in out.items() if tensor is not None}
    for name in lists:
        if name in named:
            raise ValueError(f"out has {name}, which is a list and has no place there")
    return named


def _masked_wanted(
    info: Optional[OperatorInfo],
    requests: Mapping[str, Optional[DataType]],
    outputs: Optional[Sequence[str]],
) -> Sequence[str]:
    """The masked outputs to name, of which those left out are not computed; none: all are."""
    masked = info.masked if info is not None else None
    if outputs is None:
        # A dtype or a place alone leaves none out.
        is_named = masked is not None and any(name in requests for name in masked)
        return masked if is_named and masked is not None else ()
    if isinstance(outputs, str):
        outputs = [outputs]
    if not outputs:
        raise ValueError("outputs names none; expected one at least, or None for all")
    if masked is not None:
        for name in outputs:
            if name not in masked:
                raise ValueError(
                    f'outputs has "{name}", which is none of those that may be left out '
                    f'({", ".join(masked) or "there are none"})'
                )
        for name in requests:
            if name in masked and name not in outputs:
                raise ValueError(f"{name} is not among outputs")
    return outputs


def computed(info: OperatorInfo, requests: Mapping[str, object]) -> list[str]:
    """The names of the outputs that there will be, if `requests` are named to the daemon."""
    masked = info.masked
    chooses = any(name in masked for name in requests)
    return [
        output.name
        for output in info.outputs
        if not chooses or not output.is_masked or output.name in requests
    ]


def arrange(info: OperatorInfo, give: Callable[[str, bool], Any]) -> Any:
    """The result of an operator's call: one output as it is, several as a named tuple.

    `give` has the value of an output: its name, and whether it is a list.
    """
    values = [give(output.name, output.is_list) for output in info.outputs]
    if len(values) == 1:
        return values[0]
    names = tuple(output.name for output in info.outputs)
    return _tuple_of(info.name, names)(*values)


def gather(
    info: Optional[OperatorInfo], names: Sequence[str], results: Sequence[Any]
) -> Any:
    """The results of one invocation, with the names that the daemon gives them, as arranged."""
    single: dict[str, Any] = {}
    lists: dict[str, list[Any]] = collections.defaultdict(list)
    for name, result in zip(names, results):
        output, dot, number = name.rpartition(".")
        if dot and number.isdigit():
            lists[output].append(result)
        else:
            single[name] = result
    if info is not None:
        if info.gives_one_tensor:
            return results[0]  # whatever its name
        return arrange(
            info,
            lambda name, is_list: lists.get(name, []) if is_list else single.get(name),
        )
    outputs = {**single, **lists}
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    return _tuple_of("Outputs", tuple(outputs))(*outputs.values())


@functools.lru_cache(maxsize=None)
def _tuple_of(operator: str, names: tuple[str, ...]) -> Any:
    safe = [f"{name}_" if keyword.iskeyword(name) else name for name in names]
    kind: Any = collections.namedtuple(operator, safe, rename=True)  # type: ignore[misc]
    return kind
