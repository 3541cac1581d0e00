"""Random programs against numpy: views, literals, kept, replaced and donated tensors.

OPSERVE_RANDOM_GRAPHS: how many programs (default 400). A failure names its seed.
"""

from __future__ import annotations

import dataclasses
import os
import random
from typing import Any, Optional

import numpy as np
import opserve
import pytest
from seed import seed_of_test

GRAPHS = int(os.environ.get("OPSERVE_RANDOM_GRAPHS", "400"))

BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
UNARY = {"neg": np.negative, "abs": np.abs, "relu": lambda x: np.maximum(x, 0)}


@dataclasses.dataclass
class Value:
    """A tensor of a program beside what numpy has of it.

    Attributes:
        whole: the elements of the contiguous tensor that a view of it may show; None: of a payload
            or a literal, which no view is made of.
    """

    tensor: Any
    data: np.ndarray
    whole: Optional[Any] = None


class Pool:
    """Resident tensors and what they must hold."""

    def __init__(self, client: opserve.Client) -> None:
        self.client = client
        self.tensors: list[opserve.ResidentTensor] = []
        self.data: list[np.ndarray] = []
        self.versions: list[int] = []

    def add(self, tensor: opserve.ResidentTensor, data: np.ndarray) -> None:
        self.tensors.append(tensor)
        self.data.append(data)
        self.versions.append(1)

    def remove(self, index: int) -> None:
        for one in (self.tensors, self.data, self.versions):
            del one[index]

    def check(self) -> None:
        for tensor, data in zip(self.tensors, self.data):
            assert_equal(self.client.download(tensor), data)

    def clear(self) -> None:
        self.client.release(self.tensors)
        for _ in range(len(self.tensors)):
            self.remove(0)


def assert_equal(seen: np.ndarray, expected: np.ndarray) -> None:
    """Sums may be taken in another order, and what follows them differs as little."""
    assert seen.dtype == expected.dtype and seen.shape == expected.shape
    np.testing.assert_allclose(seen, expected, rtol=2e-4, atol=2e-3)


