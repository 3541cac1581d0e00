"""Trains a small language model of characters on a pool, and lets it write.

    python gpt_tiny.py --picture loss.png
    python gpt_tiny.py --text my_book.txt --steps 2000

The model, its gradients and its optimizer stay on the pool: a step sends a batch of characters and
receives a loss. Needs torch 2.4 and, for the picture, matplotlib. Without --text it learns the
source of torch.nn.functional.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import sys
import time

import opserve
import opserve.torch
import opserve.torch.optim
import torch
from torch import nn
from torch.nn import functional as F

LENGTH = 64  # characters that the model sees at once


class Block(nn.Module):
    """Attention to earlier characters, then a network for each of them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.projections = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.network = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            one.view(batch, length, self.heads, -1).transpose(1, 2)
            for one in self.projections(self.before_attention(x)).split(width, -1)
        )
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.network(x)


class Gpt(nn.Module):
    """Gives the loss of the characters `after` each one, or without them the next ones' scores."""

    def __init__(self, characters: int, width: int, heads: int, blocks: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.places = nn.Embedding(LENGTH, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        for embedding in (self.characters, self.places):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(
        self, numbers: torch.Tensor, after: torch.Tensor | None = None
    ) -> torch.Tensor:
        places = torch.arange(numbers.shape[1], device=numbers.device)
        x = self.blocks(self.characters(numbers) + self.places(places))
        scores = F.linear(self.norm(x), self.characters.weight)
        if after is None:
            return scores
        return F.cross_entropy(scores.flatten(0, 1), after.flatten())


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default=opserve.default_target(), help="the daemon")
    parser.add_argument("--text", metavar="FILE", help="to learn from, in UTF-8")
    parser.add_argument("--steps", type=int, default=300, help="default: %(default)s")
    parser.add_argument("--batch", type=int, default=16, help="default: %(default)s")
    parser.add_argument("--width", type=int, default=64, help="default: %(default)s")
    parser.add_argument("--blocks", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--picture", metavar="PNG", help="draw the losses")
    arguments = parser.parse_args(given)
    if arguments.picture and importlib.util.find_spec("matplotlib") is None:
        parser.error("--picture needs matplotlib: pip install matplotlib")
    text = read(arguments.text)
    if len(text) < 2 * LENGTH:
        parser.error(f"the text has {len(text)} characters; expected {2 * LENGTH} at least")

    torch.manual_seed(0)
    characters = sorted(set(text))
    number_of = {one: number for number, one in enumerate(characters)}
    numbers = torch.tensor([number_of[one] for one in text])
    model = Gpt(len(characters), arguments.width, heads=4, blocks=arguments.blocks)
    with opserve.Client(arguments.target) as client:
        backend = opserve.torch.backend(client, strict=True)
        losses = train(model, numbers, backend, arguments.steps, arguments.batch)
        model.requires_grad_(False)  # what follows runs here, with the parameters as they are now
        print(write(model, characters, numbers[:LENGTH], 200))
    if arguments.picture:
        draw(losses, arguments.picture)
    return 0


def read(path: str | None) -> str:
    return pathlib.Path(path or F.__file__).read_text(encoding="utf-8")


def train(
    model: Gpt,
    numbers: torch.Tensor,
    backend: opserve.torch.Backend,
    steps: int,
    batch: int,
) -> list[float]:
    run = torch.compile(model, backend=backend)
    optimizer = opserve.torch.optim.AdamW(
        model.parameters(), lr=3e-3, backend=backend
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    losses: list[float] = []
    begin = time.perf_counter()
    for step in range(steps):
        starts = torch.randint(len(numbers) - LENGTH, (batch,))
        rows = starts[:, None] + torch.arange(LENGTH + 1)
        characters = numbers[rows]
        optimizer.zero_grad()
        loss = run(characters[:, :-1].contiguous(), characters[:, 1:].contiguous())
        loss.backward()
        opserve.torch.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step == 0:  # which compiles
            begin = time.perf_counter()
        else:
            tokens = step * batch * LENGTH
            show(step + 1, steps, losses[-1], tokens / (time.perf_counter() - begin))
    print(file=sys.stderr)
    return losses


def show(step: int, steps: int, loss: float, tokens_per_second: float) -> None:
    """A line that is drawn again in each step on a terminal, and elsewhere printed ten times."""
    if not sys.stderr.isatty() and step % max(steps // 10, 1):
        return
    bar = "#" * (30 * step // steps)
    line = f"step {step:5} [{bar:30}] loss {loss:.3f}  {tokens_per_second:,.0f} tokens/s"
    if sys.stderr.isatty():
        print(f"\r{line}", end="", file=sys.stderr, flush=True)
    else:
        print(line, file=sys.stderr)


def write(model: Gpt, characters: list[str], begin: torch.Tensor, count: int) -> str:
    """`count` characters after those of `begin`."""
    numbers = begin.tolist()
    for _ in range(count):
        scores = model(torch.tensor([numbers[-LENGTH:]]))[0, -1]
        numbers.append(int(torch.multinomial(F.softmax(scores / 0.8, -1), 1)))
    return "".join(characters[one] for one in numbers)


def draw(losses: list[float], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    axes.plot(losses)
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.set_title("A small GPT, trained on the pool")
    figure.tight_layout()
    figure.savefig(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(main())
