"""opserve.torch against torch.nn.functional, and against finite differences."""

import concurrent.futures
import gc
import warnings
import weakref

import pytest

import opserve

import torch

import torch.nn.functional as local  # noqa: E402

import torch_helpers  # noqa: E402
from torch_helpers import assert_same_gradients, counting  # noqa: E402
from torch_helpers import gradients, tensor  # noqa: E402
from torch_helpers import either  # noqa: E402,F401; a fixture

import opserve.torch  # noqa: E402


pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")


@pytest.fixture
def pool(daemon):
    """The functions, and what they asked the daemon for."""
    with counting(daemon.target) as functions:
        yield functions


REDUCTIONS = ["none", "mean", "sum"]
SHAPES = [((4, 5), (4, 5)), ((5,), (4, 5)), ((4, 5), (5,)), ((1, 5), (4, 1)), ((), ())]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
def test_kl_div(pool, shapes, log_target, reduction):
    if reduction == "batchmean" and shapes[0] == ():
        pytest.skip("torch has none")
    x, t = tensor(*shapes[0]), tensor(*shapes[1], seed=1, positive=True)
    assert_same_gradients(
        lambda x, t: pool.kl_div(x, t, reduction=reduction, log_target=log_target),
        lambda x, t: local.kl_div(x, t, reduction=reduction, log_target=log_target),
        *(x, t),
    )
    assert pool.programs == [["KlDivBackward", "KlDivTargetBackward"]]


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_l1_loss(pool, shapes, reduction):
    assert_same_gradients(
        lambda x, t: pool.l1_loss(x, t, reduction=reduction),
        lambda x, t: local.l1_loss(x, t, reduction=reduction),
        *(tensor(*shapes[0]), tensor(*shapes[1], seed=1)),
    )
    assert pool.programs == [["L1LossBackward"]]