class Graph:
    """One random program."""

    def __init__(self, rng: random.Random, pool: Pool) -> None:
        self.rng = rng
        self.pool = pool
        self.numbers = np.random.default_rng(rng.randrange(2**32))
        self.program = opserve.Program()
        self.values: list[Value] = []
        self.in_place: dict[int, Value] = {}  # by position: what an operator made of the tensor

    def build(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.values.append(self.source())
        for _ in range(self.rng.randint(1, 14)):
            self.values.append(self.invoke())

    def array(self) -> np.ndarray:
        shape = [self.rng.choice((1, 2, 3, 4, 5)) for _ in range(self.rng.randint(1, 3))]
        return self.numbers.integers(-8, 9, shape).astype("f4") / 4

    def source(self) -> Value:
        kind = self.rng.choice(("payload", "literal", "full", "resident"))
        if kind == "resident" and self.pool.tensors:
            position = self.rng.randrange(len(self.pool.tensors))
            tensor = self.pool.tensors[position]
            return Value(tensor, self.pool.data[position], tensor)
        data = self.array()
        if kind == "full":
            number = float(data.flat[0])
            full = self.program.full(data.shape, number, "float32")
            return Value(full, np.full(data.shape, number, "f4"))
        if kind == "literal":
            return Value(self.program.literal(data), data)
        return Value(data, data)

    def any_value(self) -> Value:
        """A value so far, sometimes a view of it."""
        value = self.rng.choice(self.values)
        if value.whole is None or self.rng.random() < 0.5:
            return value
        flat = np.ascontiguousarray(value.data).reshape(-1)
        rank = self.rng.randint(1, 3)
        shape, strides, last = [], [], 0
        for _ in range(rank):
            step = self.rng.choice((0, 1, 1, 2, 3))
            room = (len(flat) - 1 - last) // step if step else 4
            extent = self.rng.randint(1, min(room, 4) + 1)
            shape.append(extent)
            strides.append(step)
            last += (extent - 1) * step
        offset = self.rng.randint(0, len(flat) - 1 - last)
        data = np.lib.stride_tricks.as_strided(
            flat[offset:], shape, [4 * step for step in strides]
        ).copy()
        view = self.program.view(value.whole, "float32", shape, strides, offset)
        return Value(view, data)

    def invoke(self) -> Value:
        kind = self.rng.choice(("binary", "binary", "unary", "matmul", "sum", "inplace"))
        x = self.any_value()
        if kind == "inplace" and self.pool.tensors:
            changed = self.change_in_place()
            if changed is not None:
                return changed
        if kind == "matmul" and x.data.ndim == 2:
            rows = self.numbers.integers(-4, 5, (x.data.shape[1], 3)).astype("f4") / 4
            return self.made(self.program.matmul(x.tensor, rows), x.data @ rows)
        if kind == "sum":
            axis = self.rng.randrange(x.data.ndim)
            made = self.program.reduce_sum(x.tensor, dims=[axis], keep_dims=True, dtype="float32")
            return self.made(made, x.data.sum(axis, keepdims=True, dtype="f4"))
        if kind == "binary":
            name = self.rng.choice(list(BINARY))
            fitting = [
                y for y in (self.any_value() for _ in range(4)) if broadcast(x.data, y.data)
            ]
            y = fitting[0] if fitting else Value(self.program.literal(np.float32(1.5)), np.float32(1.5))
            with np.errstate(over="ignore", invalid="ignore"):
                data = BINARY[name](x.data, y.data)
            if np.abs(data).max(initial=0) < 1e6:
                return self.made(getattr(self.program, name)(x.tensor, y.tensor), data)
        name = self.rng.choice(list(UNARY))
        return self.made(getattr(self.program, name)(x.tensor), UNARY[name](x.data))

    def change_in_place(self) -> Optional[Value]:
        """Adds to a resident tensor; later invocations may still read what it held before."""
        position = self.rng.randrange(len(self.pool.tensors))
        if position in self.in_place:
            return None
        added = np.float32(self.rng.randint(-3, 3))
        made = self.program.inplace_add(
            self.pool.tensors[position], self.program.literal(added)
        )
        value = self.made(made, self.pool.data[position] + added)
        self.in_place[position] = value
        return value

    def made(self, tensor: Any, data: np.ndarray) -> Value:
        return Value(tensor, np.asarray(data, "f4"), tensor)

    def used(self) -> set[int]:
        """Positions of the resident tensors that invocations read."""
        inputs = [
            value.base if isinstance(value, opserve.View) else value
            for invocation in self.program.invocations
            for value in invocation.inputs.values()
        ]
        return {
            position
            for position, tensor in enumerate(self.pool.tensors)
            if any(one is tensor for one in inputs)
        }

    def run(self) -> None:
        """Chooses where the results go, runs the program and changes the model of the pool."""
        outputs = [one for one in self.values if isinstance(one.whole, opserve.program.OutputOf)]
        chosen = self.rng.sample(outputs, self.rng.randint(1, min(4, len(outputs))))
        results: list[Any] = []
        replaced: dict[int, np.ndarray] = {}
        kept: list[np.ndarray] = []
        for one in chosen:
            fitting = [
                position
                for position, data in enumerate(self.pool.data)
                if data.shape == one.data.shape and position not in replaced
            ]
            kind = self.rng.choice(("send", "keep", "replace"))
            if kind == "replace" and fitting:
                position = self.rng.choice(fitting)
                version = self.pool.versions[position] if self.rng.random() < 0.5 else None
                results.append(
                    self.program.replace(self.pool.tensors[position], one.whole, version)
                )
                replaced[position] = one.data
            elif kind == "keep" and len(self.pool.tensors) + len(kept) < 12:
                results.append(self.program.keep(one.whole))
                kept.append(one.data)
            else:
                results.append(one.whole)
        donated = [
            position
            for position in sorted(self.used() | set(replaced))
            if self.rng.random() < 0.3
        ]
        given_up = [self.pool.tensors[position] for position in donated]
        names_version = any(getattr(one, "version", None) is not None for one in results)
        if names_version or self.rng.random() < 0.5:
            answer = self.pool.client.execute(self.program, results, donated=given_up)
        else:
            answer = self.pool.client.prepare(self.program, results, donated=given_up)()
        for result, seen, one in zip(results, answer.results, chosen):
            if isinstance(result, opserve.program.OutputOf):
                assert_equal(seen, one.data)
            elif isinstance(result, opserve.Keep):
                self.pool.add(seen, one.data)
        for position, data in replaced.items():
            self.pool.data[position] = data
            self.pool.versions[position] += 1
        for position in sorted(donated, reverse=True):
            if position not in replaced:
                self.pool.remove(position)


def broadcast(x: np.ndarray, y: np.ndarray) -> bool:
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return True


def mutated(graph: Graph, rng: random.Random) -> bytes:
    """The graph's message with one byte of its header changed."""
    request = opserve._request.Request(
        graph.program, lambda view, tensor: False, results=None
    )
    message = bytearray(bytes(request.encode()))
    message[rng.randrange(len(message))] ^= 1 << rng.randrange(8)
    return bytes(message)


@pytest.fixture
def pool(client: opserve.Client) -> Any:
    one = Pool(client)
    yield one
    one.clear()


def test_random_programs_compute_what_numpy_does(pool: Pool) -> None:
    seed = seed_of_test(1)
    for number in range(GRAPHS):
        rng = random.Random(f"{seed} {number}")
        if number % 50 == 0:
            pool.clear()
            for _ in range(4):
                data = Graph(rng, pool).array()
                pool.add(pool.client.upload(data), data)
        graph = Graph(rng, pool)
        graph.build()
        try:
            graph.run()
            if number % 10 == 9:
                pool.check()
        except Exception as error:
            raise AssertionError(f"program {number}") from error


def test_mutated_programs_are_refused_or_run(client: opserve.Client) -> None:
    """No answer but a result or a mistake of the caller's; the daemon goes on."""
    pool = Pool(client)
    seed = seed_of_test(1)
    for number in range(GRAPHS):
        rng = random.Random(f"{seed} mutated {number}")
        graph = Graph(rng, pool)
        graph.build()
        try:
            client._call(opserve._wire.EXECUTE, mutated(graph, rng), None)
        except (
            opserve.InvalidArgumentError,
            opserve.NotFoundError,
            opserve.FailedPreconditionError,
            opserve.UnimplementedError,
        ):
            pass
        except opserve.OpserveError as error:
            raise AssertionError(f"program {number}: {error}") from error
    assert client.add(np.float32(1), np.float32(2)) == 3
