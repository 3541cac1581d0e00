"""Counts what the steps of a training send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional

import opserve
import opserve.torch
import pytest
import torch
from opserve import _wire

Tensor = torch.Tensor


def bytes_of(tensor: Tensor) -> bytes:
    return tensor.detach().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes()


class RecordingBackend(opserve.torch.Backend):
    """In strict mode. Remembers the contents that graphs give, and the gradients that they get."""

    def __init__(self, client: opserve.Client) -> None:
        super().__init__(client, strict=True)
        self.contents: set[bytes] = set()

    def __call__(
        self, graph: torch.fx.GraphModule, inputs: Sequence[Tensor], **options: Any
    ) -> Callable[..., Any]:
        compiled = super().__call__(graph, inputs, **options)

        @torch.compiler.disable
        def run(*arguments: Any) -> Any:
            given = compiled(*arguments)
            for one in given:
                if type(one) is Tensor:  # it is here, and may be sent to the next graph
                    self.contents.add(bytes_of(one))
                if isinstance(one, Tensor) and one.requires_grad:
                    one.register_hook(self._add_gradient)
            return given

        return run

    def _add_gradient(self, gradient: Optional[Tensor]) -> None:
        if gradient is not None:  # else the loss does not depend on the result
            self.contents.add(bytes_of(gradient))


class SentBytes:
    """Bytes of a client's messages.

    Attributes:
        payloads: elements of the tensors that were sent with runs of programs.
        others: bytes of messages beside the payloads, without the programs that are prepared.
        uploads: tensors that were sent by themselves.
    """

    def __init__(self, client: opserve.Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.payloads: list[bytes] = []
        self.others = self.uploads = 0
        for name in ("_call", "_send", "upload"):
            monkeypatch.setattr(client, name, self._wrapped(name, getattr(client, name)))

    def clear(self) -> None:
        self.payloads.clear()
        self.others = self.uploads = 0

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "upload":
                self.uploads += 1
            elif args[0] != _wire.PREPARE:
                self._count(*args[:2])
            return real(*args, **kwargs)

        return call

    def _count(self, method: str, message: bytes) -> None:
        payloads: list[bytes] = []
        if method == _wire.EXECUTE:
            payloads += _wire.ExecuteRequest.FromString(message).payloads
        self.payloads += payloads
        self.others += len(message) - sum(map(len, payloads))

    def check_step(
        self, batch: Iterable[Tensor], backend: RecordingBackend, model: torch.nn.Module
    ) -> None:
        """A step has sent its batch and what has changed, and nothing else.

        With an optimizer of the pool that is: results that go on to the next graph, gradients of
        results, and a number for each parameter, which counts its steps.
        """
        known = {*map(bytes_of, batch), *backend.contents}
        others = [len(one) for one in self.payloads if one not in known]
        tensors = len([*model.parameters(), *model.buffers()])
        assert self.uploads == 0
        assert sum(others) <= 4 * tensors, others
        # Handles: a few of each parameter and of what the backward pass needs.
        assert self.others < 4096 + 512 * tensors
