"""For each function of a description's checks, calls that break it. Each gives (what, inputs, attributes): the changes
to a call that is right; an input that is None is left out; and other fields of the case, if any."""

import numpy as np

from dtype_rules import Rule, is_castable
from elements import NUMPY, Tensor, accepted


def ones(dtype, shape):
    return Tensor(dtype, np.ones(shape, NUMPY[dtype]))


def grown(shape):
    """Each extent one more."""
    return [s + 1 for s in shape] or [2]


class BrokenChecks:
    """Part of an operator (refusals.Refusals); `call` is (inputs, attributes)."""

    def argument(self, name):
        return next(a for a in self.description.argument if a.name == name)

    def companions(self, call, name):
        """It and the other inputs that a check gives the same shape, which would be refused first."""
        found = {name}
        for function, arguments in [c for c in self.checks if c[0] == "same_shape"] * 2:
            found |= set(arguments) if found & set(arguments) else set()
        return [n for n in call[0] if n in found]

    def reshaped(self, call, name, shapes, alone=False):
        names = [name] if alone else self.companions(call, name)
        return [(str(s), {n: self.shaped(n, s, call[0][n].dtype) for n in names}, {}) for s in shapes]

    def valued(self, name, values):
        argument = self.argument(name)
        return [(str(value), {}, {name: self.as_value(argument, value)}) for value in values]

    def break_same_dtype(self, call, *names):
        cases = []
        for name in [n for n in names if n in call[0] and not isinstance(call[0][n], list)]:
            tensor = call[0][name]
            other = next((d for d in accepted(self.argument(name)) if d != tensor.dtype), None)
            if other:
                cases.append((f"{name} {other}", {name: ones(other, tensor.array.shape)}, {}))
        return cases

    def break_same_dtypes(self, call, name):
        tensors = call[0][name]
        other = next((d for d in accepted(self.argument(name)) if d != tensors[0].dtype), None)
        if other is None or len(tensors) < 2:
            return []
        return [(f"tensor 1 {other}", {name: [tensors[0], ones(other, tensors[1].array.shape), *tensors[2:]]}, {})]

    def break_same_shape(self, call, name, *_):
        if isinstance(call[0][name], list):
            return []
        shape = call[0][name].shape
        return self.reshaped(call, name, (grown(shape), shape + [2]), alone=True)

    def break_shape_is(self, call, name, *_):
        shape = call[0][name].shape
        return self.reshaped(call, name, (grown(shape), shape + [2]))

    break_trailing = break_same_elements = break_shape_is

    def break_lists_like(self, call, name, _):
        tensors = call[0][name]
        if not isinstance(tensors, list):
            return self.break_same_shape(call, name)
        first = ones(tensors[0].dtype, grown(tensors[0].shape))
        return [("another shape", {name: [first, *tensors[1:]]}, {}), ("one more", {name: [*tensors, first]}, {})]

    def break_same_length(self, call, name, _):
        return [("one more", {name: [*call[0][name], call[0][name][0]]}, {})]

    def break_broadcasts_to(self, call, name, _):
        shape = call[0][name].shape
        return self.reshaped(call, name, ([2] + (shape or [1]), grown(shape)))

    def break_broadcasts(self, call, first, second):
        change = {first: self.shaped(first, [2, 3]), second: self.shaped(second, [2, 4])}
        return [("[2, 3] and [2, 4]", change, {})]

    def break_rank(self, call, name, low, high=None):
        low, high = int(low), int(high or low)
        shapes = [[2] * rank for rank in (low - 1, high + 1) if 0 <= rank <= 8]
        if isinstance(call[0][name], list):
            dtype = call[0][name][0].dtype
            return [(str(s), {name: [ones(dtype, s), *call[0][name][1:]]}, {}) for s in shapes]
        return self.reshaped(call, name, shapes)

    def break_same_rank(self, call, name, _):
        return self.reshaped(call, name, (call[0][name].shape + [1, 1],))

    def break_fits(self, call, name, other, dim=None):
        shape = call[0][name].shape
        if dim is not None:
            return self.reshaped(call, name, ([s + 9 for s in shape],))
        smaller = self.reshaped(call, other, ([max(s - 1, 0) for s in shape],))
        return smaller + self.reshaped(call, name, ([*shape[:-1], shape[-1] + 9],))

    def break_axis(self, call, name, of):
        tensor = call[0][of]
        rank = len((tensor[0] if isinstance(tensor, list) else tensor).shape)
        values = (rank, -rank - 1, 2**40)
        if self.argument(name).kind == self.kinds.SCALAR:
            return [(str(v), {}, {name: {"scalar": ["INT64", v]}}) for v in values]
        return [(str(v), {}, {name: {"int64_value": v}}) for v in values]

    def break_axes(self, call, name, of):
        rank = len(call[0][of].shape)
        return [(str(v), {}, {name: {"int64_list": v}}) for v in ([rank], [-rank - 1], [0, rank], [0, 0])]

    def break_unique(self, call, name, of):
        rank = len(call[0][of].shape)
        return [(str(v), {}, {name: {"int64_list": v}}) for v in ([0, 0], [0, -rank])]

    def break_extent(self, call, name, axis, _):
        shape = list(call[0][name].shape)
        shape[int(axis)] += 1
        return self.reshaped(call, name, (shape,))

    def break_length(self, call, name, low, high=None):
        if name in call[0]:
            tensors = call[0][name]
            lengths = [int(low) - 1, int(high) + 1]
            return [(f"{n} tensors", {name: (tensors * n)[:n]}, {}) for n in lengths if n < 20]
        content = next(iter(call[1][name].values()))
        lengths = [int(low) - 1, int(high) + 1] if low.isdigit() and high else [len(content) + 1]
        field = next(iter(call[1][name]))
        return [(f"{n} entries", {}, {name: {field: [content[0] if content else 1] * n}}) for n in lengths if n >= 0]

    def break_elements(self, call, name, *_):
        if isinstance(call[0][name], list):
            first = call[0][name][0]
            return [("one more", {name: [ones(first.dtype, grown(first.shape)), *call[0][name][1:]]}, {})]
        shape = call[0][name].shape
        return self.reshaped(call, name, ([*shape[:-1], shape[-1] + 1] if shape else [2],))

    def break_channel_weight(self, call, name, of):
        shape = call[0][of].shape
        return self.reshaped(call, name, ([(shape[1] if len(shape) > 1 else 1) + 1],))

    def break_even(self, call, name, dim):
        shape = list(call[0][name].shape)
        axis = call[1].get(dim, {"int64_value": -1})["int64_value"]
        shape[axis] += 1
        return self.reshaped(call, name, (shape,))

    def break_not_empty(self, call, name):
        return [("[0, 3]", {n: self.shaped(n, [0, 3]) for n in call[0]}, {})]

    def break_written(self, call, name, _):
        if len({len(tensor.shape) for tensor in call[0].values()}) > 1:  # not element by element
            return self.reshaped(call, name, ([0, *call[0][name].shape[1:]],))
        return [("[0, 5]", {n: self.shaped(n, [0, 5] if n == name else [1, 5]) for n in call[0]}, {})]

    def break_not_zero(self, call, name):
        return self.valued(name, [0.0 if self.argument(name).kind == self.kinds.SCALAR else 0])

    def break_positive(self, call, name):
        return self.valued(name, [0, -1])

    def break_not_negative_if(self, call, flag, name):
        return [
            (what, inputs, {**attributes, flag: {"bool_value": True}})
            for what, inputs, attributes in self.valued(name, [-1.0])
        ]

    def break_divides(self, call, name, of):
        return self.valued(name, [2 * call[1][of]["int64_value"] + 1])

    def break_given(self, call, flag, name, value):
        return [("", {name: None}, {flag: {"bool_value": value}})]

    def break_given_if(self, call, flag, name):
        return self.break_given(call, flag, name, True)

    def break_given_unless(self, call, flag, name):
        return self.break_given(call, flag, name, False)

    def break_absent(self, call, name):
        return [("", {name: ones(accepted(self.argument(name))[0], [1])}, {})]

    def break_absent_if(self, call, number, name):
        return [(str(value), {}, {number: {"int64_value": value}}) for value in (1, 2)]

    def break_is(self, call, name, value):
        return [("", {}, {name: {"bool_value": value == "false"}})]

    def break_either(self, call, *names):
        return [("", {}, {name: None for name in names})]

    def break_double_alone(self, call, *names):
        if "DOUBLE" not in accepted(self.inputs[0]):
            return []
        return [(name, {name: ones("DOUBLE", call[0][name].array.shape)}, {}) for name in names]

    def break_output_dtype(self, call, name, of):
        wrong = [d for d in accepted(self.argument(name)) if d != call[0][of].dtype]
        return [(f"asked for as {d}", {}, {}, {"outputs": [[name, d]]}) for d in wrong]

    def break_castable(self, call, expression, name):
        """A result of floats, or of integers, for a tensor of integers or of BOOL."""
        floats = {a.name: {"scalar": ["FLOAT", 1.5]} for a in self.attributes if a.name in expression}
        floats = {n: v for n, v in floats.items() if self.argument(n).kind == self.kinds.SCALAR}
        cases = []
        for dtype in [d for d in accepted(self.argument(name)) if d in ("BOOL", "INT32", "INT64")]:
            inputs = {name: ones(dtype, call[0][name].array.shape)}
            inputs.update({n: t for n, t in call[0].items() if n != name})
            attributes = {**call[1], **floats}
            if not is_castable(Rule(inputs, attributes).dtype(expression), dtype):
                cases.append((dtype, inputs, attributes))
        return cases
