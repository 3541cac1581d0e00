#!/usr/bin/env python3
"""Times each operator's kernel of the host CANN beside PyTorch's, and records both in tests/data/operators/speed.json.

  benchmark.py BUILD [--operator NAME ...] [--verbose]

Needs current torch (tests/python/torch_requirements.txt) and the host CANN of BUILD. One process does both: the
kernel through the C ABI, stage two after stage two on one stream of a device with one core, and torch with one thread
(peers.py) on the same numbers (sizes.py). Both results are first compared with those of the conformance tests' oracle,
so that the peer computes what the operator does. Then they take turns, for some milliseconds each. The shortest turn
of each counts, in processor time of the whole process, which other programs of the machine disturb least; three
passes over all operators keep a disturbance from spoiling all turns of one. An operator that works in place starts
every turn with fresh tensors, which are not timed.

--operator replaces the records of these operators alone.
"""

import argparse
import json
import math
import pathlib
import platform
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/conformance/operators"))
sys.dont_write_bytecode = True

import numpy as np  # noqa: E402
import torch  # noqa: E402

import acl  # noqa: E402
import descriptions  # noqa: E402
import peers  # noqa: E402
import sizes  # noqa: E402
from elements import NUMPY, Tensor, accepted  # noqa: E402
from generate import Operator  # noqa: E402

RECORD = ROOT / "tests/data/operators/speed.json"
PASSES = 3
ROUNDS = 15  # turns of each side in a pass; four times as many, which are shorter, of operators that work in place
TURN_SECONDS = 0.003
# Of operators that work in place: calls in a turn, each on tensors of its own.
COPIES = 8
# Of indices that torch only takes as INT64.
NARROW = (torch.uint8, torch.int8, torch.int16, torch.int32)
# Operators whose results are random: only their shapes are compared, which are also those of these attributes.
RANDOM = {"Dropout": {"p": 1.0}, "DropoutGenMask": {"prob": 1.0}}


def flat(value):
    return value if isinstance(value, list) else [value]


def as_torch(tensor):
    array = tensor.array.copy()
    if tensor.dtype == "BOOL":
        array = array.astype(bool)
    return torch.from_numpy(array)


class Case:
    """The call of an operator that is timed, with the oracle's results."""

    def __init__(self, operator):
        self.operator = operator
        shapes, attributes, domains = sizes.CALLS.get(operator.name) or (
            {a.name: sizes.PLAIN for a in operator.inputs},
            {},
            {},
        )
        first = operator.inputs[0] if operator.inputs else None
        wanted = [d for d in ("FLOAT", "INT32") if first is None or d in accepted(first)]
        self.dtype = (wanted or accepted(first))[0]
        by_name = {a.name: a for a in operator.attributes}
        required = operator.default_attributes(self.dtype, shapes)
        given = {n: operator.as_value(by_name[n], v) for n, v in attributes.items() if n in by_name}
        operator.call_domains = domains
        self.attributes = {**required, **given}
        self.inputs = operator.make_inputs(shapes, operator.uniform(self.dtype))
        fixed = RANDOM.get(operator.name, {})
        fixed = {n: operator.as_value(by_name[n], v) for n, v in fixed.items()}
        self.expected, _, _ = operator.compute(self.inputs, {**self.attributes, **fixed}, {})
        self.is_random = bool(fixed)
        self.in_place = [a.name for a in operator.inputs if a.role == operator.kinds.IN_PLACE and a.name in self.inputs]

    def shape(self):
        """What stands in the table: the shape of the greatest input, or output."""
        tensors = [t for v in self.inputs.values() for t in flat(v)] or list(self.expected.values())
        most = max(tensors, key=lambda t: t.array.size)
        lists = [v for v in self.inputs.values() if isinstance(v, list) and most in v]
        return (f"{len(lists[0])} of " if lists else "") + str(most.shape)

    def outputs(self):
        """Tensors for the results by output, lists as lists."""
        found = {}
        for output in self.operator.outputs:
            if output.role == self.operator.kinds.IN_PLACE:
                continue
            names = [n for n in self.expected if n == output.name or n.startswith(output.name + ".")]
            made = [Tensor(self.expected[n].dtype, np.zeros_like(self.expected[n].array)) for n in names]
            if output.kind == self.operator.kinds.TENSOR_LIST:
                found[output.name] = made
            elif made:
                found[output.name] = made[0]
            else:  # the function leaves it as it is
                dtype, shape = sizes.UNWRITTEN[output.name]
                found[output.name] = Tensor(dtype, np.zeros(shape, NUMPY[dtype]))
        return found

    def compare(self, who, results):
        """`results`: arrays by the names of `expected`, as many as there are."""
        for name, array in results.items():
            expected = self.expected[name]
            array = np.asarray(array)
            if array.size != expected.array.size:
                raise AssertionError(f"{who}: {name} has {array.size} elements, not {expected.array.size}")
            if self.is_random:
                continue
            wanted = expected.values().numpy().reshape(-1).astype(np.float64)
            got = array.reshape(-1).astype(np.float64)
            with np.errstate(invalid="ignore"):
                right = np.isclose(
                    got, wanted, rtol=2e-3, atol=2e-3 * max(1.0, np.nanmean(np.abs(wanted))), equal_nan=True
                )
            if not right.all():
                at = int(np.flatnonzero(~right)[0])
                raise AssertionError(
                    f"{who}: {name}: {(~right).sum()} of {right.size} differ, [{at}]: {got[at]}, not {wanted[at]}"
                )


