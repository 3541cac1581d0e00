"""Small models of the kinds that people train, each with inputs and a loss."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

# Of a training; the long run makes more, and trains all models in all ways.
STEPS = int(os.environ.get("OPSERVE_TRAINING_STEPS", "3"))
IS_LONG = STEPS >= 20


@dataclasses.dataclass(frozen=True)
class Case:
    """A model to train.

    Attributes:
        make: the model; its parameters depend on torch's seed only.
        batch: arguments of the loss for a step's number.
        loss: of the (compiled) model and the batch.
    """

    make: Callable[[], nn.Module]
    batch: Callable[[int], Sequence[torch.Tensor]]
    loss: Callable[..., torch.Tensor]


def generator_of(step: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 + step)


def _classes(rows: int, features: int, classes: int) -> Callable[[int], Any]:
    def batch(step: int) -> Any:
        generator = generator_of(step)
        x = torch.randn(rows, features, generator=generator)
        return x, torch.randint(classes, (rows,), generator=generator)

    return batch


class Mlp(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(20, 64),
            nn.LayerNorm(64),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 5),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).flatten(1))


def image_batches(rows: int, channels: int, side: int, classes: int) -> Callable[[int], Any]:
    def batch(step: int) -> Any:
        generator = generator_of(step)
        x = torch.randn(rows, channels, side, side, generator=generator)
        return x, torch.randint(classes, (rows,), generator=generator)

    return batch


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.projections = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.projections(self.before_attention(x)).split(width, -1)
        query, key, value = (
            one.view(batch, length, self.heads, -1).transpose(1, 2) for one in parts
        )
        heads = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(heads.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):
    """A decoder whose embedding is its last projection, too."""

    def __init__(
        self, words: int = 50, width: int = 32, heads: int = 4, blocks: int = 2
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(64, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.words.weight)


def token_batches(rows: int, length: int, words: int) -> Callable[[int], Any]:
    def batch(step: int) -> Any:
        tokens = torch.randint(words, (rows, length + 1), generator=generator_of(step))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    return batch


class Towers(nn.Module):
    """Users and articles, each a bag of features, in one space."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.EmbeddingBag(100, 16, mode="sum")
        self.articles = nn.EmbeddingBag(200, 16, mode="mean")
        self.user_layer = nn.Linear(16, 16)
        self.article_layer = nn.Linear(16, 16)

    def forward(
        self,
        users: torch.Tensor,
        user_starts: torch.Tensor,
        articles: torch.Tensor,
        article_starts: torch.Tensor,
    ) -> torch.Tensor:
        user = torch.tanh(self.user_layer(self.users(users, user_starts)))
        article = torch.tanh(
            self.article_layer(self.articles(articles, article_starts))
        )
        return (user * article).sum(-1)


def _bags(step: int) -> Any:
    generator = generator_of(step)
    users = torch.randint(100, (24,), generator=generator)
    articles = torch.randint(200, (32,), generator=generator)
    clicks = torch.rand(8, generator=generator).round()
    user_starts = torch.tensor([0, 3, 3, 9, 12, 15, 16, 21])  # one is a user of no features
    return users, user_starts, articles, torch.arange(0, 32, 4), clicks


class Vae(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
        self.mean = nn.Linear(32, 4)
        self.log_variance = nn.Linear(32, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(
        self, x: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        code = mean + torch.exp(0.5 * log_variance) * noise
        return torch.sigmoid(self.decoder(code)), mean, log_variance


def _vae_batch(step: int) -> Any:
    generator = generator_of(step)
    x = torch.rand(12, 16, generator=generator)
    return x, torch.randn(12, 4, generator=generator)


def _vae_loss(
    model: Callable[..., Any], x: torch.Tensor, noise: torch.Tensor
) -> torch.Tensor:
    shown, mean, log_variance = model(x, noise)
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return F.binary_cross_entropy(shown, x, reduction="sum") + divergence


class Lstm(nn.Module):
    """A cell, step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(8, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = (x.new_zeros(x.shape[0], 16), x.new_zeros(x.shape[0], 16))
        for moment in range(x.shape[1]):
            state = self.cell(x[:, moment], state)
        return self.head(state[0])


def _sequences(step: int) -> Any:
    generator = generator_of(step)
    x = torch.randn(6, 5, 8, generator=generator)
    return x, torch.randint(3, (6,), generator=generator)


def class_loss(
    model: Callable[..., Any], x: torch.Tensor, classes: torch.Tensor
) -> torch.Tensor:
    return F.cross_entropy(model(x), classes)


def _token_loss(
    model: Callable[..., Any], tokens: torch.Tensor, after: torch.Tensor
) -> torch.Tensor:
    return F.cross_entropy(model(tokens).flatten(0, 1), after.flatten())


def _click_loss(model: Callable[..., Any], *batch: torch.Tensor) -> torch.Tensor:
    *bags, clicks = batch
    return F.binary_cross_entropy_with_logits(model(*bags), clicks)


CASES = {
    "mlp": Case(Mlp, _classes(16, 20, 5), class_loss),
    "cnn": Case(Cnn, image_batches(4, 3, 12, 10), class_loss),
    "gpt": Case(Gpt, token_batches(3, 16, 50), _token_loss),
    "towers": Case(Towers, _bags, _click_loss),
    "vae": Case(Vae, _vae_batch, _vae_loss),
    "lstm": Case(Lstm, _sequences, class_loss),
}


def language_loss(model: Callable[..., Any], tokens: torch.Tensor, _: Any) -> torch.Tensor:
    return model(input_ids=tokens, labels=tokens).loss


def _gpt2() -> nn.Module:
    import transformers

    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            n_layer=2,
            n_head=2,
            n_embd=32,
            vocab_size=101,
            n_positions=32,
            attn_pdrop=0.0,
            embd_pdrop=0.0,
            resid_pdrop=0.0,
            use_cache=False,
        )
    )


def _bert() -> nn.Module:
    import transformers

    return transformers.BertForMaskedLM(
        transformers.BertConfig(
            num_hidden_layers=2,
            num_attention_heads=2,
            hidden_size=32,
            intermediate_size=64,
            vocab_size=101,
            max_position_embeddings=32,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )


def _resnet18() -> nn.Module:
    import timm

    return timm.create_model("resnet18", num_classes=10)


# Of libraries, unchanged, with random weights.
LIBRARY_CASES = {
    "gpt2": Case(_gpt2, token_batches(2, 12, 101), language_loss),
    "bert": Case(_bert, token_batches(2, 12, 101), language_loss),
    "resnet18": Case(_resnet18, image_batches(2, 3, 64, 10), class_loss),
}
