"""Writes opserve/_operators.py: a method for each operator that a daemon lists.

usage: generate_operators.py [--target TARGET] [--check]

Run it against a daemon after an operator was added or changed. --check writes nothing and
exits with 1 if the file is out of date.
"""

import argparse
import json
import keyword
import math
import pathlib
import re
import sys
import textwrap

import grpc

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from opserve import _data_type, _target, _wire  # noqa: E402
from opserve import AsyncClient, Client, ExecuteStream, Program  # noqa: E402

TARGET = HERE.parent / "opserve" / "_operators.py"
WIDTH = 88
# Kinds of attributes, by AttributeDescriptor.Type: OperatorInfo's name, and Python's type.
KINDS = {
    1: ("int", "int"),
    2: ("bool", "bool"),
    3: ("float", "float"),
    4: ("text", "str"),
    5: ("dtype", "Any"),
    6: ("scalar", "Scalar"),
    7: ("ints", "Sequence[int]"),
    8: ("bools", "Sequence[bool]"),
    9: ("floats", "Sequence[float]"),
}

HEADER = '''"""A method for each operator, from the catalogue of a daemon.

Written by tools/generate_operators.py; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Optional, TypeVar, Union

from opserve._operator import (
    OperatorCalls,
    OperatorInfo,
    OutputInfo,
    Parameters,
    Scalar,
)

R = TypeVar("R")


class Operators(OperatorCalls[R]):
    """The operators as methods.

    The first parameter is the object itself, so that inputs may be called `self`. Inputs are
    numpy arrays, CPU torch tensors, objects with `__dlpack__`, numbers and nested lists of
    them, resident tensors or, in a program, outputs of earlier invocations; of those that are
    None, nothing is sent. Numbers get the dtype of the first tensor where the operator takes
    it there and it holds them, else float32, int64 or bool. Each method takes, beside the
    operator's own arguments, `out`, `dtype` and `timeout` (see Parameters), `outputs` if some
    may be left out, and raises OpserveError, or TypeError and ValueError for what cannot be
    sent. An operator with several outputs gives a named tuple.
    """
'''


def snake(name: str) -> str:
    """kl_div_backward for KlDivBackward, l1_loss for L1Loss, nll_loss for NLLLoss."""
    words = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
    return re.sub(words, "_", name).lower()


def method_name(operator) -> str:
    """SystemExit: a class with the operators as methods has another one of this name."""
    name = snake(operator.name)
    if keyword.iskeyword(name):
        return f"{name}_"
    for kind in (Client, AsyncClient, ExecuteStream, Program):
        for base in kind.__mro__:
            if base.__name__ != "Operators" and name in vars(base):
                raise SystemExit(f"{operator.name}: {kind.__name__} has another {name}")
    return name


