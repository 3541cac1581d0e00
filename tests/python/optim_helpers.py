"""A model on the pool and in eager torch, for tests of opserve.torch.optim."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Optional

import grpc
import opserve
import opserve.torch
import opserve.torch.optim
import pytest
import torch
from opserve import _wire, errors
from opserve._session import SessionCall
from opserve._sessions import Sessions
from torch import nn
from torch.nn import functional as F
from torch_models import CASES

optim = opserve.torch.optim

# Name, ours and torch's, options.
OPTIMIZERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "sgd": (optim.SGD, torch.optim.SGD, {"lr": 0.05}),
    "momentum": (optim.SGD, torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "dampening": 0.1}),
    "nesterov": (
        optim.SGD,
        torch.optim.SGD,
        {"lr": 0.02, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01},
    ),
    "sgd-maximize": (
        optim.SGD,
        torch.optim.SGD,
        {"lr": 1e-4, "maximize": True, "weight_decay": 0.1},
    ),
    "adam": (optim.Adam, torch.optim.Adam, {"lr": 1e-3}),
    "adam-decay": (optim.Adam, torch.optim.Adam, {"lr": 1e-3, "weight_decay": 0.05}),
    "amsgrad": (optim.Adam, torch.optim.Adam, {"lr": 2e-3, "amsgrad": True}),
    "adam-maximize": (
        optim.Adam,
        torch.optim.Adam,
        {"lr": 1e-5, "maximize": True, "weight_decay": 0.1},
    ),
    "adamw": (optim.AdamW, torch.optim.AdamW, {"lr": 1e-3}),
    "adamw-betas": (
        optim.AdamW,
        torch.optim.AdamW,
        {"lr": 1e-3, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1},
    ),
}


class LostAnswer(grpc.RpcError):
    """As gRPC raises it when a connection breaks under a call."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "Socket closed"

    def trailing_metadata(self) -> tuple[()]:
        return ()


class LostStream(LostAnswer):
    """Of a call that was made, and whose answer was lost."""

    def __init__(self, call: Iterator[bytes]) -> None:
        super().__init__()
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        for _ in self._call:
            pass
        raise self


class LosingChannel:
    """A channel that loses the first answer: of `method`, if it is given.

    Attributes:
        lost: methods whose answers were lost.
    """

    def __init__(self, channel: Any, method: Optional[str] = None) -> None:
        self._channel = channel
        self._method = method
        self.lost: list[str] = []

    def unary_stream(self, method: str) -> LosingMethod:
        return LosingMethod(self, method, self._channel.unary_stream(method))

    def loses(self, method: str) -> bool:
        """Whether the answer to a call of this method is lost that was made now."""
        is_lost = not self.lost and self._method in (None, method)
        if is_lost:
            self.lost.append(method)
        return is_lost


class LosingMethod:
    def __init__(self, channel: LosingChannel, method: str, real: Any) -> None:
        self._channel, self._method, self._real = channel, method, real

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        answer = self._real(*arguments, **options)
        if not self._channel.loses(self._method):
            return answer
        return LostStream(answer)


class LosingSessions:
    """The sessions of a client, but that the first answer is lost with its session.

    Attributes:
        lost: how many were.
    """

    def __init__(self, real: Sessions) -> None:
        self._real = real
        self.lost = 0

    def enter(self, message: bytes, seconds: float) -> Optional[SessionCall]:
        call = self._real.enter(message, seconds)
        if call is None or self.lost:
            return call
        self.lost += 1
        return LostSessionCall(call)


class LostSessionCall(SessionCall):
    def __init__(self, real: SessionCall) -> None:
        super().__init__(real._session, real._entry)
        self._real = real

    def read(self) -> Optional[bytes]:
        super().read()
        raise errors.make_error(grpc.StatusCode.UNAVAILABLE, "the session broke: Socket closed")


class Later:
    """In place of a SentCall: a call that is made when its answer is asked for."""

    def __init__(self, call: Callable[[], bytes]) -> None:
        self._call = call

    def wait(self) -> None:
        pass

    def result(self) -> bytes:
        return self._call()


def sent_by(call: Callable[..., bytes]) -> Callable[..., Later]:
    """In place of Client._send: calls whose answers nothing asks for are made at once."""

    def send(method: str, *arguments: Any) -> Later:
        later = Later(lambda: call(method, *arguments))
        if method != _wire.EXECUTE:
            later.result()
        return later

    return send


def take_calls(client: opserve.Client, call: Callable[..., bytes]) -> Callable[..., bytes]:
    """Has a client make its calls by `call`, those that are sent ahead too. Gives the real one."""
    real = client._call
    client._call = call  # type: ignore[method-assign]
    client._send = sent_by(call)  # type: ignore
    return real


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


class Traffic:
    """Bytes of a client's messages, and how often it transfers tensors and prepares programs."""

    def __init__(self, client: opserve.Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent = self.received = self.uploads = self.downloads = self.prepared = 0
        for name in ("_call", "upload", "download", "prepare"):
            monkeypatch.setattr(client, name, self._wrapped(name, getattr(client, name)))
        monkeypatch.setattr(client, "_send", sent_by(client._call))

    def clear(self) -> None:
        self.sent = self.received = self.uploads = self.downloads = self.prepared = 0

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            given = real(*args, **kwargs)
            if name == "_call":
                self.sent += len(args[1])
                self.received += len(given)
            self.uploads += name == "upload"
            self.downloads += name == "download"
            self.prepared += name == "prepare"
            return given

        return call


@pytest.fixture
def traffic(client: opserve.Client, monkeypatch: pytest.MonkeyPatch) -> Traffic:
    return Traffic(client, monkeypatch)


class Pair:
    """The same small model on the pool and in eager torch, with an optimizer each."""

    def __init__(self, backend: opserve.torch.Backend, name: str = "adamw", **options: Any) -> None:
        ours, theirs, defaults = OPTIMIZERS[name]
        options = {**defaults, **options}
        self.model = nn.Sequential(
            nn.Linear(20, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 5)
        )
        self.eager = copy.deepcopy(self.model)
        self.run = torch.compile(self.model, backend=backend)
        self.optimizer = ours(self.model.parameters(), backend=backend, **options)
        self.other = theirs(self.eager.parameters(), **options)

    @property
    def sides(self) -> list[tuple[Any, nn.Module, torch.optim.Optimizer]]:
        return [
            (self.run, self.model, self.optimizer),
            (self.eager, self.eager, self.other),
        ]

    def step(self, number: int) -> tuple[float, float]:
        """One step of both: their losses."""
        x, classes = CASES["mlp"].batch(number)
        losses = []
        for run, _, optimizer in self.sides:
            optimizer.zero_grad()
            loss = F.cross_entropy(run(x), classes)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses[0], losses[1]

    def check(self, tolerance: float = 1e-4) -> None:
        """The parameters are as close as the tolerance."""
        for one, other in zip(self.model.parameters(), self.eager.parameters()):
            torch.testing.assert_close(
                one.tolist(), other.tolist(), rtol=tolerance, atol=tolerance
            )
