"""Functions of one number."""

import numpy as np
import torch

from oracles import INF, define, moderate

define("Neg", lambda self: -self)
define("Abs", lambda self: self.abs())
define("Sign", lambda self: torch.where(self != self, torch.zeros_like(self), torch.sign(self)))
define("Exp", lambda self: torch.exp(self))
define("Expm1", lambda self: torch.expm1(self))
define("Log", lambda self: torch.log(self), domains={"self": (0, 10)})
define("Log1p", lambda self: torch.from_numpy(np.asarray(np.log1p(self.numpy()))), domains={"self": (-0.9, 10)})
define("Log2", lambda self: torch.log2(self), domains={"self": (0, 10)})
define("Sqrt", lambda self: torch.sqrt(self), domains={"self": (0, 10)})
define("Rsqrt", lambda self: 1 / torch.sqrt(self), domains={"self": (0, 10)})
define("Reciprocal", lambda self: 1 / self)
define("Sin", lambda self: torch.sin(self), special_values=moderate)
define("Cos", lambda input: torch.cos(input), special_values=moderate)
define("InplaceCos", lambda self: torch.cos(self), special_values=moderate)
define("Erf", lambda self: torch.erf(self))
define("Erfc", lambda self: torch.erfc(self))
define("Floor", lambda self: torch.floor(self) if self.is_floating_point() else self)
define("Ceil", lambda self: torch.ceil(self))
define("Round", lambda self: torch.round(self) if self.is_floating_point() else self)


def nan_to_num(self, nan, posinf, neginf):
    if not self.is_floating_point():
        return self
    result = torch.where(self == INF, torch.full_like(self, posinf), self)
    result = torch.where(self == -INF, torch.full_like(self, neginf), result)
    return torch.where(self != self, torch.full_like(self, nan), result)


define("NanToNum", nan_to_num, attributes={"nan": [0.5, -2.0], "posinf": [2.0, 100.0], "neginf": [-2.0, -100.0]})

for _name in ("Tan", "Sinh", "Cosh", "Atan", "Asinh", "Exp2", "Trunc", "Frac"):
    _function = {"Exp2": torch.exp2}.get(_name) or getattr(torch, _name.lower())
    define(
        _name,
        (lambda f: lambda self: f(self))(_function),
        special_values=moderate if _name in ("Tan", "Sinh", "Cosh") else None,
    )
define("Asin", lambda self: torch.asin(self), domains={"self": (-1, 1)})
define("Acos", lambda self: torch.acos(self), domains={"self": (-1, 1)})
define("Acosh", lambda self: torch.acosh(self), domains={"self": (1, 9)})
define("Atanh", lambda self: torch.atanh(self), domains={"self": (-1, 1)})
define("Log10", lambda self: torch.log10(self), domains={"self": (0, 10)})