def fill(text: str, indent: str, hanging: str = "") -> str:
    return "\n".join(
        textwrap.fill(
            line.strip(),
            WIDTH,
            initial_indent=indent if number == 0 else indent + hanging,
            subsequent_indent=indent + hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for number, line in enumerate(text.splitlines())
    )


def fill_paragraph(text: str, indent: str) -> str:
    """Lines that begin with spaces are formulas and keep to themselves."""
    lines = []
    for line in text.splitlines():
        own = len(line) - len(line.lstrip())
        lines.append(fill(line, indent + " " * own))
    return "\n".join(lines)


def argument_names(operator) -> dict:
    """The method's names for inputs and attributes."""
    taken = {"client", "timeout", "outputs"}
    return {
        entry.name: f"{entry.name}_"
        if entry.name in taken or keyword.iskeyword(entry.name)
        else entry.name
        for entry in (*operator.inputs, *operator.attributes)
    }


def literals(names) -> str:
    return f"Literal[{', '.join(json.dumps(name) for name in names)}]"


def argument_type(attribute) -> str:
    _, kind = KINDS[attribute.type]
    if attribute.texts:
        kind = literals(attribute.texts)
    elif attribute.names:
        kind = f"Union[{kind}, {literals(name.name for name in attribute.names)}]"
    is_any = kind == "Any" or attribute.required or default(attribute) != "None"
    return kind if is_any else f"Optional[{kind}]"


def number(value) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def numbers(values) -> str:
    """A tuple of them."""
    parts = [number(value) for value in values]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def scalar(value) -> str:
    """None: Python has no number of this dtype."""
    name = _data_type.DataType(value.dtype).name
    content = getattr(value, value.WhichOneof("value"))
    if name == "BOOL":
        return repr(bool(content))
    if name == "INT64":
        return number(int(content))
    return number(float(content)) if name == "DOUBLE" else "None"


def default(attribute) -> str:
    """The method's default for an attribute; "None" leaves it to the daemon."""
    kind = attribute.default_value.WhichOneof("value")
    if kind is None:
        return "None"
    value = getattr(attribute.default_value, kind)
    for name in attribute.names:
        if name.value == value:
            return json.dumps(name.name)
    if kind in ("name", "text_value"):
        return json.dumps(value)
    if kind == "dtype_value":
        return json.dumps(dtype_names([value])[0])
    if kind == "scalar_value":
        return scalar(value)
    if kind in ("int64_list", "bool_list", "double_list"):
        return numbers(value.values)
    return number(value)


def default_text(attribute) -> str:
    """For the documentation, where the method has no default of its own."""
    if attribute.required or default(attribute) != "None":
        return ""
    if not attribute.HasField("default_value"):
        return " Optional."
    value = attribute.default_value.scalar_value
    content = getattr(value, value.WhichOneof("value"))
    return f" Default: {content} ({dtype_names([value.dtype])[0]})."


def dtype_names(dtypes) -> list:
    return [_data_type.NAMES[_data_type.DataType(number)] for number in dtypes]


def docstring(operator) -> str:
    indent = " " * 8
    names = argument_names(operator)
    parts = [
        f'{indent}"""{operator.summary}',
        "",
        fill_paragraph(operator.documentation, indent),
    ]

    def add(name, documentation, dtypes, remark) -> None:
        facts = f" {', '.join(dtype_names(dtypes))}." if dtypes else ""
        text = f"{name}: {documentation}{facts}{remark}"
        parts.append(fill(text, indent + "    ", "    "))

    parts += ["", f"{indent}Args:"]
    for entry in operator.inputs:
        remark = " A list of tensors." if entry.list else ""
        remark += " Optional." if entry.optional else ""
        add(names[entry.name], entry.documentation, entry.dtypes, remark)
    for entry in operator.attributes:
        add(names[entry.name], entry.documentation, (), default_text(entry))
    if masked(operator):
        text = "of the outputs that may be left out, those to compute; None: all."
        add("outputs", text, (), "")
    parts += ["", f"{indent}Returns:"]
    for entry in operator.outputs:
        remark = " A list of tensors." if entry.list else ""
        remark += " None if it is not among `outputs`." if entry.masked else ""
        add(entry.name, entry.documentation, entry.dtypes, remark)
    parts += ["", f"{indent}Raises:"]
    text = (
        "InvalidArgumentError: shapes, dtypes or attributes that do not go together; it "
        "names the argument (aclnn_status 161002)."
    )
    parts.append(fill(text, indent + "    ", "    "))
    parts.append(f'{indent}"""')
    return "\n".join(parts)


def masked(operator) -> list:
    """The names of outputs that may be left out."""
    return [output.name for output in operator.outputs if output.masked]


def parameters(operator) -> dict:
    """The method's parameters beside the operator's own arguments: types by name.

    An argument that is called `out` or `dtype` has the name for itself.
    """
    found = {"out": "Any", "dtype": "Any", "timeout": "Optional[float]"}
    if masked(operator):
        found["outputs"] = f"Optional[Sequence[{literals(masked(operator))}]]"
    own = argument_names(operator).values()
    return {name: kind for name, kind in found.items() if name not in own}


def signature(operator) -> list:
    """The method's parameters: required inputs and optional ones behind them, then by keyword."""
    names = argument_names(operator)
    required = [n for n, entry in enumerate(operator.inputs) if not entry.optional]
    last = required[-1] if required else -1
    lines, by_keyword = [], []
    for position, entry in enumerate(operator.inputs):
        if not entry.optional:
            lines.append(f"{names[entry.name]}: Any,")
        elif position > last:
            lines.append(f"{names[entry.name]}: Any = None,")
        else:
            by_keyword.append(f"{names[entry.name]}: Any = None,")
    for entry in operator.attributes:
        declared = f"{names[entry.name]}: {argument_type(entry)}"
        by_keyword.append(
            f"{declared}," if entry.required else f"{declared} = {default(entry)},"
        )
    for name, kind in parameters(operator).items():
        by_keyword.append(f"{name}: {kind} = None,")
    return [*lines, "*,", *by_keyword]


def method(operator) -> str:
    names = argument_names(operator)
    lines = ["    def " + method_name(operator) + "(", "        client,", "        /,"]
    lines += [f"        {line}" for line in signature(operator)]
    lines += [
        "    ) -> R:",
        docstring(operator),
        "        return client._call_operator(",
        f'            "{operator.name}",',
    ]
    for entries in (operator.inputs, operator.attributes):
        if not entries:
            lines.append("            {},")
            continue
        lines.append("            {")
        lines += [
            f'                "{entry.name}": {names[entry.name]},' for entry in entries
        ]
        lines.append("            },")
    taken = parameters(operator)
    given = [name if name in taken else "None" for name in ("out", "dtype", "timeout")]
    given += ["outputs"] if "outputs" in taken else []
    lines += [f"            Parameters({', '.join(given)}),", "        )"]
    return "\n".join(lines)


def row(indent: int, head: str, values) -> list:
    """`head` and a tuple, in one line or, if that is too long, in one line for each."""
    values = list(values)
    joined = f"({', '.join(values)}{',' if len(values) == 1 else ''})"
    line = " " * indent + head + joined + ","
    if len(line) <= WIDTH:
        return [line]
    inner = [" " * (indent + 4) + value + "," for value in values]
    return [" " * indent + head + "(", *inner, " " * indent + "),"]


def output_info(output) -> str:
    facts = [f'"{output.name}"']
    facts += ["is_list=True"] if output.list else []
    facts += ["is_masked=True"] if output.masked else []
    facts += [] if output.dtypes else ["is_dtype_fixed=True"]
    return f"OutputInfo({', '.join(facts)})"


def info(operator) -> str:
    lines = [f'    "{operator.name}": OperatorInfo(']
    lines += [
        f'        "{operator.name}",',
        f'        "{method_name(operator)}",',
    ]
    lines.append("        {" if operator.inputs else "        {},")
    for entry in operator.inputs:
        dtypes = [f'"{name}"' for name in dtype_names(entry.dtypes)]
        lines += row(12, f'"{entry.name}": ', dtypes)
    if operator.inputs:
        lines.append("        },")
    kinds = [
        f'"{entry.name}": "{KINDS[entry.type][0]}"' for entry in operator.attributes
    ]
    line = f"        {{{', '.join(kinds)}}},"
    if len(line) <= WIDTH:
        lines.append(line)
    else:
        lines += [
            "        {",
            *(f"            {kind}," for kind in kinds),
            "        },",
        ]
    lines += row(8, "", map(output_info, operator.outputs))
    lists = [f'"{entry.name}"' for entry in operator.inputs if entry.list]
    if lists:
        lines += row(8, "", lists)
    lines.append("    ),")
    return "\n".join(lines)


def generate(operators) -> str:
    parts = [HEADER]
    parts += ["\n".join([method(operator), ""]) for operator in operators]
    table = [
        "",
        "OPERATORS: dict[str, OperatorInfo] = {",
        *map(info, operators),
        "}",
        "",
    ]
    return "\n".join(parts + table)


def list_operators(target: str):
    uri, credentials, options = _target.channel_arguments(
        _target.parse_target(target), None, None, _target.Keepalive()
    )
    with grpc.insecure_channel(uri, options) as channel:
        call = channel.unary_unary(_wire.LIST_OPERATORS)
        answer = call(_wire.ListOperatorsRequest().SerializeToString(), timeout=30)
    return _wire.ListOperatorsResponse.FromString(answer).operators


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default=_target.default_target())
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    current = generate(list_operators(arguments.target))
    if not arguments.check:
        TARGET.write_text(current, encoding="utf-8")
        return 0
    if TARGET.read_text(encoding="utf-8") == current:
        return 0
    print(f"{TARGET} is not current; run {__file__}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
