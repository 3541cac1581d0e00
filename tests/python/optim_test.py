"""opserve.torch.optim: optimizers on the pool, against torch's."""

from __future__ import annotations

import copy
import gc
import io
from collections.abc import Callable
from typing import Any

import opserve
import opserve.torch
import opserve.torch.optim
import pytest
import torch
from counting_proxy import counting_proxy
from optim_helpers import (  # noqa: F401
    OPTIMIZERS,
    LosingChannel,
    Pair,
    Traffic,
    backend,
    fresh,
    traffic,
)
from torch import nn
from torch.nn import functional as F
from torch.optim import optimizer as torchs
from torch_models import CASES, IS_LONG

optim = opserve.torch.optim


# A hundred steps of each in the long run.
@pytest.mark.parametrize(
    ("name", "steps"),
    [(name, 100 if IS_LONG or name == "adamw" else 20) for name in OPTIMIZERS],
)
def test_many_steps_are_those_of_torch(
    backend: opserve.torch.Backend, traffic: Traffic, name: str, steps: int
) -> None:
    pair = Pair(backend, name)
    losses = [pair.step(0)]
    pair.check(1e-5)
    losses.append(pair.step(1))
    traffic.clear()
    losses += [pair.step(number) for number in range(2, steps)]

    assert (traffic.uploads, traffic.downloads, traffic.prepared) == (0, 0, 0)
    for number, (seen, expected) in enumerate(losses):
        assert seen == pytest.approx(expected, rel=1e-5 if number < 2 else 1e-3)
    pair.check(1e-3)


def test_a_step_sends_no_parameters_gradients_or_state(
    backend: opserve.torch.Backend, traffic: Traffic
) -> None:
    model = nn.Sequential(nn.Linear(512, 512), nn.LayerNorm(512), nn.Linear(512, 4))
    run = torch.compile(model, backend=backend)
    optimizer = optim.AdamW(model.parameters(), backend=backend)
    x, target = torch.randn(8, 512), torch.randn(8, 4)
    parameters = sum(one.nbytes for one in model.parameters())
    for step in range(4):
        traffic.clear()
        optimizer.zero_grad()
        F.mse_loss(run(x), target).backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step > 0:
            assert (traffic.uploads, traffic.downloads) == (0, 0)
            assert traffic.sent < x.nbytes + 16384 < parameters / 10
            assert traffic.received < 16384

    # Evaluation uses what is there.
    traffic.clear()
    with torch.no_grad():
        run(x)
    assert (traffic.uploads, traffic.downloads) == (0, 0)


def test_a_step_takes_a_kilobyte_on_the_wire_beside_its_batch_and_its_loss(daemon: Any) -> None:
    first, last = 10, 60
    with counting_proxy(daemon.socket) as proxy, opserve.Client(proxy.target) as client:
        backend = opserve.torch.backend(client, strict=True)
        model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        run = torch.compile(lambda x, y: F.cross_entropy(model(x), y), backend=backend)
        optimizer = optim.AdamW(model.parameters(), backend=backend)
        x, labels = torch.randn(60, 64), torch.arange(60) % 10
        for step in range(last):
            if step == first:
                backend.synchronize()
                before = proxy.bytes
            optimizer.zero_grad()
            loss = run(x, labels)
            loss.backward()
            optimizer.step()
        backend.synchronize()
        of_a_step = (proxy.bytes - before) / (last - first)
        assert x.nbytes < of_a_step <= x.nbytes + labels.nbytes + loss.nbytes + 1024


