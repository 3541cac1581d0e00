"""Cases that are refused: what can be wrong with a call, from its description."""

import re

import numpy as np

import rules
from broken_checks import BrokenChecks
from elements import DTYPES, NUMPY, Tensor, accepted, as_json, text


class Refusals(BrokenChecks):
    """Adds such cases to an operator's (generate.Operator), which are made from its plain call."""

    def refuse(self, name, named, inputs=None, attributes=None, **more):
        """`more`: other fields of the case; `rule` is the one that it breaks, of rules.rules_of."""
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
        names_out = self.names_out
        self.refuse("output twice", names_out[0], outputs=[[names_out[0], None]] * 2)
        for argument in self.inputs:
            self.refuse_input(argument)
        for argument in self.attributes:
            self.refuse_attribute(argument, attributes, some)
        for output in self.outputs:
            wrong = [d for d in DTYPES if d not in accepted(output)] if output.dtypes else ["INT16"]
            if output.role == self.kinds.IN_PLACE:
                continue
            for d in wrong[:2] if output.dtypes else []:
                rule = rules.dtype(output.name)
                self.refuse(f"{output.name} asked for as {d}", output.name, outputs=[[output.name, d]], rule=rule)
        for check, arguments in rules.checks_of(self.description):
            self.refuse_check(check, arguments)
        for output in [o for o in self.outputs if "broadcast(" in o.shape]:
            tensors = [n for n, t in inputs.items() if isinstance(t, Tensor)]
            for n in tensors[1:]:
                wrong = {**inputs, tensors[0]: self.shaped(tensors[0], [2, 3]), n: self.shaped(n, [2, 4])}
                rule = rules.broadcast(output.name)
                self.refuse(f"{n} does not broadcast", tensors + names_out, wrong, rule=rule)

    def shaped(self, name, shape, dtype=None):
        """Another tensor in the place of the plain call's, or of `dtype`."""
        dtype = dtype or self.plain[0][name].dtype
        domain = self.domain(name)  # a function knows only the shape that is right
        return Tensor(dtype, self.source.elements(shape, dtype, None if callable(domain) else domain))

    def refuse_input(self, argument):
        """From the plain call, or if that has not this input, from one that has it, or might have."""
        plain = self.plain
        inputs, attributes = self.call_with({argument.name})
        if argument.name not in inputs:
            tensor = Tensor(accepted(argument)[0], np.ones(1, NUMPY[accepted(argument)[0]]))
            inputs = {**inputs, argument.name: [tensor] if argument.kind == self.kinds.TENSOR_LIST else tensor}
        self.plain = (inputs, attributes)
        self.refuse_tensor(argument, inputs)
        self.plain = plain

    def refuse_tensor(self, argument, inputs):
        name = argument.name
        if not argument.optional:
            others = {n: t for n, t in inputs.items() if n != name}
            self.refuse(f"{name} missing", name, others, rule=rules.missing(name))
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
                ("too few strides", [tensor[0].dtype, [1, 1], data, [1], 0]),
                ("negative offset", [tensor[0].dtype, [1], data, [1], -1]),
                ("offset beyond its storage", [tensor[0].dtype, tensor[0].shape, data, None, 2**40]),
                ("an extent with a gap", [tensor[0].dtype, [2], data, [2**40], 0]),
            ):
                self.refuse(
                    f"{name}: {what}",
                    first,
                    {**as_json(inputs), name: {"list": [one] + [t.json() for t in tensor[1:]]}},
                    **({"rule": rules.rank(name)} if what == "rank 9" else {}),
                )
            for d in wrong[:3]:
                odd = [Tensor(d, np.ones(t.array.shape, NUMPY[d])) for t in tensor]
                self.refuse(f"{name} of {d}", [name, f"{name}.0"], {**inputs, name: odd}, rule=rules.dtype(name))
            return
        self.refuse(f"{name} is a list", name, {**inputs, name: [tensor]})
        for d in wrong[:4]:
            odd = Tensor(d, np.ones(tensor.array.shape, NUMPY[d]))
            self.refuse(f"{name} of {d}", name, {**inputs, name: odd}, rule=rules.dtype(name))
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
            if what == "rank 9":
                case["rule"] = rules.rank(name)
            if self.plain[1]:
                case["attributes"] = self.plain[1]
            self.cases.append(case)
        if argument.role == self.kinds.IN_PLACE:
            self.refuse(f"{name} in place with gaps", name, raw(d, [2], text(np.zeros(4 * size, "u1")), [2], 0))

    def refuse_attribute(self, argument, attributes, some):
        name, kinds = argument.name, self.kinds
        change = lambda what, value, **more: self.refuse(
            f"{name} {what}", name, attributes={**attributes, name: value}, **more
        )
        if not argument.HasField("default") and not argument.optional:
            others = {n: v for n, v in attributes.items() if n != name}
            self.refuse(f"{name} missing", name, attributes=others, rule=rules.missing(name))
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
            if argument.HasField("minimum"):
                change("too small", {"int64_value": int(argument.minimum) - 1}, rule=rules.lowest(name))
            if argument.HasField("maximum"):
                change("too great", {"int64_value": int(argument.maximum) + 1}, rule=rules.highest(name))
            rule = {"rule": rules.choice(name)} if argument.names else {}
            change("has an unknown name", {"name": "no_such"}, **rule)
        if argument.kind == kinds.TEXT and argument.names:
            change("is another text", {"text_value": "no_such"}, rule=rules.choice(name))
        if argument.kind == kinds.DTYPE:
            for d in [d for d in DTYPES if d not in accepted(argument)][:2]:
                change(f"is {d}", {"dtype_value": d}, rule=rules.dtype(name))
            change("is no dtype", {"dtype_value": "UNSPECIFIED"})
        if argument.kind in (kinds.SCALAR, kinds.DOUBLE, kinds.FLOAT):
            write = lambda v: {"double_value": v} if argument.kind != kinds.SCALAR else {"scalar": ["FLOAT", v]}
            if argument.HasField("minimum"):
                change("too small", write(float(argument.minimum) - 0.5), rule=rules.lowest(name))
            if argument.HasField("maximum"):
                change("too great", write(float(argument.maximum) + 0.5), rule=rules.highest(name))
        if argument.kind == kinds.SCALAR:
            change("is a number without a dtype", {"scalar": ["UNSPECIFIED", 1]})

    def refuse_check(self, check, arguments):
        rule = rules.check_rule(check, arguments)
        words = set(re.findall(r"[a-z]\w*", " ".join(arguments)))
        call = self.call_with(words)
        if call is None or not rules.can_break(self.description, check, arguments):
            return
        inputs, attributes = call
        for what, other_inputs, other_attributes, *more in getattr(self, f"break_{check}")(call, *arguments):
            changed = {n: t for n, t in {**inputs, **other_inputs}.items() if t is not None}
            given = {n: v for n, v in {**attributes, **other_attributes}.items() if v is not None}
            # Another check may be the first to see it, and one of two alternatives has no name.
            named = dict.fromkeys([*inputs, *other_inputs, *attributes, *other_attributes, *self.names_out, ""])
            self.refuse(f"{rule} {what}".strip(), list(named), changed, given, rule=rule, **dict(*more))

    def call_with(self, words):
        """A call that is right and has the inputs among `words`, but for those that no call has."""
        names = {a.name for a in self.inputs} & words
        given = {n for inputs, _ in self.right for n in inputs}
        return next(((i, a) for i, a in self.right if names & given <= i.keys()), None)
