"""What tests of opserve.torch have in common."""

import contextlib

import pytest
import torch
from formulas import normal

import opserve
import opserve.torch


# The oldest version that opserve.torch supports; a test that skips with it says why.
is_torch_2_4 = torch.__version__.startswith("2.4.")


class CountingClient(opserve.Client):
    """Remembers the programs that it ran."""

    def execute(self, program, *arguments, **options):
        self.programs.append([step.operator for step in program.invocations])
        return super().execute(program, *arguments, **options)


@contextlib.contextmanager
def counting(target):
    """The functions, and what they asked the daemon for."""
    with CountingClient(target) as client:
        client.programs = []
        functions = opserve.torch.Functions(client)
        functions.programs = client.programs
        yield functions


@pytest.fixture(params=["pool", "local"])
def either(request, daemon, tmp_path):
    """The functions by way of the daemon, and as computed here without one."""
    target = daemon.target if request.param == "pool" else f"unix:{tmp_path}/none"
    with opserve.Client(target, retry=opserve.Retry(max_attempts=1)) as client:
        fallback = None if request.param == "pool" else "local"
        yield opserve.torch.Functions(client, fallback=fallback)


def tensor(*shape, seed=0, dtype=torch.float32, positive=False):
    values = torch.from_numpy(normal(*shape, seed=seed, dtype="f8")).to(dtype)
    return values.abs() + 0.1 if positive else values


def gradients(function, *inputs):
    """Of the sum of what `function` gives, weighted unevenly."""
    leaves = [one.clone().requires_grad_() for one in inputs]
    output = function(*leaves)
    weights = torch.linspace(1, 2, output.numel(), dtype=output.dtype)
    return torch.autograd.grad(output, leaves, weights.reshape(output.shape))


def assert_same_gradients(remote, here, *inputs, rtol=1e-5, atol=1e-6):
    for got, expected in zip(gradients(remote, *inputs), gradients(here, *inputs)):
        assert got.dtype == expected.dtype
        torch.testing.assert_close(got, expected, rtol=rtol, atol=atol)