@pytest.mark.parametrize("name", ["momentum", "amsgrad", "adamw"])
def test_states_move_to_torch_and_back(backend: opserve.torch.Backend, name: str) -> None:
    ours, theirs, options = OPTIMIZERS[name]
    pair = Pair(backend, name)
    for number in range(3):
        pair.step(number)
    ours_state, state = pair.optimizer.state_dict(), pair.other.state_dict()
    assert ours_state["param_groups"] == state["param_groups"]
    for key, values in state["state"].items():
        assert list(ours_state["state"][key]) == list(values)
        for value_name, value in values.items():
            seen = ours_state["state"][key][value_name]
            assert type(seen) is type(value)
            torch.testing.assert_close(seen, value, rtol=1e-3, atol=1e-6)

    # Each goes on with the state of the other, through a file.
    file = io.BytesIO()
    torch.save([ours_state, state], file)
    file.seek(0)
    ours_state, state = torch.load(file)
    pair.optimizer = ours(pair.model.parameters(), backend=backend, lr=1.0)
    pair.optimizer.load_state_dict(state)
    pair.other = theirs(pair.eager.parameters(), lr=1.0)
    pair.other.load_state_dict(ours_state)
    for number in range(3, 6):
        seen, expected = pair.step(number)
        assert seen == pytest.approx(expected, rel=1e-4)
    pair.check(1e-3)


def test_a_copied_optimizer_goes_on(backend: opserve.torch.Backend) -> None:
    pair = Pair(backend)
    pair.step(0)
    model, optimizer = copy.deepcopy((pair.model, pair.optimizer))
    optimizer._pool = backend
    seen, expected = pair.step(1)
    pair.model, pair.optimizer = model, optimizer
    pair.run = torch.compile(model, backend=backend)
    pair.eager, pair.other = copy.deepcopy((model, optimizer)), None  # type: ignore[assignment]
    x, classes = CASES["mlp"].batch(1)
    loss = F.cross_entropy(pair.run(x), classes)
    assert loss.item() == pytest.approx(seen, rel=1e-5)
    loss.backward()
    optimizer.step()


@pytest.mark.parametrize(
    "schedule",
    [
        lambda one: torch.optim.lr_scheduler.OneCycleLR(one, max_lr=0.01, total_steps=12),
        lambda one: torch.optim.lr_scheduler.StepLR(one, step_size=3, gamma=0.3),
    ],
    ids=["one-cycle", "step"],
)
@pytest.mark.parametrize("name", ["adamw", "nesterov"])
def test_schedulers_of_torch_change_numbers_not_programs(
    backend: opserve.torch.Backend, traffic: Traffic, name: str, schedule: Any
) -> None:
    pair = Pair(backend, name)
    schedulers = [schedule(pair.optimizer), schedule(pair.other)]
    for number in range(10):
        if number == 2:
            traffic.clear()
        seen, expected = pair.step(number)
        assert seen == pytest.approx(expected, rel=1e-3)
        for one in schedulers:
            one.step()
    assert traffic.prepared == 0
    pair.check()


def test_groups_have_options_of_their_own(backend: opserve.torch.Backend) -> None:
    pair = Pair(backend)
    for model, (make, extra) in zip(
        (pair.model, pair.eager),
        ((optim.AdamW, {"backend": backend}), (torch.optim.AdamW, {})),
    ):
        groups = [
            {"params": [model[0].weight, model[3].weight], "weight_decay": 0.3},
            {"params": [model[0].bias, model[3].bias], "weight_decay": 0.0, "lr": 0.01},
        ]
        made = make(groups, lr=0.002, **extra)
        made.add_param_group({"params": list(model[2].parameters()), "betas": (0.5, 0.6)})
        if model is pair.model:
            pair.optimizer = made
        else:
            pair.other = made
    for number in range(4):
        seen, expected = pair.step(number)
        assert seen == pytest.approx(expected, rel=1e-4)
    pair.check()


