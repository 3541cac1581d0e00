"""Comparisons, logic and bits."""

import torch

from oracles import INF, define


def define_comparison(name, function):
    define(f"{name}Tensor", lambda self, other: function(self, other), domains={"self": (-2, 2), "other": (-2, 2)})
    define(f"{name}Scalar", lambda self, other: function(self, other), domains={"self": (-2, 2)})


for _name, _function in {
    "Eq": torch.eq,
    "Ne": torch.ne,
    "Gt": torch.gt,
    "Ge": torch.ge,
    "Lt": torch.lt,
    "Le": torch.le,
}.items():
    define_comparison(_name, _function)
define("LogicalAnd", lambda self, other: (self != 0) & (other != 0), domains={"self": (-1, 1), "other": (-1, 1)})
define("LogicalOr", lambda self, other: (self != 0) | (other != 0), domains={"self": (-1, 1), "other": (-1, 1)})
define("LogicalXor", lambda self, other: (self != 0) ^ (other != 0), domains={"self": (-1, 1), "other": (-1, 1)})
define("LogicalNot", lambda self: self == 0, domains={"self": (-1, 1)})
define("BitwiseNot", lambda self, dtypes: 1 - self if dtypes["self"] == "BOOL" else ~self)
define("IsFinite", lambda self: torch.isfinite(self))
define("IsInf", lambda x: torch.isinf(x))
define("IsPosInf", lambda self: self == INF if self.is_floating_point() else torch.zeros_like(self))
define("IsNegInf", lambda self: self == -INF if self.is_floating_point() else torch.zeros_like(self))