@pytest.mark.parametrize(
    "shape, dim", [((4, 5), -1), ((4, 5), 0), ((2, 3, 4), 1), ((), 0)]
)
def test_log_softmax(pool, shape, dim):
    assert_same_gradients(
        lambda x: pool.log_softmax(x, dim),
        lambda x: local.log_softmax(x, dim),
        tensor(*shape),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves(pool, dtype):
    """Two roundings of the half type: the operator's one, and torch's own."""
    x, t = tensor(4, 5, dtype=dtype), tensor(4, 5, seed=1, dtype=dtype)
    tolerance = {"rtol": 2 * torch.finfo(dtype).eps, "atol": 2 * torch.finfo(dtype).eps}
    [got] = gradients(lambda x: pool.kl_div(x, t, reduction="sum"), x)
    torch.testing.assert_close(got, -t, **tolerance)
    [got] = gradients(lambda x: pool.l1_loss(x.float(), t.float(), reduction="sum"), x)
    torch.testing.assert_close(got, torch.sign(x - t), **tolerance)


def test_the_gradient_of_a_loss_of_log_softmax_is_one_program(pool):
    x, t = tensor(6, 7), tensor(6, 7, seed=1, positive=True)
    for loss in ("kl_div", "l1_loss"):
        pool.programs.clear()
        assert_same_gradients(
            lambda x: getattr(pool, loss)(
                pool.log_softmax(x / 2, -1), t, reduction="sum"
            ),
            lambda x: getattr(local, loss)(
                local.log_softmax(x / 2, -1), t, reduction="sum"
            ),
            x,
        )
        [program] = pool.programs
        assert program[1:] == ["LogSoftmaxBackward"]


def test_fusing_changes_nothing_where_gradients_meet(pool):
    """The log_softmax has two consumers, a hook, and keeps its gradient."""

    def twice(functions):
        def compute(x):
            log_q = functions.log_softmax(x, -1)
            log_q.retain_grad()
            kept.append(log_q)
            return functions.kl_div(log_q, t, reduction="sum") + (log_q * log_q).sum()

        return compute

    def hooked(functions):
        def compute(x):
            log_q = functions.log_softmax(x, -1)
            log_q.register_hook(lambda gradient: gradient * 3)
            return functions.kl_div(log_q, t)

        return compute

    x, t, kept = tensor(6, 7), tensor(6, 7, seed=1, positive=True), []
    assert_same_gradients(twice(pool), twice(local), x)
    torch.testing.assert_close(kept[0].grad, kept[1].grad)
    assert_same_gradients(hooked(pool), hooked(local), x)


def test_a_hook_that_writes_in_place(pool):
    def compute(functions):
        def run(x):
            log_q = functions.log_softmax(x, -1)
            log_q.register_hook(lambda gradient: gradient.mul_(2))
            return functions.kl_div(log_q, t)

        return run

    x, t = tensor(3, 4), tensor(3, 4, seed=1, positive=True)
    assert_same_gradients(compute(pool), compute(local), x)


def test_a_graph_can_be_gone_through_twice(pool):
    x = tensor(3, 4).requires_grad_()
    loss = pool.kl_div(pool.log_softmax(x, -1), tensor(3, 4, seed=1, positive=True))
    [first] = torch.autograd.grad(loss, [x], retain_graph=True)
    [second] = torch.autograd.grad(2 * loss, [x])
    torch.testing.assert_close(second, 2 * first)


def test_the_gradient_of_the_log_softmax_itself(pool):
    log_q = pool.log_softmax(tensor(3, 4).requires_grad_(), -1)
    t = tensor(3, 4, seed=1, positive=True)
    [gradient] = torch.autograd.grad(pool.kl_div(log_q, t, reduction="sum"), [log_q])
    torch.testing.assert_close(gradient, -t)


@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
def test_gradcheck_in_float64(pool, reduction, log_target):
    """kl_div with respect to its input: gradcheck's own tolerances."""
    x = tensor(3, 4, dtype=torch.float64).requires_grad_()
    t = tensor(3, 4, seed=1, dtype=torch.float64, positive=True)
    assert torch.autograd.gradcheck(
        lambda x: pool.kl_div(x, t, reduction=reduction, log_target=log_target), [x]
    )


# The other operators have no float64. A central difference with step e has an error of about
# u * |f| / e from rounding (u = 6e-8) and e * e / 6 times the third derivative from truncation:
# with e = 1e-2 and values and derivatives of a few units that is 2e-5 and 5e-5. A wrong factor, sign
# or missing term is at least 1e-2 here.
FLOAT32 = {"eps": 1e-2, "atol": 1e-3, "rtol": 1e-3}


@pytest.mark.filterwarnings("ignore:Input #")
@pytest.mark.parametrize(
    "function",
    [
        lambda f, x, t: f.log_softmax(x, -1),
        lambda f, x, t: f.log_softmax(x, 0),
        # Far from where its derivative jumps.
        lambda f, x, t: f.l1_loss(x, torch.full_like(x, 10.0), reduction="none"),
        lambda f, x, t: f.l1_loss(t - 10, x, reduction="mean"),
        lambda f, x, t: f.kl_div(x, t, reduction="none"),
        lambda f, x, t: f.kl_div(t, x.abs() + 1, reduction="sum"),
        lambda f, x, t: f.kl_div(t, x, reduction="mean", log_target=True),
        lambda f, x, t: f.kl_div(f.log_softmax(x, -1), t, reduction="batchmean"),
    ],
)
def test_gradcheck_in_float32(pool, function):
    x, t = tensor(3, 4).requires_grad_(), tensor(3, 4, seed=1, positive=True)
    assert torch.autograd.gradcheck(lambda x: function(pool, x, t), [x], **FLOAT32)


def distillation(functions, log_target=False, reduction="batchmean"):
    """A loss of logits and a teacher's logits, both of which may want gradients."""

    def compute(x, teacher):
        # Of the same logits twice, so that one input of the loss is a function of another's.
        log_p = local.log_softmax(teacher + x / 3, -1)
        return functions.kl_div(
            functions.log_softmax(x, -1),
            log_p if log_target else log_p.exp(),
            reduction=reduction,
            log_target=log_target,
        )

    return compute


@pytest.mark.filterwarnings("ignore::opserve.torch.FallbackWarning")
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean"])
def test_hessians(either, log_target, reduction):
    x, teacher = tensor(3, 4), tensor(3, 4, seed=1)
    got, expected = (
        torch.autograd.functional.hessian(
            distillation(functions, log_target, reduction), (x, teacher)
        )
        for functions in (either, local)
    )
    for row, expected_row in zip(got, expected):
        for one, other in zip(row, expected_row):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    assert got[0][0].abs().max() > 1e-3


@pytest.mark.filterwarnings("ignore::opserve.torch.FallbackWarning")
@pytest.mark.parametrize("loss", ["kl_div", "l1_loss"])
def test_gradient_penalties(either, loss):
    """Of a norm of gradients with respect to inputs, gradients with respect to weights."""

    def penalty(functions):
        def compute(weights, x, t):
            log_q = functions.log_softmax(x @ weights, -1)
            of_loss = getattr(functions, loss)(log_q, t, reduction="sum")
            leaves = [x, t, log_q]
            found = torch.autograd.grad(of_loss, leaves, create_graph=True)
            return sum(one.square().sum() for one in found) + of_loss

        return compute

    inputs = tensor(4, 5), tensor(3, 4, seed=1), tensor(3, 5, seed=2, positive=True)
    assert_same_gradients(penalty(either), penalty(local), *inputs, rtol=1e-4)


def test_third_derivatives(pool):
    def of(functions):
        def compute(x, teacher):
            value = distillation(functions)(x, teacher)
            for _ in range(2):
                [gradient] = torch.autograd.grad(value, [x], create_graph=True)
                value = (gradient * torch.linspace(1, 2, 12).reshape(3, 4)).sum()
            return value

        return compute

    x, teacher = tensor(3, 4), tensor(3, 4, seed=1)
    assert_same_gradients(of(pool), of(local), x, teacher, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("log_target", [False, True])
def test_second_derivatives_of_broadcast_shapes(pool, shapes, log_target):
    def penalty(functions):
        def compute(x, t):
            loss = functions.kl_div(x, t, log_target=log_target)
            found = torch.autograd.grad(loss, [x, t], create_graph=True)
            return sum(one.square().sum() for one in found)

        return compute

    x, t = tensor(*shapes[0]), tensor(*shapes[1], seed=1, positive=True)
    assert_same_gradients(penalty(pool), penalty(local), x, t)


def test_second_derivatives_where_the_target_is_0(pool):
    """There the gradient with respect to the target is 0, whatever the target is."""
    x = tensor(4).requires_grad_()
    t = torch.tensor([0.0, 0.5, 0.0, 2.0], requires_grad=True)
    loss = pool.kl_div(x, t, reduction="sum")
    [gradient] = torch.autograd.grad(loss, [t], create_graph=True)
    of_x, of_t = torch.autograd.grad(gradient.sum(), [x, t])
    torch.testing.assert_close(of_x, torch.tensor([0.0, -1.0, 0.0, -1.0]))
    torch.testing.assert_close(of_t, torch.tensor([0.0, 2.0, 0.0, 0.5]))


@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
def test_gradgradcheck_in_float64(pool, reduction, log_target):
    x = tensor(3, 4, dtype=torch.float64).requires_grad_()
    t = tensor(3, 4, seed=1, dtype=torch.float64, positive=True)
    assert torch.autograd.gradgradcheck(
        lambda x: pool.kl_div(x, t, reduction=reduction, log_target=log_target), [x]
    )


@pytest.mark.filterwarnings("ignore:Input #")
@pytest.mark.parametrize(
    "function",
    [
        lambda f, x, t: f.log_softmax(x, -1),
        lambda f, x, t: f.l1_loss(x, t - 10, reduction="mean"),
        lambda f, x, t: f.kl_div(x, t.abs() + 1, reduction="none"),
        lambda f, x, t: f.kl_div(x, t, reduction="sum", log_target=True),
        lambda f, x, t: f.kl_div(f.log_softmax(x, -1), t.abs() + 1),
        lambda f, x, t: f.l1_loss(f.log_softmax(x, -1), t + 10, reduction="sum"),
    ],
)
def test_gradgradcheck_in_float32(pool, function):
    inputs = tensor(3, 4).requires_grad_(), tensor(3, 4, seed=1).requires_grad_()
    assert torch.autograd.gradgradcheck(
        lambda x, t: function(pool, x, t), inputs, **FLOAT32
    )


def test_the_first_gradient_of_a_penalty_comes_from_the_pool(pool):
    x = tensor(3, 4).requires_grad_()
    loss = pool.kl_div(pool.log_softmax(x, -1), tensor(3, 4, seed=1, positive=True))
    [gradient] = torch.autograd.grad(loss, [x], create_graph=True)
    assert pool.programs == [["KlDivBackward", "LogSoftmaxBackward"]]
    gradient.square().sum().backward()
    assert pool.programs[1:] == [["LogSoftmaxBackward"]]


@pytest.mark.filterwarnings("ignore:.*functorch:UserWarning")
@pytest.mark.skipif(hasattr(torch, "func"), reason="torch_transforms_test.py")
def test_transforms_before_torch_func(pool):
    import functorch as transforms
    x, t = tensor(3, 4), tensor(3, 4, seed=1, positive=True)
    here = opserve.torch.Functions(pool._client, fallback="local")

    def twice(function):
        return transforms.jacrev(transforms.jacrev(function))

    for transform in (transforms.grad, transforms.jacrev, twice):
        with pytest.raises(NotImplementedError, match="a transform of functorch .*"):
            transform(lambda x: pool.kl_div(pool.log_softmax(x, -1), t))(x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, expected = (
                transform(lambda x: f.kl_div(f.log_softmax(x, -1), t))(x)
                for f in (here, local)
            )
        torch.testing.assert_close(got, expected)
    # Where nothing is differentiated, nothing is for the pool.
    got = transforms.vmap(lambda x: pool.log_softmax(x, -1))(x)
    torch.testing.assert_close(got, local.log_softmax(x, -1))
    assert pool.programs == []


def test_batched_gradients(pool):
    x = tensor(4).requires_grad_()

    def jacobian(functions):
        output = functions.log_softmax(x, -1)
        [found] = torch.autograd.grad(output, [x], torch.eye(4), is_grads_batched=True)
        return found

    with pytest.raises(NotImplementedError, match="batched gradients cannot be sent"):
        jacobian(pool)
    here = opserve.torch.Functions(pool._client, fallback="local")
    with pytest.warns(opserve.torch.FallbackWarning, match="batched gradients"):
        got = jacobian(here)
    torch.testing.assert_close(got, jacobian(local))


def test_a_graph_of_gradients_goes_when_it_is_let_go(pool):
    """Also if the gradient of the log_softmax, which was computed ahead, is not asked for."""

    class Witness:
        def __call__(self, gradient):
            return None

    x, witness = tensor(3, 4).requires_grad_(), Witness()
    gone = weakref.ref(witness)
    y = x * 2
    y.register_hook(witness)
    log_q = pool.log_softmax(y, -1)
    loss = pool.kl_div(log_q, tensor(3, 4, seed=1, positive=True))
    [gradient] = torch.autograd.grad(loss, [log_q], create_graph=True)
    del witness, y, log_q, loss, gradient
    gc.collect()
    assert gone() is None


def test_nothing_is_sent_where_no_gradient_is_wanted(pool):
    x, t = tensor(3, 4), tensor(3, 4, seed=1, positive=True)
    pool.kl_div(pool.log_softmax(x, -1), t)
    with torch.no_grad():
        pool.l1_loss(x.requires_grad_(), t)
    assert pool.programs == []


@pytest.mark.filterwarnings("ignore:size_average")
def test_arguments_of_old(pool):
    x, t = tensor(3, 4), tensor(3, 4, seed=1, positive=True)
    assert_same_gradients(
        lambda x: pool.l1_loss(x, t, False), lambda x: local.l1_loss(x, t, False), x
    )
    assert_same_gradients(
        lambda x: pool.log_softmax(x, 0, dtype=torch.float32),
        lambda x: local.log_softmax(x, 0, dtype=torch.float32),
        x,
    )


def test_a_dtype_that_an_operator_lacks(pool):
    x = tensor(3, 4, dtype=torch.float64).requires_grad_()
    with pytest.raises(
        TypeError, match="LogSoftmaxBackward takes bfloat16, .* not float64"
    ):
        pool.log_softmax(x, -1)
    functions = opserve.torch.Functions(pool._client, fallback="local")
    with pytest.warns(opserve.torch.FallbackWarning, match="not float64"):
        functions.log_softmax(x, -1).sum().backward()
    assert functions.fallbacks == 1


def test_without_a_daemon(tmp_path):
    x, t = tensor(3, 4), tensor(3, 4, seed=1, positive=True)
    lost = opserve.Client(f"unix:{tmp_path}/none", retry=opserve.Retry(max_attempts=1))
    with pytest.raises(opserve.UnavailableError):
        gradients(opserve.torch.Functions(lost).l1_loss, x, t)
    functions = opserve.torch.Functions(lost, fallback="local")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for loss in ("kl_div", "l1_loss"):
            assert_same_gradients(
                lambda x, t: getattr(functions, loss)(functions.log_softmax(x, -1), t),
                lambda x, t: getattr(local, loss)(local.log_softmax(x, -1), t),
                *(x, t),
            )
            assert_same_gradients(
                getattr(functions, loss), getattr(local, loss), x[0], t
            )
        assert_same_gradients(
            lambda x: functions.log_softmax(x, 0), lambda x: local.log_softmax(x, 0), x
        )
    ours = [one for one in caught if one.category is opserve.torch.FallbackWarning]
    assert len(ours) == 1 and "computing gradients locally" in str(ours[0].message)
    assert ours[0].filename == torch_helpers.__file__  # the line that asked for gradients
    assert functions.fallbacks == 5
    with pytest.raises(ValueError, match="expected None or"):
        opserve.torch.Functions(lost, fallback="cuda")


def test_threads(pool):
    def work(seed):
        for number in range(10):
            x, t = tensor(5, 6, seed=seed * 50 + number), tensor(
                5, 6, seed=1, positive=True
            )
            assert_same_gradients(
                lambda x: pool.kl_div(pool.log_softmax(x, -1), t),
                lambda x: local.kl_div(local.log_softmax(x, -1), t),
                x,
            )
        return True

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(4)))


def test_the_functions_of_the_module_use_the_default_target(daemon, monkeypatch):
    monkeypatch.setenv("OPSERVE_TARGET", daemon.target)
    x, t = tensor(3, 4), tensor(3, 4, seed=1)
    assert_same_gradients(opserve.torch.l1_loss, local.l1_loss, x, t)