class Ours:
    """The kernel on device memory."""

    def __init__(self, library, case):
        self.library, self.case = library, case
        self.sets = []
        for _ in range(COPIES if case.in_place else 1):
            tensors = {**case.inputs, **case.outputs()}
            buffers = {
                n: (
                    [acl.Buffer(library, t.dtype, t.array) for t in v]
                    if isinstance(v, list)
                    else acl.Buffer(library, v.dtype, v.array)
                )
                for n, v in tensors.items()
            }
            self.sets.append((acl.Call(library, case.operator, buffers, case.attributes), buffers))

    def restore(self):
        for _, buffers in self.sets:
            for name in self.case.in_place:
                for buffer in flat(buffers[name]):
                    buffer.write(buffer.like)

    def run(self, count):
        calls = [call for call, _ in self.sets]
        for i in range(count):
            calls[i % len(calls)].launch()
        self.library.synchronize()

    def results(self):
        found = {}
        for name, buffers in self.sets[0][1].items():
            for i, buffer in enumerate(flat(buffers)):
                key = f"{name}.{i}" if isinstance(buffers, list) else name
                if key in self.case.expected and (name in self.case.in_place or name not in self.case.inputs):
                    found[key] = Tensor(buffer.dtype, buffer.read()).values().numpy()
        return found

    def free(self):
        for call, buffers in self.sets:
            call.free()
            for value in buffers.values():
                for buffer in flat(value):
                    buffer.free()


class Peer:
    """The same by torch."""

    def __init__(self, case):
        self.case = case
        operator = case.operator
        self.expression = peers.PEERS[operator.name]
        code = compile(f"lambda: {self.expression}", operator.name, "eval")
        values = {a.name: operator.python_value(a, case.attributes.get(a.name)) for a in operator.attributes}
        self.sets = []
        for _ in range(COPIES if case.in_place else 1):
            tensors = {
                n: [as_torch(t) for t in v] if isinstance(v, list) else as_torch(v)
                for n, v in {**case.inputs, **case.outputs()}.items()
            }
            whole = {n: t for n, t in tensors.items() if torch.is_tensor(t) and t.dtype in NARROW}
            wide = {f"{n}_64": t.to(torch.int64) for n, t in whole.items()}
            known = {"torch": torch, "aten": torch.ops.aten, "F": torch.nn.functional, "np": np, "math": math}
            absent = {a.name: None for a in operator.inputs}
            known.update({**absent, **values, **tensors, **wide, "zero": torch.zeros(())})
            for name, expression in peers.PREPARED.get(operator.name, {}).items():
                known[name] = eval(expression, known)
            self.sets.append((eval(code, known), tensors))

    def restore(self):
        for _, tensors in self.sets:
            for name in self.case.in_place:
                for mine, given in zip(flat(tensors[name]), flat(self.case.inputs[name])):
                    mine.copy_(as_torch(given))

    def run(self, count):
        calls = [call for call, _ in self.sets]
        for i in range(count):
            calls[i % len(calls)]()

    def results(self):
        """Of the first call: what was written in place, else what it gives, in the order of the outputs."""
        call, tensors = self.sets[0]
        given = call()
        expected = self.case.expected
        if self.case.in_place and not self.case.outputs():
            found = {}
            for name in self.case.in_place:
                for i, tensor in enumerate(flat(tensors[name])):
                    found[f"{name}.{i}" if isinstance(tensors[name], list) else name] = tensor
            return {n: t.numpy() for n, t in found.items() if n in expected}
        given = list(given) if isinstance(given, (tuple, list)) else [given]
        if given[0] is None:
            given = [t for name in self.case.outputs() for t in flat(tensors[name])]
        names = [n for n in expected if n.split(".")[0] not in self.case.in_place]
        order = [o.name for o in self.case.operator.outputs]
        names.sort(key=lambda n: order.index(n.split(".")[0]))
        return dict(zip(names, given))