@pytest.mark.parametrize("clip", [None, "pool", "torch"])
@pytest.mark.parametrize("parts", [2, 4])
def test_gradients_of_several_batches_are_summed(
    backend: opserve.torch.Backend, traffic: Traffic, parts: int, clip: Any
) -> None:
    pair = Pair(backend, "momentum")
    for number in range(4):
        traffic.clear()
        for run, model, optimizer in pair.sides:
            optimizer.zero_grad()
            for part in range(parts):
                x, classes = CASES["mlp"].batch(parts * number + part)
                (F.cross_entropy(run(x), classes) / parts).backward()
            if clip is not None:
                ours = clip == "pool" and model is pair.model
                function = optim.clip_grad_norm_ if ours else nn.utils.clip_grad_norm_
                function(model.parameters(), 0.1)
            optimizer.step()
        if number > 1 and clip != "torch":
            assert (traffic.uploads, traffic.downloads, traffic.prepared) == (0, 0, 0)
        pair.check()


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("largest", [1e-3, 100.0])
def test_clipping_gives_torchs_norm_and_gradients(
    backend: opserve.torch.Backend, order: float, largest: float
) -> None:
    pair = Pair(backend)
    x, classes = CASES["mlp"].batch(0)
    F.cross_entropy(pair.run(x), classes).backward()
    F.cross_entropy(pair.eager(x), classes).backward()

    seen = optim.clip_grad_norm_(pair.model.parameters(), largest, order)

    expected = nn.utils.clip_grad_norm_(pair.eager.parameters(), largest, order)
    torch.testing.assert_close(seen, expected, rtol=1e-4, atol=1e-6)
    for one, other in zip(pair.model.parameters(), pair.eager.parameters()):
        torch.testing.assert_close(
            one.grad.clone(), other.grad, rtol=1e-3, atol=1e-7  # type: ignore[union-attr]
        )


def test_clipping_refuses_norms_that_are_not_finite(backend: opserve.torch.Backend) -> None:
    pair = Pair(backend)
    (pair.run(torch.randn(2, 20)).sum() * float("inf")).backward()
    with pytest.raises(RuntimeError, match="finite"):
        optim.clip_grad_norm_(pair.model.parameters(), 1.0, error_if_nonfinite=True)


def test_gradients_can_be_read_and_changed(backend: opserve.torch.Backend) -> None:
    pair = Pair(backend, "momentum")
    for number in range(3):
        x, classes = CASES["mlp"].batch(number)
        for run, model, optimizer in pair.sides:
            optimizer.zero_grad(set_to_none=number == 2)
            F.cross_entropy(run(x), classes).backward()
            with torch.no_grad():
                model[0].weight.grad.clamp_(-1e-3, 1e-3)
                model[0].bias.grad[3] = 0.5
                model[2].weight.grad = model[2].weight.grad * 2
                model[2].bias.grad = None
                model[3].weight.grad.view(-1)[:7].zero_()
            optimizer.step()
        ours, theirs = (
            [one.grad.tolist() if one.grad is not None else None for one in model.parameters()]
            for model in (pair.model, pair.eager)
        )
        assert [one is None for one in ours] == [one is None for one in theirs]
        for one, other in zip(ours, theirs):
            if one is not None:
                torch.testing.assert_close(torch.tensor(one), torch.tensor(other))
        pair.check()
    gradient = pair.model[3].bias.grad
    expected = pair.eager[3].bias.grad
    torch.testing.assert_close(copy.deepcopy(gradient), expected)
    torch.testing.assert_close(torch.from_numpy(gradient.numpy()), expected)


def test_an_optimizer_of_torchs_takes_the_same_gradients(
    backend: opserve.torch.Backend,
) -> None:
    pair = Pair(backend)
    # Its own optimizer lives, so gradients stay on the pool; this one reads them.
    pair.optimizer, unused = torch.optim.AdamW(pair.model.parameters(), lr=1e-3), pair.optimizer
    for number in range(3):
        seen, expected = pair.step(number)
        assert seen == pytest.approx(expected, rel=1e-4)
    pair.check()
    del unused


