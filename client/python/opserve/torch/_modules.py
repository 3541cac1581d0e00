"""Modules of torch.nn with a backward pass that runs on a pool of NPUs.

Each is that of torch, with one more argument: `functions`, of which client (None: those of
opserve.torch, of the default target). With None a module can be pickled.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

from opserve.torch._functions import Functions, default

Tensor = torch.Tensor


class _OnPool:
    """Mixed into a module of torch; takes that module's arguments."""

    def __init__(
        self, *arguments: Any, functions: Optional[Functions] = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._functions = functions

    @property
    def functions(self) -> Functions:
        """That compute it."""
        return self._functions or default


class KLDivLoss(_OnPool, torch.nn.KLDivLoss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return self.functions.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )


class L1Loss(_OnPool, torch.nn.L1Loss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return self.functions.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_OnPool, torch.nn.MSELoss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return self.functions.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_OnPool, torch.nn.SmoothL1Loss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return self.functions.smooth_l1_loss(
            input, target, reduction=self.reduction, beta=self.beta
        )


class CrossEntropyLoss(_OnPool, torch.nn.CrossEntropyLoss):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return self.functions.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class Softmax(_OnPool, torch.nn.Softmax):
    def forward(self, input: Tensor) -> Tensor:
        return self.functions.softmax(input, self.dim)


class LogSoftmax(_OnPool, torch.nn.LogSoftmax):
    def forward(self, input: Tensor) -> Tensor:
        return self.functions.log_softmax(input, self.dim)