def turn(side, count):
    side.restore()
    begin = time.process_time()
    side.run(count)
    return (time.process_time() - begin) / count


def calls_in_a_turn(side, case):
    if case.in_place:
        return COPIES
    side.run(2)
    return max(1, min(2000, round(TURN_SECONDS / max(min(turn(side, 1), turn(side, 1)), 1e-6))))


def measure(library, operator):
    """Seconds of the kernel and of the peer, the shortest of one pass, and what is recorded beside their ratio."""
    case = Case(operator)
    peer, ours = Peer(case), Ours(library, case)
    try:
        ours.run(1)
        case.compare("opserve", ours.results())
        case.compare("peer", peer.results())
        counts = calls_in_a_turn(ours, case), calls_in_a_turn(peer, case)
        best = [math.inf, math.inf]
        for _ in range(4 * ROUNDS if case.in_place else ROUNDS):
            for i, side in enumerate((ours, peer)):
                best[i] = min(best[i], turn(side, counts[i]))
    finally:
        ours.free()
    return best, {"dtype": case.dtype, "shape": case.shape(), "peer": peer.expression}


def read_records():
    return json.loads(RECORD.read_text(encoding="utf-8"))["operators"] if RECORD.exists() else {}


def write_records(records):
    """One operator a line."""
    about = {"torch": torch.__version__, "processor": processor(), "turns": PASSES * ROUNDS}
    lines = [f"{json.dumps(name)}: {json.dumps(records[name])}" for name in sorted(records)]
    head = "".join(f"{json.dumps(name)}: {json.dumps(value)},\n" for name, value in about.items())
    RECORD.write_text("{\n" + head + '"operators": {\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next(
            (line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine()
        )


def begin(build):
    """The host CANN of a build, and what descriptions.read() finds. torch computes as it is timed from now on."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    np.seterr(all="ignore")
    return acl.Library(build), *descriptions.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--operator", action="append", help="only this one (may be repeated)")
    parser.add_argument("--verbose", action="store_true", help="show every operator, not the failures alone")
    arguments = parser.parse_args()
    library, found, kinds = begin(arguments.build)
    names = [description.name for _, description in found]
    records = read_records() if arguments.operator else {}
    failures, best = {}, {}
    for _ in range(PASSES):
        for _, description in found:
            name = description.name
            if name in failures or arguments.operator and name not in arguments.operator:
                continue
            try:
                seconds, record = measure(library, Operator(description, kinds))
            except Exception as error:
                failures[name] = error
                print(f"{name}: {type(error).__name__}: {error}", flush=True)
                continue
            best[name] = list(map(min, seconds, best.get(name, seconds)))
            records[name] = {"ratio": float(f"{best[name][0] / best[name][1]:.3g}"), **record}
            if arguments.verbose:
                ours, peer = (f"{1e6 * second:9.1f} us" for second in best[name])
                print(f"{name:44} {ours} {peer} {records[name]['ratio']:7.3g}", flush=True)
    write_records({name: record for name, record in records.items() if name in names})
    print(f"{len(records)} operators recorded, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
