"""Which operators of the pool serve which ATen nodes.

A lowering takes the builder of the program and the node's arguments, tensors as values, and gives
the node's value. `builder.result` is torch's result, as meta tensors.
"""

from opserve.torch._lowerings import (  # noqa: F401  (each adds its lowerings)
    _activations,
    _creation,
    _elementwise,
    _indices,
    _losses,
    _memory,
    _norms,
    _pooling,
    _products,
    _random,
    _reductions,
    _upsampling,
)
from opserve.torch._lowerings._registry import LOWERINGS, VIEWS

__all__ = ["LOWERINGS", "VIEWS"]
