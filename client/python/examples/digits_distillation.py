"""Distils a teacher into a small student on scikit-learn's handwritten digits.

usage: digits_distillation.py [--target TARGET] [--epochs N] [--picture FILE]

The student is trained twice from the same start: once with all gradients of its losses (KL
divergence to the teacher's softened answers, L1 distance to its logits, log-softmax) from an
opserve daemon, once all in this process. Both runs see the same batches; their loss curves and
final accuracies are compared, and drawn side by side, with the share of time that the daemon
spent in each stage. Exits with 1 if the runs differ by more than rounding explains.
"""

import argparse
import collections
import dataclasses
import sys
import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as local  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402

import opserve  # noqa: E402
import opserve.torch  # noqa: E402

TEMPERATURE = 4.0
BATCH = 128
STAGES = ["read", "validate", "queue", "h2d", "prepare", "execute", "d2h", "write"]

# Losses of a step are float32 sums that differ in order, by about 1e-7. Each step feeds that into
# the weights, and training amplifies it; where a difference crosses zero, the L1 gradient
# flips one sign of a batch. Over a run that stays far below a thousandth of the loss; a wrong
# gradient does not: it changes the loss by percents within a few steps.
CURVE_TOLERANCE = 1e-3
# Test images on the border between two digits may fall to either side.
ACCURACY_TOLERANCE = 0.005


@dataclasses.dataclass
class Data:
    train_x: torch.Tensor
    train_y: torch.Tensor
    test_x: torch.Tensor
    test_y: torch.Tensor


@dataclasses.dataclass
class Run:
    losses: list
    accuracy: float
    seconds: float


def load_data():
    """1797 images of 8 by 8, a quarter of them for testing; bundled with scikit-learn."""
    images, digits = load_digits(return_X_y=True)
    parts = train_test_split(
        (images / 16).astype("float32"), digits, test_size=0.25, random_state=0
    )
    train_x, test_x, train_y, test_y = (torch.from_numpy(part) for part in parts)
    return Data(train_x, train_y.long(), test_x, test_y.long())


def network(width):
    return torch.nn.Sequential(
        torch.nn.Linear(64, width), torch.nn.Tanh(), torch.nn.Linear(width, 10)
    )


def accuracy(model, data):
    with torch.no_grad():
        return (model(data.test_x).argmax(1) == data.test_y).float().mean().item()


def show_progress(what, done, of):
    """A bar on standard error, if that is a terminal."""
    if sys.stderr.isatty():
        filled = "█" * (30 * done // of)
        end = "\n" if done == of else ""
        print(
            f"\r{what:20} {filled:░<30} {done}/{of}",
            end=end,
            file=sys.stderr,
            flush=True,
        )


def train(what, model, data, epochs, loss_of_batch):
    """Adam over shuffled batches, the same in each run; the mean loss of each epoch."""
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for epoch in range(epochs):
        batches = torch.randperm(len(data.train_x)).split(BATCH)
        total = 0.0
        for batch in batches:
            optimizer.zero_grad()
            loss = loss_of_batch(model, data.train_x[batch], data.train_y[batch])
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / len(batches))
        show_progress(what, epoch + 1, epochs)
    return losses


def train_teacher(data, epochs):
    torch.manual_seed(0)
    teacher = network(256)
    train(
        *("teacher", teacher, data, epochs),
        lambda model, x, y: local.cross_entropy(model(x), y),
    )
    return teacher.requires_grad_(False)


def train_student(what, functions, teacher, data, epochs):
    """`functions` has kl_div, l1_loss and log_softmax: torch's own or opserve's."""

    def distillation(model, x, y):
        logits, wanted = model(x), teacher(x)
        softened = local.softmax(wanted / TEMPERATURE, -1)
        answer = functions.log_softmax(logits / TEMPERATURE, -1)
        imitation = functions.kl_div(answer, softened, reduction="batchmean")
        distance = functions.l1_loss(logits, wanted)
        truth = local.nll_loss(functions.log_softmax(logits, -1), y)
        return TEMPERATURE**2 * imitation + 0.1 * distance + 0.5 * truth

    torch.manual_seed(2)
    student = network(24)
    start = time.monotonic()
    losses = train(what, student, data, epochs, distillation)
    return Run(losses, accuracy(student, data), time.monotonic() - start)


class StageTimes:
    """Nanoseconds that the daemon spent in each stage, from the receipts of calls."""

    def __init__(self):
        self.calls = 0
        self.total = collections.Counter()

    def add(self, receipt):
        self.calls += 1
        for stage in STAGES:
            self.total[stage] += getattr(receipt, f"{stage}_ns")

    def shares(self):
        whole = sum(self.total.values())
        return [self.total[stage] / whole for stage in STAGES]


def draw(path, remote, here, times):
    figure, (curves, stages) = plt.subplots(1, 2, figsize=(11, 4))
    epochs = range(1, len(here.losses) + 1)
    curves.plot(epochs, here.losses, linewidth=5, alpha=0.4, label="all local")
    curves.plot(epochs, remote.losses, "k--", label="gradients from the daemon")
    curves.set(xlabel="epoch", ylabel="loss of the student", yscale="log")
    curves.set_title(f"accuracy {here.accuracy:.3f} and {remote.accuracy:.3f}")
    curves.legend()
    bars = stages.barh(STAGES, [100 * share for share in times.shares()])
    stages.bar_label(bars, fmt="%.1f", padding=3)
    stages.invert_yaxis()
    stages.set(xlabel="share of the daemon's time (%)", title=f"{times.calls} calls")
    stages.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--target", help="of the daemon; default: OPSERVE_TARGET or this user's"
    )
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--picture", default="digits_distillation.png")
    options = parser.parse_args(arguments)

    data = load_data()
    teacher = train_teacher(data, options.epochs)
    print(f"teacher: accuracy {accuracy(teacher, data):.4f}")
    times = StageTimes()
    with opserve.Client(options.target, on_receipt=times.add) as client:
        pool = opserve.torch.Functions(client)
        remote = train_student("student, daemon", pool, teacher, data, options.epochs)
    here = train_student("student, local", local, teacher, data, options.epochs)

    for name, run in (("daemon", remote), ("local", here)):
        print(
            f"student, {name}: loss {run.losses[-1]:.6f}, accuracy {run.accuracy:.4f}, "
            f"{run.seconds:.2f} s"
        )
    print(f"{times.calls} calls; share of the daemon's time:")
    for stage, share in zip(STAGES, times.shares()):
        print(f"  {stage:9} {share:6.1%}")
    difference = max(abs(a - b) / b for a, b in zip(remote.losses, here.losses))
    print(f"largest relative difference of the loss curves: {difference:.2g}")
    draw(options.picture, remote, here, times)
    print(f"drawn to {options.picture}")
    is_equal = (
        difference <= CURVE_TOLERANCE
        and abs(remote.accuracy - here.accuracy) <= ACCURACY_TOLERANCE
    )
    if not is_equal:
        print("the runs differ by more than rounding explains", file=sys.stderr)
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
