"""Writes opserve/_operators.py: a method for each operator that a daemon lists.

usage: generate_operators.py [--target TARGET] [--check]

Run it against a daemon after an operator was added or changed. --check writes nothing and
exits with 1 if the file is not what it would write.
"""

import argparse
import keyword
import pathlib
import re
import sys
import textwrap

import grpc

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from opserve import _data_type, _target, _wire  # noqa: E402

TARGET = HERE.parent / "opserve" / "_operators.py"
WIDTH = 88
RESERVED = {"client", "out", "dtype", "timeout"}
TYPES = {1: "int", 2: "bool", 3: "float"}

HEADER = '''"""A method for each operator, from the catalogue of a daemon.

Written by tools/generate_operators.py; not to be edited.
"""

from __future__ import annotations

from typing import Any, Literal, Optional, TypeVar, Union

from opserve._operator import OperatorCalls, OperatorInfo, Parameters

R = TypeVar("R")


class Operators(OperatorCalls[R]):
    """The operators as methods.

    The first parameter is the object itself, so that inputs may be called `self`. Inputs are
    numpy arrays, CPU torch tensors, objects with `__dlpack__`, resident tensors or, in a
    program, outputs of earlier invocations. Each method takes, beside the operator's own
    arguments, `out`, `dtype` and `timeout` (see Parameters), and raises OpserveError, or
    TypeError and ValueError for what cannot be sent.
    """
'''


def snake(name: str) -> str:
    """kl_div_backward for KlDivBackward, l1_loss_backward for L1LossBackward."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


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


def argument_type(attribute) -> str:
    kind = TYPES[attribute.type]
    if not attribute.names:
        return kind
    names = ", ".join(f'"{name.name}"' for name in attribute.names)
    return f"Union[{kind}, Literal[{names}]]"


def default(attribute) -> str:
    value = getattr(
        attribute.default_value, attribute.default_value.WhichOneof("value")
    )
    for name in attribute.names:
        if name.value == value:
            return f'"{name.name}"'
    return repr(value)


def dtype_names(dtypes) -> list:
    return [_data_type.NAMES[_data_type.DataType(number)] for number in dtypes]


def docstring(operator) -> str:
    indent = " " * 8
    output = operator.outputs[0]
    parts = [
        f'{indent}"""{operator.summary}',
        "",
        fill_paragraph(operator.documentation, indent),
    ]
    parts += ["", f"{indent}Args:"]
    for entry in operator.inputs:
        text = f"{entry.name}: {entry.documentation} {', '.join(dtype_names(entry.dtypes))}."
        parts.append(fill(text, indent + "    ", "    "))
    for entry in operator.attributes:
        parts.append(
            fill(f"{entry.name}: {entry.documentation}", indent + "    ", "    ")
        )
    parts += ["", f"{indent}Returns:"]
    text = f"{output.name}: {output.documentation} {', '.join(dtype_names(output.dtypes))}."
    parts.append(fill(text, indent + "    ", "    "))
    parts += ["", f"{indent}Raises:"]
    text = (
        "InvalidArgumentError: shapes, dtypes or attributes that do not go together; it "
        "names the argument (aclnn_status 161002)."
    )
    parts.append(fill(text, indent + "    ", "    "))
    parts.append(f'{indent}"""')
    return "\n".join(parts)


def method(operator) -> str:
    names = [entry.name for entry in (*operator.inputs, *operator.attributes)]
    for name in names:
        if name in RESERVED or keyword.iskeyword(name):
            raise SystemExit(
                f"{operator.name}: {name} cannot be an argument's name in Python"
            )
    lines = ["    def " + snake(operator.name) + "(", "        client,", "        /,"]
    lines += [f"        {entry.name}: Any," for entry in operator.inputs]
    lines += ["        *,"]
    lines += [
        f"        {entry.name}: {argument_type(entry)} = {default(entry)},"
        for entry in operator.attributes
    ]
    lines += [
        "        out: Any = None,",
        "        dtype: Any = None,",
        "        timeout: Optional[float] = None,",
        "    ) -> R:",
        docstring(operator),
        "        return client._call_operator(",
        f'            "{operator.name}",',
    ]
    for entries in (operator.inputs, operator.attributes):
        lines.append("            {")
        lines += [f'                "{entry.name}": {entry.name},' for entry in entries]
        lines.append("            },")
    lines += ["            Parameters(out, dtype, timeout),", "        )"]
    return "\n".join(lines)


def strings(names) -> str:
    """A tuple of strings."""
    quoted = [f'"{name}"' for name in names]
    return f"({', '.join(quoted)}{',' if len(quoted) == 1 else ''})"


def info(operator) -> str:
    lines = [f'    "{operator.name}": OperatorInfo(']
    lines += [
        f'        "{operator.name}",',
        f'        "{snake(operator.name)}",',
        "        {",
    ]
    for entry in operator.inputs:
        lines.append(
            f'            "{entry.name}": {strings(dtype_names(entry.dtypes))},'
        )
    attributes = strings(entry.name for entry in operator.attributes)
    lines += ["        },", f"        {attributes},"]
    lines += [f'        "{operator.outputs[0].name}",', "    ),"]
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
