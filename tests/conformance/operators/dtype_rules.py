"""The rules for dtypes that descriptions name, by torch's promotion."""

import re

import torch

from elements import DTYPES, INTEGERS, NAME, TORCH, is_floating


def lift(dtype, kind):
    """`dtype`, or the default of the kind of `kind` if that is a greater one."""
    order = [lambda d: d == "BOOL", lambda d: d in INTEGERS, is_floating]
    level = lambda d: next(i for i, test in enumerate(order) if test(d))
    if level(kind) <= level(dtype):
        return dtype
    return "FLOAT" if is_floating(kind) else "INT64"


class Rule:
    """Evaluates the rule of an output's dtype."""

    def __init__(self, inputs, attributes):
        self.inputs, self.attributes = inputs, attributes

    def dtype(self, expression):
        expression = expression.strip()
        if expression in DTYPES:
            return expression
        match = re.fullmatch(r"(\w+)\((.*)\)", expression)
        if not match:
            return self.tensors(expression)[0].dtype
        name, arguments = match[1], split_arguments(match[2])
        if name == "promote":  # 0-d tensors count as any other
            found = []
            for argument in arguments:
                found += [self.dtype(argument)] if "(" in argument else [t.dtype for t in self.tensors(argument)]
            return common(found)
        if name == "promote_scalar":
            result = self.dtype(arguments[0])
            for argument in arguments[1:]:
                value = self.attributes.get(argument)
                if value is not None and "scalar" in value:
                    result = lift(result, value["scalar"][0])
                elif value is not None and "double_value" in value:
                    result = lift(result, "FLOAT")
            return result
        if name == "float_of":
            return lift(self.dtype(arguments[0]), "FLOAT")
        if name == "sum_of":
            result = self.dtype(arguments[0])
            return result if is_floating(result) else "INT64"
        if name == "like":
            return self.dtype(arguments[0])
        if name == "like_or":
            return self.dtype(arguments[0] if self.inputs.get(arguments[0]) is not None else arguments[1])
        if name == "attr":
            value = self.attributes.get(arguments[0])
            if value is None:
                return self.dtype(arguments[1]) if len(arguments) > 1 else "FLOAT"
            return value["dtype_value"]
        if name == "quotient":
            value = self.attributes.get(arguments[0], {"int64_value": 0})
            mode = value.get("int64_value", {"true": 0}.get(value.get("name"), 1))
            result = self.dtype(arguments[1])
            return lift(result, "FLOAT") if mode == 0 else result
        if name == "range_dtype":
            given = [self.attributes[a]["scalar"][0] for a in arguments if a in self.attributes]
            return "FLOAT" if any(map(is_floating, given)) else "INT64"
        raise KeyError(f"no dtype rule {name}")

    def tensors(self, name):
        value = self.inputs[name]
        return value if isinstance(value, list) else [value]


def common(dtypes):
    """The dtype that all of them are promoted to; None of none."""
    result = None
    for dtype in dtypes:
        result = dtype if result is None else NAME[torch.promote_types(TORCH[result], TORCH[dtype])]
    return result


def split_arguments(text_):
    """At the commas that are not in parentheses."""
    parts, depth, current = [], 0, ""
    for letter in text_:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += letter
    return parts + [current.strip()] if current.strip() else parts


def is_castable(dtype, to):
    """Whether a result of `dtype` may be stored as `to`: only within its kind or to a greater one."""
    return lift(to, dtype) == to