def test_a_gradient_scaler_unscales_on_the_pool(
    backend: opserve.torch.Backend, traffic: Traffic
) -> None:
    pair = Pair(backend, "adam")
    scalers = [torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2) for _ in range(2)]
    for number in range(6):
        x, classes = CASES["mlp"].batch(number)
        traffic.clear()
        losses = []
        for scaler, (run, model, optimizer) in zip(scalers, pair.sides):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = F.cross_entropy(run(x).float(), classes)
            if number == 3:
                loss = loss * float("inf")  # this step is left out
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            optim.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        if number not in (0, 1, 3):
            assert (traffic.uploads, traffic.downloads) == (0, 0)
        if number != 3:
            assert losses[0] == pytest.approx(losses[1], rel=1e-2)
        assert scalers[0].get_scale() == scalers[1].get_scale()
    assert float(pair.optimizer.state[pair.model[0].weight]["step"]) == 5
    pair.check(5e-3)


def test_autocast_to_bfloat16_trains_as_torch_does(
    backend: opserve.torch.Backend, traffic: Traffic
) -> None:
    pair = Pair(backend, "adamw")
    for number in range(6):
        x, classes = CASES["mlp"].batch(number)
        traffic.clear()
        losses = []
        for run, model, optimizer in pair.sides:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scores = run(x)
                loss = F.cross_entropy(scores.float(), classes)
            assert scores.dtype == torch.bfloat16
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-2)
        if number > 1:
            assert (traffic.uploads, traffic.downloads) == (0, 0)
    assert all(one.dtype == torch.float32 for one in pair.model.parameters())
    pair.check(1e-2)


@pytest.mark.parametrize("name", ["momentum", "adamw"])
def test_bfloat16_parameters_change_as_torchs(
    backend: opserve.torch.Backend, name: str
) -> None:
    ours, theirs, options = OPTIMIZERS[name]
    model = nn.Linear(20, 5).bfloat16()
    eager = copy.deepcopy(model)
    run = torch.compile(model, backend=backend)
    optimizer = ours(model.parameters(), backend=backend, **options)
    other = theirs(eager.parameters(), **options)
    for number in range(5):
        x, classes = CASES["mlp"].batch(number)
        for function, one in ((run, optimizer), (eager, other)):
            one.zero_grad()
            F.cross_entropy(function(x.bfloat16()).float(), classes).backward()
            one.step()
    torch.testing.assert_close(model.weight.clone(), eager.weight, rtol=0.05, atol=0.01)


def test_gradients_that_autograd_copies_stay_on_the_pool(
    backend: opserve.torch.Backend, traffic: Traffic
) -> None:
    pair = Pair(backend)
    seen: list[torch.Tensor] = []
    for model in (pair.model, pair.eager):
        for parameter in model.parameters():
            parameter.register_hook(seen.append)  # refers to the gradient
    pair.step(0)
    traffic.clear()
    seen.clear()
    pair.step(1)
    assert traffic.downloads == 0
    pair.check()


def test_hooks_and_the_profiler_see_steps(backend: opserve.torch.Backend) -> None:
    pair = Pair(backend)
    pair.step(0)
    seen: list[str] = []

    def note(name: str) -> Callable[..., None]:
        return lambda optimizer, *_: seen.append(name) if optimizer is pair.optimizer else None

    ways = (
        ("before", pair.optimizer.register_step_pre_hook),
        ("after", pair.optimizer.register_step_post_hook),
        ("before all", torchs.register_optimizer_step_pre_hook),
        ("after all", torchs.register_optimizer_step_post_hook),
    )
    for name, register in ways:
        seen.clear()
        handle = register(note(name))
        pair.step(1)
        handle.remove()
        pair.step(2)
        assert seen == [name]
    with torch.profiler.profile() as profile:
        pair.step(3)
    name = f"Optimizer.step#{type(pair.optimizer).__name__}.step"
    counts = {one.key: one.count for one in profile.key_averages()}
    assert counts[name] == 2, "of the pool's and of torch's own"
    pair.check()


