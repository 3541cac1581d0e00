"""torch.compile(model, backend="opserve") against eager torch: current torch from PyPI."""

from __future__ import annotations

import copy
import gc
import importlib.util
import os
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import sent_by
from sent_bytes import SentBytes
from torch import nn
from torch.nn import functional as F
from torch_models import CASES, IS_LONG, LIBRARY_CASES, STEPS, Case, Mlp

# Short runs train those of libraries in training_test.py only.
TRAINED_CASES = {**CASES, **(LIBRARY_CASES if IS_LONG else {})}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No test sees another one's compiled graphs, or its random numbers."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def backend(client: opserve.Client) -> opserve.torch.Backend:
    return opserve.torch.backend(client, strict=True)


def losses(
    model: nn.Module, run: Callable[..., Any], case: Case, steps: int = STEPS
) -> list[float]:
    """Trains `model`, which `run` calls, and gives the loss of each step.

    The learning rate is small because at 0.05 eager float32 itself leaves float64: by 2 % for
    ResNet-18 at step 19, or by 4 % in channels_last, where the pool is within 2e-6 of float64.
    """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9)
    seen = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = case.loss(run, *case.batch(step))
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


@pytest.mark.parametrize("name", TRAINED_CASES)
def test_training_gives_the_losses_and_gradients_of_eager_torch(
    backend: opserve.torch.Backend, name: str
) -> None:
    case = TRAINED_CASES[name]
    model = case.make()
    eager = copy.deepcopy(model)

    run = torch.compile(model, backend=backend)
    seen = losses(model, run, case)

    expected = losses(eager, eager, case)
    assert seen[0] == pytest.approx(expected[0], rel=1e-5)
    assert seen == pytest.approx(expected, rel=1e-3)
    theirs = dict(eager.named_parameters())
    for parameter_name, parameter in model.named_parameters():
        gradient, other = parameter.grad, theirs[parameter_name].grad
        assert (gradient is None) == (other is None), parameter_name
        if gradient is not None and other is not None:
            scale = max(other.abs().max().item(), 1e-3)
            torch.testing.assert_close(
                gradient / scale, other / scale, rtol=0, atol=2e-3, msg=parameter_name
            )
    for buffer_name, buffer in model.named_buffers():
        torch.testing.assert_close(
            buffer, dict(eager.named_buffers())[buffer_name], rtol=1e-4, atol=1e-5
        )
    assert all(not plan.unsupported for plan in backend.plans)


def opserve_root() -> pathlib.Path:
    return pathlib.Path(opserve.__file__).parent.parent


