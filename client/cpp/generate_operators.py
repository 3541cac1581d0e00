#!/usr/bin/python3
"""Writes client/cpp/operators.h from the catalogue: usage generate_operators.py [--check] BUILD_DIRECTORY.

--check writes nothing, and fails if the header is out of date. Needs clang-format.
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "client/cpp/operators.h"
sys.path.insert(0, str(ROOT / "ops"))

import reference  # noqa: E402

HEAD = """\
// The operators as methods. Made by generate_operators.py from the catalogue: change that, not this.
//
// OPERATORS.md tells of each operator's formula, dtypes and attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/operator_calls.h"
#include "client/cpp/request.h"

namespace opserve {

// A method for each operator. Inputs are tensors of any kind, and outputs of earlier methods; those
// that may be left out, and attributes, are fields of the last argument. Attributes that are left
// out have the operator's defaults.
class Operators : public OperatorCalls {
 public:
"""
TYPES = {
    "INT64": "std::optional<int64_t>", "BOOL": "std::optional<bool>",
    "DOUBLE": "std::optional<double>", "TEXT": "std::optional<Text>",
    "DTYPE": "std::optional<DataType>", "SCALAR": "std::optional<AttributeValue>",
    "INT64S": "NumberList<int64_t>", "BOOLS": "NumberList<bool>",
    "DOUBLES": "NumberList<double>",
}


def attribute_type(attribute):
    return "std::optional<AttributeValue>" if attribute.get("names") else TYPES[attribute["type"]]


def comment(text):
    """As lines of a comment, which clang-format breaks."""
    return "".join(f"// {line}\n" for line in text.splitlines())


def remark(attribute):
    values = reference.choices(attribute) if attribute.get("names") or attribute.get("texts") else ""
    return "; ".join(filter(None, [values, reference.default(attribute)]))


def options(operator):
    """The declarations of the last argument's fields."""
    lines = [f"std::optional<{input_type(part)}> {part['name']} = {{}};"
             for part in operator.get("inputs", []) if part.get("optional")]
    lines += [f"{attribute_type(part)} {part['name']} = {{}};  // {remark(part)}"
              for part in operator.get("attributes", [])]
    if any(part.get("dtypes") for part in operator["outputs"]):
        lines.append("std::vector<OutputDataType> output_dtypes = {};")
    if any(part.get("masked") for part in operator["outputs"]):
        lines.append("std::vector<std::string> masked_outputs = {};  // as Invocation's")
    return lines


def input_type(part):
    return "std::vector<ListedTensor>" if part.get("list") else "ListedTensor"


def output_type(part):
    return "OutputList" if part.get("list") else "OutputOf"


def method(operator):
    name, outputs, fields = operator["name"], operator["outputs"], options(operator)
    required = [part for part in operator.get("inputs", []) if not part.get("optional")]
    lines = []
    if fields:
        lines += [f"struct {name}Options {{", *fields, "};"]
    if len(outputs) > 1:
        lines += [f"struct {name}Outputs {{",
                  *(f"{output_type(part)} {part['name']};" for part in outputs), "};"]
    lines.append(comment(operator["summary"]).rstrip())
    result = f"{name}Outputs" if len(outputs) > 1 else output_type(outputs[0])
    arguments = [f"const {input_type(part)}& {part['name']}" for part in required]
    if fields:
        # Not a default argument: the fields' initialisers are not known before the class's end.
        arguments.append(f"const {name}Options& options")
    lines.append(f"{result} {name}({', '.join(arguments)}) {{")
    lines.append(f'Invocation call{{.operator_name = "{name}"}};')
    for part in operator.get("inputs", []):
        value = f"options.{part['name']}" if part.get("optional") else part["name"]
        lines.append(f'AddInput("{part["name"]}", {value}, &call);')
    for part in operator.get("attributes", []):
        lines.append(f'AddAttribute("{part["name"]}", options.{part["name"]}, &call);')
    for field in ("output_dtypes", "masked_outputs"):
        if any(f" {field} = " in line for line in fields):
            lines.append(f"call.{field} = options.{field};")
    lines.append("const uint32_t number = Invoke(std::move(call));")
    values = [f'{{number, "{part["name"]}"}}' for part in outputs]
    lines.append(f"return {{{', '.join(values)}}};" if len(outputs) > 1 else f"return {values[0]};")
    lines.append("}")
    if fields:
        given = ", ".join(part["name"] for part in required)
        lines.append(f"{result} {name}({', '.join(arguments[:-1])}) "
                     f"{{ return {name}({given}{', ' if given else ''}{name}Options()); }}")
    return "\n".join(lines) + "\n\n"


def render(operators):
    text = HEAD + "".join(map(method, operators)) + "};\n\n}  // namespace opserve\n"
    return subprocess.run(["clang-format", f"--assume-filename={HEADER}"], input=text, text=True,
                          check=True, capture_output=True).stdout


def main():
    header = render(reference.catalogue(pathlib.Path(sys.argv[-1]).resolve()))
    if "--check" not in sys.argv:
        HEADER.write_text(header, encoding="utf-8")
    elif not HEADER.exists() or HEADER.read_text(encoding="utf-8") != header:
        sys.exit("client/cpp/operators.h is not current: run client/cpp/generate_operators.py "
                 "BUILD_DIRECTORY")


if __name__ == "__main__":
    main()