def test_a_closure_gives_the_loss(backend: opserve.torch.Backend) -> None:
    pair = Pair(backend)
    x, classes = CASES["mlp"].batch(0)

    def closure() -> torch.Tensor:
        pair.optimizer.zero_grad()
        loss = F.cross_entropy(pair.run(x), classes)
        loss.backward()
        return loss

    first, second = (pair.optimizer.step(closure).item() for _ in range(2))
    assert second < first


def test_a_backward_pass_after_a_step_that_changed_its_parameters_raises(
    backend: opserve.torch.Backend,
) -> None:
    pair = Pair(backend)
    x, classes = CASES["mlp"].batch(0)
    first, second = (F.cross_entropy(pair.run(x), classes) for _ in range(2))
    first.backward()
    pair.optimizer.step()
    with pytest.raises(RuntimeError, match="changed on the pool"):
        second.backward()


def test_parameters_without_gradients_stay(backend: opserve.torch.Backend) -> None:
    pair = Pair(backend)
    frozen = pair.model[0].bias.tolist()
    for model in (pair.model, pair.eager):
        model[0].bias.requires_grad_(False)
    for number in range(3):
        seen, expected = pair.step(number)
        assert seen == pytest.approx(expected, rel=1e-4)
    assert pair.model[0].bias.tolist() == frozen
    pair.check()


def test_what_the_pool_cannot_do_is_refused() -> None:
    backend = opserve.torch.backend(opserve.Client("unix:/nowhere"))
    layer = nn.Linear(3, 2)
    for name in ("capturable", "differentiable", "fused"):
        with pytest.raises(ValueError, match=f"{name}=True"):
            optim.Adam(layer.parameters(), backend=backend, **{name: True})
    with pytest.raises(ValueError, match="Invalid learning rate"):
        optim.AdamW(layer.parameters(), backend=backend, lr=-1.0)
    with pytest.raises(TypeError, match=r"parameter \[2, 3\] is torch.float64; .* Adam has"):
        optim.Adam(layer.double().parameters(), backend=backend)
    with pytest.raises(ValueError, match="on meta; expected cpu"):
        optim.SGD(nn.Linear(3, 2, device="meta").parameters(), backend=backend)