def test_a_second_step_sends_its_batch_and_what_changed(
    client: opserve.Client, backend: opserve.torch.Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    real_call = client._call

    def call(method: str, message: bytes, *args: Any, **kwargs: Any) -> bytes:
        sent.append(len(message))
        return real_call(method, message, *args, **kwargs)

    uploads = []
    real_upload = client.upload
    monkeypatch.setattr(client, "_call", call)
    monkeypatch.setattr(client, "_send", sent_by(call))
    monkeypatch.setattr(
        client,
        "upload",
        lambda tensor, **options: uploads.append(tensor.nbytes) or real_upload(tensor, **options),
    )
    model = nn.Sequential(nn.Linear(512, 512), nn.LayerNorm(512), nn.Linear(512, 4))
    run = torch.compile(model, backend=backend)
    x, target = torch.randn(8, 512), torch.randn(8, 4)
    parameters = sum(one.nbytes for one in model.parameters())
    F.mse_loss(run(x), target).backward()  # without an optimizer nothing changes

    for _ in range(3):
        gc.collect()
        sent.clear()
        uploads.clear()
        F.mse_loss(run(x), target).backward()

        # The batch up, the result down, its gradient up; activations stay, and so do parameters
        # that the backward pass needs.
        assert sum(uploads) == 0
        assert sum(sent) < 2 * (x.nbytes + 8 * 4 * 4) + 16384 < parameters / 10


def test_a_gradient_of_zeros_is_not_sent(
    client: opserve.Client, backend: opserve.torch.Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return torch.tanh(x), x.exp().view(-1), x + 1

    sent = SentBytes(client, monkeypatch)
    run = torch.compile(f, backend=backend)
    x = torch.randn(100, 100, requires_grad=True)
    last = torch.zeros(10000)
    last[-1] = 2
    losses: list[tuple[int, Callable[..., torch.Tensor]]] = [
        (1, lambda a, b, c: a.square().sum()),
        (1, lambda a, b, c: b.square().sum()),
        (1, lambda a, b, c: (b * last).sum()),
        (2, lambda a, b, c: a.square().sum() + c.square().sum()),
        (0, lambda a, b, c: (a * 0).sum()),
        (3, lambda a, b, c: (a.view(-1) * b * c.view(-1)).sum()),
    ]
    for count, loss in losses * 2:
        given = run(x)
        sent.clear()
        (seen,) = torch.autograd.grad(loss(*given), x)
        (expected,) = torch.autograd.grad(loss(*f(x)), x)
        torch.testing.assert_close(seen, expected)
        assert list(map(len, sent.payloads)) == [x.nbytes] * count


def test_what_the_backward_pass_needs_stays_and_goes(
    client: opserve.Client, backend: opserve.torch.Backend
) -> None:
    model = Mlp()
    run = torch.compile(model, backend=backend)
    residents = backend.residents()
    loss = run(torch.randn(16, 20)).sum()
    during = residents.count()
    loss.backward()
    del loss
    gc.collect()
    residents.sweep()
    after = residents.count()

    assert during > after > 0  # parameters stay
    del model, run
    torch._dynamo.reset()
    gc.collect()
    residents.sweep()
    assert residents.count() == 0


def test_a_backward_pass_uses_the_parameters_of_its_forward_pass(
    backend: opserve.torch.Backend,
) -> None:
    layer = nn.LayerNorm(3)
    run = torch.compile(layer, backend=backend)
    x = torch.randn(4, 3, requires_grad=True)
    weights = torch.randn(4, 3)
    (expected,) = torch.autograd.grad((layer(x) * weights).sum(), x)
    seen = (run(x) * weights).sum()
    with torch.no_grad():
        layer.weight.mul_(2)
        run(x)  # sends the new values
        run(x)  # releases what is not needed

    (gradient,) = torch.autograd.grad(seen, x)
    torch.testing.assert_close(gradient, expected)


def test_a_changed_parameter_is_sent_again(backend: opserve.torch.Backend) -> None:
    layer = nn.Linear(3, 2)
    run = torch.compile(layer, backend=backend)
    x = torch.randn(4, 3)
    run(x)
    with torch.no_grad():
        layer.weight.mul_(2)

    torch.testing.assert_close(run(x), layer(x))


def test_dropout_repeats_with_torchs_seed(backend: opserve.torch.Backend) -> None:
    model = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5))
    run = torch.compile(model, backend=backend)
    x = torch.randn(32, 8)
    torch.manual_seed(5)
    first, second = run(x), run(x)
    torch.manual_seed(5)

    assert torch.equal(run(x), first)
    assert not torch.equal(second, first)
    assert 0.4 < (first == 0).float().mean().item() < 0.6
    (gradient,) = torch.autograd.grad(first.sum(), model[0].bias)
    torch.testing.assert_close(gradient, 2 * (first != 0).float().sum(0))


def test_without_gradients_nothing_is_saved(backend: opserve.torch.Backend) -> None:
    model = Mlp()
    run = torch.compile(model, backend=backend)
    x = torch.randn(3, 20)
    with torch.no_grad():
        seen = run(x)
    torch.testing.assert_close(seen, model(x))
    assert backend.residents().count() == len(list(model.parameters()))


