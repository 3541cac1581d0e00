#!/usr/bin/python3
"""Writes the cases of all operators to tests/data/operators: generate.py [--operator NAME ...].

Reads the descriptions in ops/catalog for what a call looks like, and the oracles in families for what comes out of it.
Needs Debian's python3-torch, python3-protobuf and protoc. The same seeds give the same files.

A file has a JSON object a line:
  name        what the case is about
  inputs      by name: a tensor, {"list": [tensors]}; what is not there is left out
  attributes  by name: {"<field of AttributeValue>": value}, or {"scalar": [dtype, number]}
  outputs     what is asked for: [name, dtype or null], if anything
  expected    tensors by name; all results that there are
  ulps, unit  how far off a floating result may be, in units of the last place of dtype `unit`, or of its own
  slack       how much further, absolutely: a number, or one for each element (base64 of float32) by output
  refused     instead of `expected`: the arguments of which the error must name one
  rule        which rule of the description a refused call breaks (rules.py), if it is one of those
A tensor is [dtype, shape, data] or [dtype, shape, data, strides, offset]; data is base64 of its storage.
"""

import argparse
import gzip
import inspect
import itertools
import json
import pathlib
import re
import sys

import numpy as np
import torch

import descriptions
import families  # noqa: F401, it defines the oracles
import oracles
import rules
from dtype_rules import Rule, is_castable
from elements import Source, Tensor, accepted, as_json, encode, is_floating, rounded, special_values, text
from refusals import Refusals

DATA = pathlib.Path(__file__).resolve().parents[3] / "tests/data/operators"


