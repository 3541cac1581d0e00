"""Trains a small network on scikit-learn's handwritten digits, on a pool.

    python digits_train.py --picture digits.png

Needs torch 2.4, scikit-learn and, for the picture, matplotlib.
"""

from __future__ import annotations

import argparse
import sys
import time

import opserve
import opserve.torch
import opserve.torch.optim
import torch
from sklearn.datasets import load_digits
from torch import nn


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default=opserve.default_target(), help="the daemon")
    parser.add_argument("--epochs", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--picture", metavar="PNG", help="draw the losses")
    arguments = parser.parse_args(given)

    torch.manual_seed(0)
    images, digits = load_digits(return_X_y=True)
    x = torch.tensor(images / 16, dtype=torch.float32)
    y = torch.tensor(digits)
    is_test = torch.arange(len(x)) % 5 == 0
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))

    client = opserve.Client(arguments.target)
    backend = opserve.torch.backend(client, strict=True)
    run = torch.compile(model, backend=backend)
    optimizer = opserve.torch.optim.AdamW(model.parameters(), lr=1e-3, backend=backend)
    train_x, train_y = x[~is_test], y[~is_test]
    losses: list[float] = []
    for epoch in range(arguments.epochs):
        begin = time.perf_counter()
        order = torch.randperm(len(train_x))
        batches = [rows for rows in order.split(64) if len(rows) == 64]
        for number, rows in enumerate(batches):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(run(train_x[rows]), train_y[rows])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            show(epoch, (number + 1) / len(batches), losses[-1], begin)
        print(file=sys.stderr)
    with torch.no_grad():
        right = (model(x[is_test]).argmax(-1) == y[is_test]).float().mean().item()
    print(f"{right:.1%} of {int(is_test.sum())} digits that it has not seen are right")
    if arguments.picture:
        draw(losses, arguments.picture)


def show(epoch: int, part: float, loss: float, begin: float) -> None:
    if not sys.stderr.isatty():
        return
    bar = "#" * int(30 * part)
    seconds = time.perf_counter() - begin
    print(f"\repoch {epoch:2} [{bar:30}] loss {loss:.3f}  {seconds:.1f} s", end="", file=sys.stderr)


def draw(losses: list[float], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    axes.plot(losses)
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.set_title("Digits, trained on the pool")
    figure.tight_layout()
    figure.savefig(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