def test_sparse_gradients_are_refused(backend: opserve.torch.Backend) -> None:
    words = nn.Embedding(10, 4, sparse=True)
    optimizer = optim.SGD(words.parameters(), lr=0.1, backend=backend)
    words(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(RuntimeError, match=r"gradient of a parameter \[10, 4\] is sparse"):
        optimizer.step()


def test_a_deleted_model_leaves_nothing_behind(backend: opserve.torch.Backend) -> None:
    pair = Pair(backend)
    for number in range(2):
        pair.step(number)
    residents = backend.residents()
    residents.sweep()
    # Four or two tensors of each of six parameters: itself, moments, gradient.
    assert residents.count() == 4 * 6
    pair.optimizer.zero_grad()
    residents.sweep()
    assert residents.count() == 3 * 6
    del pair
    torch._dynamo.reset()
    gc.collect()
    residents.sweep()
    assert residents.count() == 0


def test_a_step_whose_answer_was_lost_is_not_run_twice(
    client: opserve.Client, backend: opserve.torch.Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(backend, "momentum")
    pair.step(0)
    channel = LosingChannel(client._connect())

    def run_step(*args: Any) -> Any:
        return pair.optimizer.__class__._step(pair.optimizer, *args)

    def losing(*args: Any) -> None:
        """The first answer within a step is lost."""
        with monkeypatch.context() as patch:
            patch.setattr(client, "_sessions", None)
            patch.setattr(client, "_connect", lambda: channel)
            run_step(*args)
            backend.synchronize()

    monkeypatch.setattr(pair.optimizer, "_step", losing)
    pair.step(1)
    assert len(channel.lost) == 1
    pair.check()


def test_lost_parameters_are_an_error_and_a_checkpoint_mends_it(
    start_daemon: Callable[..., Any],
) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        pair = Pair(opserve.torch.backend(client, strict=True))
        pair.step(0)
        saved = copy.deepcopy((pair.model.state_dict(), pair.optimizer.state_dict()))
        eager = copy.deepcopy((pair.eager.state_dict(), pair.other.state_dict()))
        pair.step(1)
        daemon.stop()
        daemon.start()
        lost = r"6 parameters and buffers \(0.weight \[64, 20\], "
        with pytest.raises(opserve.errors.TensorLostError, match=lost):
            pair.step(2)
        with pytest.raises(opserve.errors.TensorLostError, match=r"\[64, 20\]"):
            pair.model[0].weight.tolist()

        pair.optimizer.zero_grad()
        pair.model.load_state_dict(saved[0])
        pair.optimizer.load_state_dict(saved[1])
        pair.eager.load_state_dict(eager[0])
        pair.other.load_state_dict(eager[1])
        for number in range(1, 4):
            seen, expected = pair.step(number)
            assert seen == pytest.approx(expected, rel=1e-4)
        pair.check()


@pytest.mark.parametrize("name", ["momentum", "amsgrad"])
def test_explain_tells_the_bytes_of_a_training_with_an_optimizer(
    start_daemon: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ours, _, options = OPTIMIZERS[name]
    model = nn.Sequential(nn.Conv2d(16, 64, 3), nn.BatchNorm2d(64), nn.Flatten(), nn.Linear(256, 7))
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        backend = opserve.torch.backend(client, strict=True)
        optimizer = ours(model.parameters(), backend=backend, **options)
        x, classes = torch.randn(64, 16, 4, 4), torch.randint(7, (64,))
        told = opserve.torch.explain(model, x, optimizer=optimizer)

        forward, backward, step = told.graphs
        parameters = sum(one.nbytes for one in model.parameters())
        buffers = sum(one.nbytes for one in model.buffers())
        assert (forward.bytes_up, forward.bytes_down) == (x.nbytes, 64 * 7 * 4)
        assert (backward.bytes_up, backward.bytes_down) == (64 * 7 * 4, 0)
        assert backward.bytes_of_gradients == parameters
        assert (step.name, len(step.programs), step.bytes_up, step.bytes_down) == ("step", 1, 24, 0)
        states = {"momentum": 1, "amsgrad": 3}[name]
        assert told.parameter_bytes == parameters + buffers
        assert told.state_bytes == states * parameters
        assert told.peak_bytes >= (2 + states) * parameters + buffers
        assert f"optimizer: {told.state_bytes / 1024:.1f} KiB" in str(told)

        run = torch.compile(model, backend=backend)

        def train() -> None:
            optimizer.zero_grad()
            F.cross_entropy(run(x), classes).backward()
            optimizer.step()

        train()
        train()  # prepares the program of a step that has a state
        backend.synchronize()
        seen = Traffic(client, monkeypatch)
        train()
        backend.synchronize()
        # Beside tensors there are handles, of 16 bytes, and learning rates.
        assert 0 < seen.sent - told.bytes_up < 4096
        assert 0 < seen.received - told.bytes_down < 4096
        assert (seen.uploads, seen.downloads) == (0, 0)
        optimizer.zero_grad()
        backend.residents().sweep()
        held = sum(one.resident_bytes for one in client.server_status().devices)
        assert held >= told.parameter_bytes + told.state_bytes
        assert held < 1.1 * (told.parameter_bytes + told.state_bytes) + 64 * 1024


def test_explain_without_an_optimizer_of_the_pool_has_gradients_travel() -> None:
    model = nn.Linear(20, 8)
    optimizer = torch.optim.SGD(model.parameters())
    told = opserve.torch.explain(model, torch.randn(3, 20), optimizer=optimizer)
    assert [one.name for one in told.graphs] == ["forward", "backward"]
    assert told.graphs[1].bytes_down == told.parameter_bytes == (20 * 8 + 8) * 4
    assert told.graphs[1].bytes_of_gradients == told.state_bytes == 0
