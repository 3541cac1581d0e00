"""opserve.torch under the transforms of torch.func and under torch.compile."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as local
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch_helpers import counting, tensor

import opserve.torch

pytestmark = [
    pytest.mark.filterwarnings("ignore:reduction. 'mean' divides"),
    pytest.mark.filterwarnings("ignore:.*performance drop:UserWarning"),
]


@pytest.fixture
def pool(daemon):
    """The functions, and what they asked the daemon for."""
    with counting(daemon.target) as functions:
        yield functions


T = tensor(3, 4, seed=1, positive=True)
WEIGHT = tensor(4, seed=2, positive=True)
CLASSES = torch.tensor([1, 3, -100])
FUNCTIONS = {
    "kl_div": lambda f, x: f.kl_div(f.log_softmax(x, -1), T),
    "l1_loss": lambda f, x: f.l1_loss(x, T),
    "mse_loss": lambda f, x: f.mse_loss(f.softmax(x, -1), T, reduction="sum"),
    "smooth_l1_loss": lambda f, x: f.smooth_l1_loss(x, T, beta=0.7),
    "classes": lambda f, x: f.cross_entropy(x, CLASSES, WEIGHT, label_smoothing=0.2),
    "probabilities": lambda f, x: f.cross_entropy(x, T, WEIGHT, label_smoothing=0.2),
    "softmax": lambda f, x: f.softmax(x, 0).square().sum(),
}


def samples(x):
    return torch.stack([x, 2 * x, -3 * x])


TRANSFORMS = {
    "grad": grad,
    "grad of grad": lambda f: grad(lambda x: grad(f)(x).square().sum()),
    "vjp": lambda f: lambda x: vjp(f, x)[1](torch.tensor(2.0))[0],
    "jacrev of jacrev": lambda f: jacrev(jacrev(f)),
    "hessian": hessian,
    "jacfwd of jacrev": lambda f: jacfwd(jacrev(f)),
    "gradients of samples": lambda f: lambda x: vmap(grad(f))(samples(x)),
    "samples along another axis": lambda f: (
        lambda x: vmap(grad(f), in_dims=1)(samples(x).movedim(0, 1).contiguous())
    ),
    "gradients of values of samples": lambda f: grad(
        lambda x: vmap(f)(samples(x)).sin().sum()
    ),
    "hessians of samples": lambda f: lambda x: vmap(jacrev(jacrev(f)))(samples(x)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_transforms(pool, function, transform):
    compute = FUNCTIONS[function]
    x = tensor(3, 4)
    got, expected = (
        TRANSFORMS[transform](lambda x: compute(functions, x))(x)
        for functions in (pool, local)
    )
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    assert pool.programs


@pytest.mark.parametrize("function", FUNCTIONS)
def test_transforms_without_a_daemon(tmp_path, function):
    lost = opserve.Client(f"unix:{tmp_path}/none", retry=opserve.Retry(max_attempts=1))
    compute, x = FUNCTIONS[function], tensor(3, 4)
    here = opserve.torch.Functions(lost, fallback="local")
    for transform in ("grad of grad", "hessians of samples"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, expected = (
                TRANSFORMS[transform](lambda x: compute(functions, x))(x)
                for functions in (here, local)
            )
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    assert here.fallbacks > 0
    with pytest.raises(opserve.UnavailableError):
        grad(lambda x: compute(opserve.torch.Functions(lost), x))(x)


def test_forward_derivatives_need_no_daemon(pool):
    x = tensor(3, 4)
    for compute in FUNCTIONS.values():
        got, expected = (
            jvp(lambda x: compute(functions, x), (x,), (2 * x,))[1]
            for functions in (pool, local)
        )
        torch.testing.assert_close(got, expected)
    assert pool.programs == []


def test_gradients_of_samples_are_one_program(pool):
    vmap(grad(lambda x: pool.l1_loss(x, T)))(samples(tensor(3, 4)))
    assert pool.programs == [["L1LossBackward"] * 3]


def test_many_samples_are_several_programs(pool):
    x = tensor(1500, 2)
    got, expected = (
        vmap(grad(lambda x: f.l1_loss(x, T[0, :2])))(x) for f in (pool, local)
    )
    torch.testing.assert_close(got, expected)
    assert [len(program) for program in pool.programs] == [1024, 476]


def test_samples_in_shared_memory(pool):
    with pool._client.create_region(1 << 16) as region:
        x = torch.from_numpy(region.empty((5, 3, 4), np.float32))
        x.copy_(tensor(5, 3, 4))
        for compute in FUNCTIONS.values():
            got, expected = (
                vmap(grad(lambda x: compute(functions, x)))(x)
                for functions in (pool, local)
            )
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def forget_compiled():
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_functions(pool, function, backend):
    def compute(functions):
        def run(x):
            return FUNCTIONS[function](functions, x * 2).sin() * 3

        return run

    x = tensor(3, 4).requires_grad_()
    compiled = torch.compile(compute(pool), backend=backend)
    for _ in range(2):
        got, expected = compiled(x), compute(local)(x)
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(
            torch.autograd.grad(got, [x]),
            torch.autograd.grad(expected, [x]),
            rtol=1e-4,
            atol=1e-5,
        )
    assert pool.programs


def test_compiled_functions_of_the_module(daemon, monkeypatch):
    monkeypatch.setenv("OPSERVE_TARGET", daemon.target)
    x = tensor(3, 4).requires_grad_()
    for name in ("kl_div", "l1_loss", "mse_loss", "smooth_l1_loss"):
        compiled = torch.compile(
            lambda x: getattr(opserve.torch, name)(x, T), backend="aot_eager"
        )
        got = torch.autograd.grad(compiled(x), [x])
        expected = torch.autograd.grad(getattr(local, name)(x, T), [x])
        torch.testing.assert_close(got, expected)


def test_a_compiled_model_with_a_module_as_its_loss(pool):
    model = torch.nn.Linear(4, 5)
    loss = opserve.torch.CrossEntropyLoss(functions=pool)
    classes = torch.tensor([1, 4, 0])

    def step(x):
        return loss(model(x), classes)

    x = tensor(3, 4)
    for backend in ("aot_eager", "opserve"):
        use = backend
        if backend == "opserve":
            use = opserve.torch.backend(pool._client)
        got = torch.autograd.grad(
            torch.compile(step, backend=use)(x), list(model.parameters())
        )
        expected = torch.autograd.grad(
            local.cross_entropy(model(x), classes), list(model.parameters())
        )
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
        torch._dynamo.reset()