class Operator(Refusals):
    def __init__(self, description, kinds):
        self.description = description
        self.name = description.name
        self.kinds = kinds
        self.entry = oracles.find(self.name)
        arguments = description.argument
        is_tensor = lambda a: a.kind in (kinds.TENSOR, kinds.TENSOR_LIST)
        self.inputs = [a for a in arguments if is_tensor(a) and a.role != kinds.OUTPUT]
        self.outputs = [a for a in arguments if is_tensor(a) and a.role in (kinds.OUTPUT, kinds.IN_PLACE)]
        self.attributes = [a for a in arguments if not is_tensor(a) and a.role == kinds.INPUT]
        tolerance = description.tolerance
        self.ulps = tolerance.ulps or 2
        if bool(tolerance.sums) != bool(self.entry.terms):
            raise ValueError(f"{self.name}: the description has tolerance.sums or the oracle has terms, but not both")
        self.source = Source(self.name)
        self.checks = rules.checks_of(description)
        self.cases = []
        self.failures = []
        self.call_domains = {}  # as the entry's, of the call that is being made
        self.plain = None  # a call that is right, for the refused ones
        self.right = []  # all of them
        self.names_out = [o.name for o in self.outputs]

    # Attributes

    def as_value(self, argument, value):
        """As it stands in a case; Python's bool, int, float, str and lists, ("DTYPE", number) for scalars."""
        kinds = self.kinds
        if isinstance(value, dict):
            return value
        if argument.kind == kinds.SCALAR:
            if not isinstance(value, tuple):
                value = ("BOOL" if isinstance(value, bool) else "INT64" if isinstance(value, int) else "FLOAT", value)
            return {"scalar": list(value)}
        if argument.kind in (kinds.DOUBLE, kinds.FLOAT):
            return {"double_value": float(value)}
        if argument.kind == kinds.DTYPE:
            return {"dtype_value": value}
        if argument.kind in (kinds.INT_ARRAY,):
            return {"int64_list": list(value)}
        if argument.kind == kinds.BOOL_ARRAY:
            return {"bool_list": list(value)}
        if argument.kind in (kinds.FLOAT_ARRAY, kinds.SCALAR_LIST):
            return {"double_list": [float(v) for v in value]}
        if argument.kind == kinds.TEXT:
            return {"text_value": value}
        if argument.kind == kinds.BOOL:
            return {"bool_value": value}
        return {"name": value} if isinstance(value, str) else {"int64_value": value}

    def python_value(self, argument, value):
        """What the oracle gets."""
        if value is None:
            if not argument.HasField("default"):
                return None
            default = argument.default
            if argument.kind in (self.kinds.TEXT, self.kinds.DTYPE):
                return default
            default = default.split()[-1]  # "DOUBLE 0.01"
            value = json.loads(default) if re.match(r"[-\[0-9tf]", default) else default
            return rounded(value, "FLOAT") if argument.kind == self.kinds.FLOAT else value
        ((field, content),) = value.items()
        if field == "scalar":
            return rounded(content[1], content[0])
        if argument.kind == self.kinds.FLOAT:
            return rounded(content, "FLOAT")
        if field == "name":
            return {n: int(v) for n, v in (pair.split("=") for pair in argument.names.split())}[content]
        return content

    def default_attributes(self, dtype, shape):
        """Of a call whose first tensor has this dtype: those that must be given."""
        found = {}
        for argument in self.attributes:
            values = self.values_of(argument, dtype)
            required = not argument.HasField("default") and not argument.optional
            if required and values:
                found[argument.name] = self.as_value(argument, values[0])
        return found

    def values_of(self, argument, dtype):
        """Values worth a case, for a first tensor of `dtype`."""
        given = self.entry.attributes.get(argument.name)
        if given is not None:
            values = given(dtype) if callable(given) else given
            return list(values)
        kinds = self.kinds
        if argument.kind == kinds.SCALAR:
            lifts = any("promote_scalar" in o.dtype for o in self.outputs)
            if dtype is None or is_floating(dtype) or lifts:
                return [("FLOAT", 1.5), ("INT64", 2), ("DOUBLE", -0.5), ("FLOAT", 0.25)]
            return [("INT64", 2), ("INT32", 3), ("INT64", 1)] if dtype != "BOOL" else [("BOOL", True), ("BOOL", False)]
        if argument.kind == kinds.BOOL:
            return [False, True]
        if argument.names:
            pairs = [pair.split("=") for pair in argument.names.split()]
            if argument.kind == kinds.TEXT:
                return argument.names.split()
            return [p[0] for p in pairs] + [int(p[1]) for p in pairs]
        if argument.kind == kinds.DTYPE:
            return [d for d in accepted(argument) if not is_floating(dtype) or is_floating(d)]
        if argument.kind in (kinds.FLOAT, kinds.DOUBLE):
            lowest = float(argument.minimum) if argument.HasField("minimum") else -np.inf
            highest = float(argument.maximum) if argument.HasField("maximum") else np.inf
            return [number for number in (0.5, 2.0) if lowest <= number <= highest]
        return []

    # Inputs

    def domain(self, name):
        return {**self.entry.domains, **self.call_domains}.get(name)

    def make_inputs(self, shapes, dtypes, layouts=None, small=True):
        layouts = layouts or {}
        result = {}
        for argument in self.inputs:
            shape = shapes.get(argument.name)
            if shape is None:
                continue
            dtype = dtypes[argument.name]
            make = lambda s, d: self.source.elements(s, d, self.domain(argument.name), small)
            if argument.kind == self.kinds.TENSOR_LIST:
                kinds_of = dtype if isinstance(dtype, list) else [dtype] * len(shape)
                result[argument.name] = [Tensor(d, make(s, d)) for s, d in zip(shape, kinds_of)]
                continue
            layout = layouts.get(argument.name, "plain")
            if argument.role == self.kinds.IN_PLACE:
                layout = "plain"
            array = make(shape, dtype)
            if layout == "repeated" and len(shape) and array.size:
                array[:] = array[:1]
            result[argument.name] = Tensor(dtype, array, layout)
        return result

    def uniform(self, dtype):
        """dtypes of all inputs: `dtype` where it is accepted."""

        def choose(argument):
            chosen = self.entry.dtypes.get(argument.name)
            chosen = chosen(dtype) if callable(chosen) else chosen
            return chosen or (dtype if dtype in accepted(argument) else accepted(argument)[0])

        return {a.name: choose(a) for a in self.inputs}

    # Cases with values

    def compute(self, inputs, attributes, asked):
        """The expected outputs with their slack."""
        rule = Rule(inputs, attributes)
        outputs = {}
        for output in self.outputs:
            if output.role == self.kinds.IN_PLACE:
                if output.name not in inputs:
                    continue
                tensor = inputs[output.name]
                outputs[output.name] = [t.dtype for t in tensor] if isinstance(tensor, list) else tensor.dtype
            elif asked.get(output.name):
                outputs[output.name] = asked[output.name]
            elif output.kind == self.kinds.TENSOR_LIST and output.dtype.startswith("like("):
                source = inputs[output.dtype[5:-1]]
                outputs[output.name] = [t.dtype for t in source] if isinstance(source, list) else source.dtype
            else:
                outputs[output.name] = rule.dtype(output.dtype)
        flat = lambda v: v if isinstance(v, list) else [v]
        all_inputs = [t for v in inputs.values() for t in flat(v)]
        in_floats = (
            any(is_floating(t.dtype) for t in all_inputs)
            or any(is_floating(d) for v in outputs.values() for d in flat(v))
            or any(
                "scalar" in v and is_floating(v["scalar"][0]) and self.entry.scalars_decide for v in attributes.values()
            )
        )
        in_floats = in_floats and not self.entry.whole
        in_double = any(t.dtype == "DOUBLE" for t in all_inputs)

        def operand(argument, tensor):
            values = tensor.values()
            may_float = any(map(is_floating, accepted(argument)))  # else it is an index or a mask
            return values.to(torch.float64) if in_floats and may_float else values

        known = {}
        for argument in self.inputs:
            tensor = inputs.get(argument.name)
            known[argument.name] = (
                None
                if tensor is None
                else [operand(argument, t) for t in tensor] if isinstance(tensor, list) else operand(argument, tensor)
            )
        for argument in self.attributes:
            value = self.python_value(argument, attributes.get(argument.name))
            if argument.kind == self.kinds.SCALAR and value is not None:
                value = float(value) if in_floats else int(value)
            known[argument.name] = value
        known["dtypes"] = {
            n: (t[0].dtype if t else None) if isinstance(t, list) else t.dtype for n, t in inputs.items()
        }
        known["out_dtypes"] = outputs
        results = call(self.entry.function, known)
        if not isinstance(results, dict):
            results = results if isinstance(results, (tuple,)) else (results,)
            results = dict(zip(outputs, results))
        scale = call(self.entry.terms, known) if self.entry.terms and in_floats else None
        unit = 2.0**-53 if in_double else 2.0**-24
        expected, slack = {}, {}
        for name, dtype in outputs.items():
            if name not in results:
                continue
            parts = results[name]
            many = isinstance(parts, list)
            for i, part in enumerate(parts if many else [parts]):
                key = f"{name}.{i}" if many else name
                one = dtype[i] if isinstance(dtype, list) else dtype
                if part.dtype == torch.bool:
                    part = part.to(torch.int64)
                expected[key] = Tensor(one, encode(part, one))
                here = scale.get(name) if isinstance(scale, dict) else scale
                if here is not None and is_floating(one):
                    here = here[i] if isinstance(here, list) else here
                    allowed = (self.description.tolerance.sums * unit * here).expand(part.shape)
                    slack[key] = np.nan_to_num(allowed.numpy().astype(np.float32), posinf=0.0)
        unit_dtype = "FLOAT" if in_floats and not in_double else None
        return expected, slack, unit_dtype

    def add(self, name, inputs, attributes, asked=None, outputs=None):
        asked = asked or {}
        if self.entry.skip and call(
            self.entry.skip, {"inputs": inputs, "attributes": attributes, "asked": asked, "name": name}
        ):
            return
        for check, arguments in self.checks:
            if check == "castable" and not is_castable(
                Rule(inputs, attributes).dtype(arguments[0]), inputs[arguments[1]].dtype
            ):
                self.refuse(name, arguments[1], inputs, attributes, rule=rules.check_rule(check, arguments))
                return
        try:
            expected, slack, unit = self.compute(inputs, attributes, asked)
        except oracles.Unclear:
            return
        except Exception as error:
            raise RuntimeError(
                f"{self.name}: {name}: {[t.shape for t in inputs.values() if isinstance(t, Tensor)]} {attributes}"
            ) from error
        case = {"name": name, "inputs": as_json(inputs)}
        if attributes:
            case["attributes"] = attributes
        requests = [[n, d] for n, d in asked.items()]
        requests += [[n, None] for n in outputs or [] if n not in asked]
        if requests:
            case["outputs"] = requests
        masked = [o.name for o in self.outputs if o.role == self.kinds.OUTPUT and (o.HasField("mask") or o.optional)]
        named = [n for n, _ in requests]
        if any(n in masked for n in named):
            expected = {n: t for n, t in expected.items() if n in named or n not in masked}
        case["expected"] = {n: t.json() for n, t in expected.items()}
        if any(is_floating(t.dtype) for t in expected.values()):
            case["ulps"] = self.ulps
            if unit and any(t.dtype == "DOUBLE" for t in expected.values()):
                case["unit"] = unit
            slack = {n: s for n, s in slack.items() if n in expected and s.size and s.max() > 0}
            if slack:
                case["slack"] = {n: text(s) for n, s in slack.items()}
        self.cases.append(case)
        self.right.append((inputs, attributes))
        if self.plain is None:
            self.plain = (inputs, attributes)

    def calls(self):
        """(name, shapes, attributes) of calls that show different things."""
        if self.entry.calls:
            for i, one in enumerate(self.entry.calls):
                shapes, attributes, *domains = one
                self.call_domains = domains[0] if domains else {}
                by_name = {a.name: a for a in self.attributes}
                yield (f"call {i}", shapes, {n: self.as_value(by_name[n], v) for n, v in attributes.items()})
            return
        names = [a.name for a in self.inputs if not a.optional]
        optional = [a.name for a in self.inputs if a.optional]
        text_ = " ".join(o.shape for o in self.outputs) + " ".join(f"{n}({', '.join(a)})" for n, a in self.checks)
        spreads = "broadcast" in text_
        to_first = any(n in ("broadcasts_to",) for n, _ in self.checks) or self.outputs[0].role == self.kinds.IN_PLACE
        least = max([int(a[1]) for n, a in self.checks if n == "rank"] + [0])
        shapes = [
            ("same shapes", [4, 5]),
            ("odd number of elements", [133]),
            ("0-d", []),
            ("one element", [1]),
            ("empty", [0, 3]),
            ("rank 8", [1, 2, 1, 3, 1, 2, 1, 2]),
            ("three axes", [2, 3, 4]),
            ("two axes", [17, 9]),
        ]
        if any(n == "not_empty" for n, _ in self.checks):
            shapes = [s for s in shapes if s[0] != "empty"]
        for name, shape in shapes:
            if len(shape) >= least:
                yield name, {n: shape for n in names + optional}, {}
        for i in range(len(optional)):
            yield f"without {optional[i]}", {n: [4, 5] for n in names + optional if n != optional[i]}, {}
        if optional:
            yield "without all that is optional", {n: [4, 5] for n in names}, {}
        shrinks = [a[0] for n, a in self.checks if n == "broadcasts_to"]
        fixed = {a for n, arguments in self.checks if n in ("same_shape",) for a in arguments}
        free = [n for n in names + optional if n not in fixed and (n in shrinks or not to_first)]
        if spreads and len(names + optional) > 1:
            for small in ([5], [4, 1], [1], []):
                for n in free:
                    yield f"broadcast {n} {small}", {**{m: [4, 5] for m in names + optional}, n: small}, {}
            if not to_first and not fixed:
                yield (
                    "broadcast both ways",
                    {n: [[4, 1], [1, 5], [5]][i % 3] for i, n in enumerate(names + optional)},
                    {},
                )
                if any(n == "not_empty" for n, _ in self.checks):
                    return
                yield "broadcast to nothing", {n: [[0, 1], [1, 5], []][i % 3] for i, n in enumerate(names)}, {}

    def make_values(self):
        first = self.inputs[0] if self.inputs else None
        dtypes = accepted(first) if first else [None]
        if self.entry.only_dtypes:
            dtypes = [d for d in dtypes if d in self.entry.only_dtypes]
        spare = itertools.cycle(dtypes)
        first_call = None
        for number, (name, shapes, attributes) in enumerate(self.calls()):
            first_call = first_call or (shapes, attributes, self.call_domains)
            dtype = next(spare)
            shown = dtypes if not number or self.entry.calls and len(dtypes) <= 3 else [dtype]
            for d in shown:
                self.add(
                    f"{name}, {d}",
                    self.make_inputs(shapes, self.uniform(d)),
                    {**self.default_attributes(d, shapes), **attributes},
                )
            if dtypes[0] not in shown:
                self.add(
                    f"{name}, {dtypes[0]}",
                    self.make_inputs(shapes, self.uniform(dtypes[0])),
                    {**self.default_attributes(dtypes[0], shapes), **attributes},
                )
        shapes, attributes, self.call_domains = first_call
        self.make_masked_cases(shapes, attributes, dtypes)
        self.make_attribute_cases(shapes, attributes, dtypes)
        self.make_layout_cases(shapes, attributes, dtypes)
        self.make_output_cases(shapes, attributes, dtypes)
        self.make_mixed_cases(shapes, attributes, dtypes)
        if self.entry.specials and first is not None:
            self.make_special_cases(attributes, dtypes)
        if self.entry.extra:
            self.entry.extra(self)
        for name, shapes, attributes in self.calls():  # more of the same where there are few
            for d in dtypes:
                if len(self.cases) < 20 and f"{name}, {d}" not in {case["name"] for case in self.cases}:
                    self.add(
                        f"{name}, {d}",
                        self.make_inputs(shapes, self.uniform(d)),
                        {**self.default_attributes(d, shapes), **attributes},
                    )

    def make_masked_cases(self, shapes, attributes, dtypes):
        """Each choice among masked outputs."""
        masked = [o.name for o in self.outputs if o.role == self.kinds.OUTPUT and (o.HasField("mask") or o.optional)]
        for count in range(1, len(masked) + 1):
            for names in itertools.combinations(masked, count):
                self.add(
                    f"only {', '.join(names)}",
                    self.make_inputs(shapes, self.uniform(dtypes[0])),
                    {**self.default_attributes(dtypes[0], shapes), **attributes},
                    outputs=list(names),
                )

    def make_attribute_cases(self, shapes, attributes, dtypes):
        spare = itertools.cycle(dtypes)
        for argument in self.attributes:
            for d in {dtypes[0]: 0, next(spare): 0, next(spare): 0}:
                for value in self.values_of(argument, d):
                    given = {
                        **self.default_attributes(d, shapes),
                        **attributes,
                        argument.name: self.as_value(argument, value),
                    }
                    self.add(f"{argument.name} {value}, {d}", self.make_inputs(shapes, self.uniform(d)), given)

    def make_layout_cases(self, shapes, attributes, dtypes):
        plain = [a for a in self.inputs if a.kind == self.kinds.TENSOR and a.role != self.kinds.IN_PLACE]
        spare = itertools.cycle(dtypes)
        for layout in ("transposed", "strided", "repeated"):
            if layout == "repeated" and "distinct" in self.entry.domains.values():
                continue
            choices = [[a.name for a in plain]] if plain else []
            if len(plain) > 1:
                choices += [[a.name] for a in plain]
            for names in choices:
                d = next(spare)
                self.add(
                    f"{layout} {', '.join(names)}, {d}",
                    self.make_inputs(shapes, self.uniform(d), {n: layout for n in names}),
                    {**self.default_attributes(d, shapes), **attributes},
                )

    def make_output_cases(self, shapes, attributes, dtypes):
        for output in self.outputs:
            if output.role == self.kinds.IN_PLACE or not output.dtypes:
                continue
            if any(n == "output_dtype" for n, _ in self.checks):
                continue
            for i, dtype in enumerate(accepted(output)):
                source = dtypes[0] if is_floating(dtype) else dtypes[-1]
                if not is_floating(dtype) and is_floating(source):
                    continue
                inputs = self.make_inputs(shapes, self.uniform(source))
                given = {**self.default_attributes(source, shapes), **attributes}
                natural = Rule(inputs, given).dtype(output.dtype)
                if is_floating(natural) and not is_floating(dtype) or (natural != "BOOL" and dtype == "BOOL"):
                    continue
                if not is_floating(natural) and natural not in ("BOOL",) and is_floating(dtype) and i % 2:
                    continue
                self.add(f"{output.name} asked for as {dtype}", inputs, given, {output.name: dtype})

    def make_mixed_cases(self, shapes, attributes, dtypes):
        bound = set()
        for name, arguments in self.checks:
            if name in ("same_dtype", "double_alone", "output_dtype", "castable"):
                bound |= set(re.findall(r"\w+", " ".join(arguments)))
        tensors = [a for a in self.inputs if a.kind == self.kinds.TENSOR and a.name in shapes]
        free = [a for a in tensors if a.name not in bound and len(accepted(a)) > 1]
        if self.entry.mixed is False or len(tensors) < 2 or not free or len(free) == 1 and free[0] is tensors[0]:
            return
        spreads = any("broadcast(" in o.shape for o in self.outputs) and not any(
            n == "same_shape" for n, _ in self.checks
        )
        seen = set()
        for _ in range(60):
            if len(seen) == 12:
                break
            d = dtypes[int(self.source.random.integers(len(dtypes)))]
            chosen = self.uniform(d)
            for a in free:
                options = accepted(a)
                if a is tensors[0] and self.entry.only_dtypes:
                    options = dtypes
                chosen[a.name] = options[int(self.source.random.integers(len(options)))]
            key = tuple(chosen.values())
            if key in seen or len(set(key)) == 1:
                continue
            seen.add(key)
            flat = spreads and len(seen) % 3 == 0 and free[-1] is not tensors[0]
            self.add(
                "dtypes " + " ".join(key) + (f", {free[-1].name} 0-d" if flat else ""),
                self.make_inputs({**shapes, free[-1].name: []} if flat else shapes, chosen),
                {**self.default_attributes(chosen[tensors[0].name], shapes), **attributes},
            )

    def make_special_cases(self, attributes, dtypes):
        names = [a.name for a in self.inputs if a.kind == self.kinds.TENSOR]
        for d in dtypes:
            chosen = self.uniform(d)
            moving = [
                n
                for n in names
                if chosen[n] == d
                and self.entry.special_inputs is None
                or self.entry.special_inputs
                and n in self.entry.special_inputs
            ][:2]
            values = self.entry.special_values(special_values(d)) if self.entry.special_values else special_values(d)
            rows = list(itertools.product(values, repeat=len(moving)))
            if not rows or not moving:
                continue
            shape = [len(rows)]
            inputs = self.make_inputs({n: shape for n in names}, chosen)
            for i, n in enumerate(moving):
                column = [row[i] for row in rows]
                inputs[n] = Tensor(
                    d, encode(torch.tensor(column, dtype=torch.float64 if is_floating(d) else torch.int64), d)
                )
            given = {**self.default_attributes(d, None), **attributes}
            self.add(f"special values, {d}", inputs, given)

    def write(self):
        DATA.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in self.cases)
        with open(DATA / f"{self.name}.jsonl.gz", "wb") as file:
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
                packed.write(lines.encode())


def call(function, known):
    return function(**{n: known[n] for n in inspect.signature(function).parameters})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operator", action="append", help="only this one (may be repeated)")
    only = parser.parse_args().operator
    torch.set_num_threads(1)
    found, kinds = descriptions.read()
    found = [description for _, description in found]
    missing, few, total = [], [], 0
    for description in found:
        if only and description.name not in only:
            continue
        if oracles.find(description.name) is None:
            missing.append(description.name)
            continue
        operator = Operator(description, kinds)
        operator.make_values()
        values = len(operator.cases)
        operator.make_refusals()
        if values < 20 or len(operator.cases) - values < 20:
            few.append(f"{description.name} {values}+{len(operator.cases) - values}")
        operator.write()
        total += len(operator.cases)
    if not only:  # those of operators that are gone
        names = {description.name for description in found}
        for path in DATA.glob("*.jsonl.gz"):
            if path.name.split(".")[0] not in names:
                path.unlink()
    size = sum(path.stat().st_size for path in DATA.glob("*.gz"))
    print(f"{total} cases, {size} bytes. Fewer than 20 of a kind: {', '.join(few) or 'none'}")
    if missing:
        sys.exit(f"no oracle: {' '.join(missing)}")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
