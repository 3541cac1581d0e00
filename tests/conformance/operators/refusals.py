"""Cases that are refused: what can be wrong with a call, from its description."""

import re

import numpy as np

from elements import DTYPES, NUMPY, Tensor, accepted, as_json, text


class Refusals:
    """Adds such cases to an operator's (generate.Operator), which are made from its plain call."""

    def refuse(self, name, named, inputs=None, attributes=None, **more):
        base_inputs, base_attributes = self.plain
        case = {"name": name, "inputs": as_json(base_inputs if inputs is None else inputs)}
        given = base_attributes if attributes is None else attributes
        if given:
            case["attributes"] = given
        case.update(more)
        case["refused"] = [named] if isinstance(named, str) else list(named)
        self.cases.append(case)

    def make_refusals(self):
        if self.plain is None:
            return
        inputs, attributes = self.plain
        inputs = {n: t for n, t in inputs.items()}
        some = {"scalar": ["FLOAT", 1.0]}
        self.refuse("unknown input", "no_such", {**inputs, "no_such": Tensor("FLOAT", np.zeros(2, "<f4"))})
        self.refuse("unknown attribute", "no_such", attributes={**attributes, "no_such": {"int64_value": 1}})
        self.refuse("unknown output", "no_such", outputs=[["no_such", None]])
        self.refuse("unknown operator", "", operator=self.name + "X")
        self.refuse("operator in small letters", "", operator=self.name.lower())
        self.refuse("attribute without a name", "", attributes={**attributes, "": {"int64_value": 1}})
        self.refuse("output without a name", "", outputs=[["", None]])
        names_out = [o.name for o in self.outputs]
        self.refuse("output twice", names_out[0], outputs=[[names_out[0], None]] * 2)
        for argument in self.inputs:
            self.refuse_input(argument, inputs)
        for argument in self.attributes:
            self.refuse_attribute(argument, attributes, some)
        for output in self.outputs:
            wrong = [d for d in DTYPES if d not in accepted(output)] if output.dtypes else ["INT16"]
            if output.role == self.kinds.IN_PLACE:
                continue
            for d in wrong[:2] if output.dtypes else []:
                self.refuse(f"{output.name} asked for as {d}", output.name, outputs=[[output.name, d]])
        for check, arguments in self.checks:
            self.refuse_check(check, arguments, inputs, attributes)
        if any("broadcast(" in o.shape for o in self.outputs):
            tensors = [n for n, t in inputs.items() if isinstance(t, Tensor)]
            for n in tensors[1:]:
                wrong = {**inputs, tensors[0]: self.shaped(tensors[0], [2, 3]), n: self.shaped(n, [2, 4])}
                self.refuse(f"{n} does not broadcast", tensors + names_out, wrong)

    def shaped(self, name, shape):
        """Another tensor in the place of the plain call's."""
        dtype = self.plain[0][name].dtype
        domain = self.domain(name)  # a function knows only the shape that is right
        return Tensor(dtype, self.source.elements(shape, dtype, None if callable(domain) else domain))

    def refuse_input(self, argument, inputs):
        name = argument.name
        if name not in inputs:
            return
        if not argument.optional:
            self.refuse(f"{name} missing", name, {n: t for n, t in inputs.items() if n != name})
        self.refuse(f"{name} twice", name, twice=name)
        tensor = inputs[name]
        wrong = [d for d in DTYPES if d not in accepted(argument)]
        if argument.kind == self.kinds.TENSOR_LIST:
            self.refuse(f"{name} is no list", name, {**inputs, name: tensor[0]})
            first = [name, f"{name}.0"]
            data = tensor[0].json()[2]
            for what, one in (
                ("rank 9", [tensor[0].dtype, [1] * 9, data]),
                ("no dtype", ["UNSPECIFIED", [1], data]),
                ("no storage", [tensor[0].dtype, tensor[0].shape, None]),
                ("negative extent", [tensor[0].dtype, [-1], data]),
                ("too few elements", [tensor[0].dtype, tensor[0].shape + [99], data]),
                ("negative stride", [tensor[0].dtype, [2], data, [-1], 0]),
            ):
                self.refuse(
                    f"{name}: {what}",
                    first,
                    {**as_json(inputs), name: {"list": [one] + [t.json() for t in tensor[1:]]}},
                )
            for d in wrong[:3]:
                odd = [Tensor(d, np.ones(t.array.shape, NUMPY[d])) for t in tensor]
                self.refuse(f"{name} of {d}", [name, f"{name}.0"], {**inputs, name: odd})
            return
        self.refuse(f"{name} is a list", name, {**inputs, name: [tensor]})
        for d in wrong[:4]:
            self.refuse(f"{name} of {d}", name, {**inputs, name: Tensor(d, np.ones(tensor.array.shape, NUMPY[d]))})
        data = tensor.json()[2]
        d = tensor.dtype
        size = tensor.array.itemsize
        if tensor.array.size == 0:
            return
        raw = lambda *content: {**as_json(inputs), name: list(content)}
        cases = [
            ("rank 9", raw(d, [1] * 9, text(np.zeros(size, "u1")))),
            ("negative extent", raw(d, [-1], data)),
            ("too few elements", raw(d, tensor.shape + [2], data)),
            ("too many bytes", raw(d, tensor.shape, text(np.zeros(tensor.array.nbytes + 1, "u1")))),
            ("negative stride", raw(d, [2], data, [-1], 0)),
            ("too few strides", raw(d, [1, 1], text(np.zeros(size, "u1")), [1], 0)),
            ("view leaves its storage", raw(d, [2], text(np.zeros(size, "u1")), [1], 1)),
            ("negative offset", raw(d, [1], data, [1], -1)),
            ("offset beyond its storage", raw(d, tensor.shape, data, None, 2**40)),
            ("more elements than there can be", raw(d, [2**40, 2**40], data)),
            ("payload that is not there", raw(d, tensor.shape, 9)),
            ("an extent with a gap", raw(d, [2], data, [2**40], 0)),
            ("no dtype", raw("UNSPECIFIED", tensor.shape, data)),
            ("no storage", raw(d, tensor.shape, None)),
        ]
        for what, content in cases:
            case = {"name": f"{name}: {what}", "inputs": content, "refused": [name]}
            if self.plain[1]:
                case["attributes"] = self.plain[1]
            self.cases.append(case)
        if argument.role == self.kinds.IN_PLACE:
            self.refuse(f"{name} in place with gaps", name, raw(d, [2], text(np.zeros(4 * size, "u1")), [2], 0))

    def refuse_attribute(self, argument, attributes, some):
        name, kinds = argument.name, self.kinds
        change = lambda what, value: self.refuse(f"{name} {what}", name, attributes={**attributes, name: value})
        if not argument.HasField("default") and not argument.optional:
            self.refuse(f"{name} missing", name, attributes={n: v for n, v in attributes.items() if n != name})
        if name in attributes or argument.HasField("default"):
            value = attributes.get(name) or self.as_value(argument, self.python_value(argument, None))
            self.refuse(f"{name} twice", name, attribute_twice=name, attributes={**attributes, name: value})
        change("without a value", {})
        integers = (kinds.INT64, kinds.INT32, kinds.INT8, kinds.UINT64)
        lists = (kinds.INT_ARRAY, kinds.BOOL_ARRAY, kinds.FLOAT_ARRAY, kinds.SCALAR_LIST)
        if argument.kind != kinds.TEXT:
            change("is a text", {"text_value": "x"})
        if argument.kind not in lists:
            change("is a list", {"int64_list": [1]})
        else:
            change("is a number", {"int64_value": 1})
        if argument.kind != kinds.DTYPE:
            change("is a dtype", {"dtype_value": "FLOAT"})
        if argument.kind in integers:
            change("is a fraction", {"double_value": 0.5})
            if argument.HasField("minimum") and int(argument.minimum) > -(2**31):
                change("too small", {"int64_value": int(argument.minimum) - 1})
            if argument.HasField("maximum"):
                change("too great", {"int64_value": int(argument.maximum) + 1})
            change("has an unknown name", {"name": "no_such"})
        if argument.kind == kinds.TEXT and argument.names:
            change("is another text", {"text_value": "no_such"})
        if argument.kind == kinds.DTYPE:
            for d in [d for d in DTYPES if d not in accepted(argument)][:2]:
                change(f"is {d}", {"dtype_value": d})
            change("is no dtype", {"dtype_value": "UNSPECIFIED"})
        if argument.kind in (kinds.SCALAR, kinds.DOUBLE, kinds.FLOAT):
            write = lambda v: {"double_value": v} if argument.kind != kinds.SCALAR else {"scalar": ["FLOAT", v]}
            if argument.HasField("minimum"):
                change("too small", write(float(argument.minimum) - 0.5))
            if argument.HasField("maximum"):
                change("too great", write(float(argument.maximum) + 0.5))
        if argument.kind == kinds.SCALAR:
            change("is a number without a dtype", {"scalar": ["UNSPECIFIED", 1]})

    def refuse_check(self, check, arguments, inputs, attributes):
        has = lambda n: isinstance(inputs.get(n), Tensor)
        tell = f"{check}({', '.join(arguments)})"
        words = re.findall(r"\w+", " ".join(arguments))
        named = [w for w in words if any(a.name == w for a in self.attributes)]
        if check != "elements":
            named += list(inputs)  # another check may be the first to see it
        else:
            named += [w for w in words if w in inputs]
        if check == "same_dtype":
            for n in arguments[1:]:
                if not has(n) or not has(arguments[0]):
                    continue
                mine = inputs[arguments[0]].dtype
                argument = next(a for a in self.inputs if a.name == n)
                other = [d for d in accepted(argument) if d != mine]
                if other:
                    self.refuse(
                        tell + f" {n} {other[0]}",
                        list(inputs),
                        {**inputs, n: Tensor(other[0], np.ones(inputs[n].array.shape, NUMPY[other[0]]))},
                    )
        elif check in ("same_shape", "shape_is", "trailing", "same_elements", "lists_like") and has(arguments[0]):
            for shape in ([s + 1 for s in inputs[arguments[0]].shape] or [2], inputs[arguments[0]].shape + [2]):
                self.refuse(tell + f" {shape}", named, {**inputs, arguments[0]: self.shaped(arguments[0], shape)})
        elif check == "broadcasts_to" and has(arguments[0]):
            shape = inputs[arguments[0]].shape
            for wrong in ([2] + (shape or [1]), [s + 1 for s in shape] or [2]):
                self.refuse(
                    tell + f" {wrong}",
                    named or list(inputs),
                    {**inputs, arguments[0]: self.shaped(arguments[0], wrong)},
                )
        elif check == "rank" and has(arguments[0]):
            low, high = int(arguments[1]), int(arguments[2]) if len(arguments) > 2 else int(arguments[1])
            for rank in [r for r in (low - 1, high + 1) if 0 <= r <= 8]:
                self.refuse(tell + f" {rank}", named, {**inputs, arguments[0]: self.shaped(arguments[0], [2] * rank)})
        elif check == "axis" and has(arguments[1]):
            rank = len(inputs[arguments[1]].shape)
            scalar = any(a.name == arguments[0] and a.kind == self.kinds.SCALAR for a in self.attributes)
            for wrong in (rank, -rank - 1, 2**40):
                value = {"scalar": ["INT64", wrong]} if scalar else {"int64_value": wrong}
                self.refuse(tell + f" {wrong}", arguments[0], attributes={**attributes, arguments[0]: value})
        elif check in ("axes", "unique") and has(arguments[1]):
            rank = len(inputs[arguments[1]].shape)
            for wrong in ([rank], [-rank - 1], [0, rank]) if check == "axes" else ([0, 0], [0, -rank]):
                self.refuse(
                    tell + f" {wrong}", arguments[0], attributes={**attributes, arguments[0]: {"int64_list": wrong}}
                )
        elif check == "not_empty" and has(arguments[0]):
            self.refuse(tell, named, {**inputs, **{n: self.shaped(n, [0, 3]) for n in inputs}})
        elif check == "not_zero":
            self.refuse(tell, named, attributes={**attributes, arguments[0]: {"scalar": ["FLOAT", 0.0]}})
        elif check == "elements" and has(arguments[0]) and arguments[-1] == "1":
            self.refuse(tell, named, {**inputs, arguments[0]: self.shaped(arguments[0], [2])})
        elif check == "is":
            self.refuse(
                tell, arguments[0], attributes={**attributes, arguments[0]: {"bool_value": arguments[1] == "false"}}
            )
        elif check == "either":
            self.refuse(tell, named + [""], attributes={n: v for n, v in attributes.items() if n not in arguments})
        elif check == "double_alone" and has(arguments[0]) and "DOUBLE" in accepted(self.inputs[0]):
            for n in arguments:
                self.refuse(tell + f" {n}", [""], {**inputs, n: Tensor("DOUBLE", np.ones(inputs[n].array.shape))})
