"""Where results of a call go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Optional

import torch

from opserve._shared_results import SharedResult
from opserve.client import Client

Tensor = torch.Tensor


class Places:
    """Of one call: shared memory of the client, if one of its inputs lies there.

    As a context manager it is about the call itself.
    """

    def __init__(self, client: Client, inputs: Sequence[Tensor]) -> None:
        self._shared_memory = client._shared_memory
        self._is_near = any(
            self._shared_memory.holds(tensor.data_ptr()) for tensor in inputs
        )
        self._results: list[SharedResult] = []

    def place(self, shape: Sequence[int], dtype: torch.dtype) -> Optional[Tensor]:
        """An uninitialized tensor, or None: any memory will do."""
        count = math.prod(shape)
        if not self._is_near or count == 0:
            return None
        size = count * torch.empty((), dtype=dtype).element_size()
        result = self._shared_memory.results.empty(size)
        if result is None:
            return None
        self._results.append(result)
        placed: Tensor = torch.from_numpy(result.array).view(dtype).reshape(list(shape))
        return placed

    def __enter__(self) -> Places:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], *_: object) -> None:
        if kind is not None:
            for result in self._results:
                result.abandon()
        self._results.clear()