def test_shapes_have_plans_of_their_own(backend: opserve.torch.Backend) -> None:
    model = Mlp()
    run = torch.compile(model, backend=backend)
    for rows in (4, 7, 4, 1):
        x = torch.randn(rows, 20)
        torch.testing.assert_close(run(x), model(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_as_close_as_their_precision(
    backend: opserve.torch.Backend, dtype: torch.dtype
) -> None:
    model = Mlp().to(dtype)
    run = torch.compile(model, backend=backend)
    x = torch.randn(16, 20, dtype=dtype)
    seen = run(x)

    exact = copy.deepcopy(model).double()(x.double())
    limit = 8 * torch.finfo(dtype).eps
    assert seen.dtype == dtype
    assert (seen.double() - exact).abs().max().item() < limit * exact.abs().max().item()


def test_nodes_that_the_pool_lacks_are_named_with_their_line(client: opserve.Client) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j0(x * 2) + 1

    line = f.__code__.co_firstlineno + 1
    place = rf"compile_test.py, line {line}, in f: return torch.special.bessel_j0\(x \* 2\) \+ 1"
    x = torch.rand(5)
    strict = torch.compile(f, backend=opserve.torch.backend(client, strict=True))
    with pytest.raises(opserve.torch.UnsupportedError, match=f"special_bessel_j0.*{place}"):
        strict(x)
    torch._dynamo.reset()
    lenient = torch.compile(f, backend=opserve.torch.backend(client))
    with pytest.warns(
        opserve.torch.LocalNodesWarning, match=f"special_bessel_j0.*{place}"
    ) as seen_warnings:
        seen = lenient(x)
    assert {one.filename for one in seen_warnings} == {__file__}
    torch.testing.assert_close(seen, f(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lenient(x)
    y = x.clone().requires_grad_()
    with pytest.warns(opserve.torch.LocalNodesWarning, match=f"special_bessel_j1.*{place}"):
        lenient(y).sum().backward()


def test_second_derivatives_raise(backend: opserve.torch.Backend) -> None:
    run = torch.compile(torch.tanh, backend=backend)
    x = torch.randn(3, requires_grad=True)
    with pytest.raises(RuntimeError):
        (first,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
        first.sum().backward()


def test_a_lost_device_is_an_error_that_says_so(start_daemon: Callable[..., Any]) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        model = Mlp()
        run = torch.compile(model, backend=opserve.torch.backend(client, strict=True))
        loss = run(torch.randn(2, 20)).sum()
        daemon.stop()
        daemon.start()
        with pytest.raises(opserve.OpserveError, match="lost|upload it again"):
            loss.backward()
        # Parameters are sent again.
        x = torch.randn(2, 20)
        torch.testing.assert_close(run(x), model(x))


def test_explain_tells_nodes_and_bytes_without_a_daemon() -> None:
    model = nn.Sequential(nn.Linear(20, 8), nn.Tanh(), nn.Linear(8, 2))
    told = opserve.torch.explain(model, torch.randn(16, 20))

    forward, backward = told.graphs
    assert (forward.name, backward.name) == ("forward", "backward")
    assert (forward.local_nodes, backward.local_nodes) == (0, 0)
    assert (len(forward.programs), len(backward.programs)) == (1, 1)
    assert forward.bytes_up == 16 * 20 * 4
    assert forward.bytes_down == backward.bytes_up == 16 * 2 * 4
    assert told.parameter_bytes == backward.bytes_down == (20 * 8 + 8 + 8 * 2 + 2) * 4
    assert told.peak_bytes > told.parameter_bytes + forward.bytes_kept
    assert all(one.grad is None for one in model.parameters())
    assert "forward" in str(told)


def test_explain_names_the_line_of_a_node_that_the_pool_lacks() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j0(x * 2) + 1

    told = opserve.torch.explain(f, torch.rand(5))

    [(name, (count, reason))] = told.unsupported.items()
    assert "special_bessel_j0" in name and count == 1
    assert "compile_test.py" in reason and "bessel_j0(x * 2)" in reason


@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt", "vae", "towers"])
def test_compare_finds_no_difference(client: opserve.Client, name: str) -> None:
    case = CASES[name]
    model = case.make()

    found = opserve.torch.compare(
        model, *case.batch(0)[: {"vae": 2, "towers": 4}.get(name, 1)], client=client
    )

    assert found.differences == (), str(found)
    assert found.nodes > 20


def test_compare_names_the_first_node_that_differs(
    client: opserve.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opserve.torch import _lowerings

    real = _lowerings.LOWERINGS[torch.ops.aten.tanh.default]
    monkeypatch.setitem(
        _lowerings.LOWERINGS,
        torch.ops.aten.tanh.default,
        lambda b, x: b.op("Muls", self=real(b, x), other=1.01),
    )
    found = opserve.torch.compare(
        lambda x: torch.tanh(x + 1) * 2, torch.randn(9), client=client
    )

    first = found.differences[0]
    assert first.operator == "aten.tanh.default"
    assert first.error == pytest.approx(0.01, rel=0.1)
    assert "torch.tanh(x + 1)" in first.line


def test_the_page_of_nodes_is_current() -> None:
    root = opserve_root()
    spec = importlib.util.spec_from_file_location(
        "generate_aten", root / "tools/generate_aten.py"
    )
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    assert (root / "ATEN.md").read_text() == tool.page()


def test_tensors_that_no_message_holds_travel_in_chunks(
    client: opserve.Client, backend: opserve.torch.Backend
) -> None:
    x = torch.randn(20 << 20)  # 80 MiB
    run = torch.compile(lambda x: x + 1, backend=backend)

    assert torch.equal(run(x), x + 1)
    backend.residents().sweep()
    assert backend.residents().count() == 0


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i, j: x[i],
        lambda x, i, j: x[:, i],
        lambda x, i, j: x[:, :, j],
        lambda x, i, j: x[:, i, j],
        lambda x, i, j: x[i, :, j],
        lambda x, i, j: x[:, i.unsqueeze(1), j],
    ],
    ids=["first", "second", "last", "two", "apart", "broadcast"],
)
def test_indices_of_any_axes(backend: opserve.torch.Backend, f: Any) -> None:
    x = torch.randn(4, 5, 6, requires_grad=True)
    i, j = torch.tensor([3, 0, 3]), torch.tensor([1, 2, 1])

    seen = torch.compile(f, backend=backend)(x, i, j)
    expected = f(x, i, j)

    torch.testing.assert_close(seen, expected, rtol=0, atol=0)
    weights = torch.randn(expected.shape)
    (gradient,) = torch.autograd.grad((seen * weights).sum(), x)
    (other,) = torch.autograd.grad((expected * weights).sum(), x)
    torch.testing.assert_close(gradient, other)


def test_a_view_of_unfolded_elements_is_copied(backend: opserve.torch.Backend) -> None:
    def windows(x: torch.Tensor) -> torch.Tensor:
        columns = F.unfold(x.transpose(1, 2).unsqueeze(-1), (3, 1), padding=(1, 0))
        return columns.transpose(1, 2).reshape(-1, 4, 3).sum(-1)

    x = torch.randn(2, 5, 4, requires_grad=True)
    assert not opserve.torch.explain(windows, x).unsupported
    seen, expected = torch.compile(windows, backend=backend)(x), windows(x)

    torch.testing.assert_close(seen, expected)
    weights = torch.randn(expected.shape)
    (gradient,) = torch.autograd.grad((seen * weights).sum(), x)
    (other,) = torch.autograd.grad((expected * weights).sum(), x)
    torch.testing.assert_close(gradient, other)


class Widening(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x)
        wide = y[:, None] + y[None, :]
        return wide.sum()


def test_an_error_of_the_daemon_names_the_line_of_the_model(
    start_daemon: Callable[..., Any],
) -> None:
    daemon = start_daemon("--max_request_work=100000")
    with opserve.Client(daemon.target) as client:
        run = torch.compile(Widening(), backend=opserve.torch.backend(client))
        with pytest.raises(opserve.FailedPreconditionError) as raised:
            run(torch.ones(1000))
    assert raised.value.operator == "Add"
    assert "compile_test.py, line " in raised.value.message
    assert raised.value.message.endswith("in forward: wide = y[:, None] + y[None, :])")
