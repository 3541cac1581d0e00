"""What lowerings of several subjects need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from opserve.torch._builder import Builder, Value


def tensor(b: Builder, value: Any, dtype: torch.dtype) -> Value:
    """A tensor of this dtype: of the graph, or of one number."""
    if isinstance(value, Value):
        return b.cast(value, dtype)
    return b.full(value, torch.empty((), dtype=dtype, device="meta"))


def ones(b: Builder, count: int, dtype: torch.dtype) -> Value:
    """A vector."""
    return b.full(1, torch.empty((count,), dtype=dtype, device="meta"))


def wanted(names: Sequence[str], mask: Sequence[bool]) -> list[str]:
    """Outputs by their names, for Builder.op(outputs=...), as torch asks for them by a mask."""
    return [name for name, is_wanted in zip(names, mask) if is_wanted]


def masked(mask: Sequence[bool], *metas: Any) -> list[Any]:
    """The results of these outputs, for Builder.op(meta=...)."""
    return [meta if is_wanted else None for meta, is_wanted in zip(metas, mask)]
