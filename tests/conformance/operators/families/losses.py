"""Losses of pairs of elements, and their gradients."""

import math

import torch

from families.activations import log_sigmoid
from oracles import define, moderate


def reduced(terms, reduction, one=False, batch=None):
    if reduction == 0:
        return terms
    total = terms.sum()
    if reduction == 1:
        total = (
            total / terms.numel()
            if terms.is_floating_point()
            else torch.div(total, max(terms.numel(), 1), rounding_mode="trunc")
        )
    if reduction == 3:
        total = total / batch
    return total.reshape([1]) if one else total


def divisor(reduction, *tensors):
    shape = torch.broadcast_shapes(*[t.shape for t in tensors])
    if reduction == 1:
        return max(math.prod(shape), 1)
    if reduction == 3:
        return shape[0] if shape else 1
    return 1


def both_ways(function, one=False):
    """A loss and the magnitude of what it sums up."""
    return {
        "function": lambda self, target, reduction: reduced(function(self, target), reduction, one),
        "terms": lambda self, target, reduction: reduced(function(self, target).abs(), reduction, one),
    }


define("L1Loss", **both_ways(lambda self, target: (self - target).abs()), special_values=moderate)
define("MseLoss", **both_ways(lambda self, target: (self - target) ** 2), special_values=moderate)
define("SoftMarginLoss", **both_ways(lambda self, target: -log_sigmoid(self * target)), special_values=moderate)


def smooth_l1(self, target, reduction, beta):
    distance = (self - target).abs()
    terms = torch.where(distance < beta, 0.5 * distance**2 / (beta or 1.0), distance - 0.5 * beta)
    return reduced(terms, reduction, True)


define("SmoothL1Loss", smooth_l1, terms=smooth_l1, special_values=moderate, attributes={"beta": [1.0, 0.5, 0.0, 2.0]})


def smooth_l1_backward(grad_out, self, target, reduction, beta):
    difference = self - target
    slope = torch.clamp(difference / beta, -1, 1) if beta > 0 else torch.sign(difference)
    return slope * grad_out / divisor(reduction, grad_out, self, target)


define(
    "SmoothL1LossBackward",
    smooth_l1_backward,
    special_values=moderate,
    attributes={"beta": [1.0, 0.5, 0.0, 2.0]},
    terms=lambda grad_out, self, target, beta: (grad_out * (self.abs() + target.abs())).abs() / (beta or 1),
)


def l1_backward(grad_output, self, target, reduction):
    return torch.sign(self - target) * grad_output / divisor(reduction, grad_output, self, target)


def mse_backward(grad_output, self, target, reduction):
    return 2 * (self - target) * grad_output / divisor(reduction, grad_output, self, target)


define("L1LossBackward", l1_backward, special_values=moderate)
define("MseLossBackward", mse_backward, special_values=moderate)


def kl_div(self, target, reduction, log_target):
    if log_target:
        terms = torch.exp(target) * (target - self)
    else:
        terms = torch.where(target == 0, torch.zeros_like(target * self), target * (torch.log(target) - self))
    batch = self.shape[0] if self.dim() else 1
    return reduced(terms, reduction, True, batch)


def kl_terms(self, target, reduction, log_target):
    if log_target:
        terms = torch.exp(target) * (target.abs() + self.abs())
    else:
        terms = target.abs() * (torch.log(target.abs() + 1e-9).abs() + self.abs())
    return reduced(terms, reduction, True, self.shape[0] if self.dim() else 1)


define("KlDiv", kl_div, terms=kl_terms, domains={"self": (-4, 0), "target": (0.01, 2)}, special_values=moderate)


def summed_to(terms, like):
    shape = torch.broadcast_shapes(terms.shape, like.shape)
    return terms.expand(shape).sum_to_size(like.shape)


def kl_backward(grad_output, self, target, reduction, log_target):
    weight = torch.exp(target) if log_target else target
    both = torch.broadcast_tensors(self, target)[0]
    return summed_to(-weight * grad_output / divisor(reduction, self, target) + torch.zeros(both.shape), self)


define(
    "KlDivBackward",
    kl_backward,
    domains={"target": (-2, 2)},
    special_values=moderate,
    special_inputs=["grad_output", "target"],
    terms=lambda grad_output, self, target, reduction, log_target: kl_backward(
        grad_output.abs(), self, target if log_target else -target.abs(), reduction, log_target
    ).abs(),
)


def kl_target_backward(grad_output, self, target, reduction, log_target):
    if log_target:
        terms = torch.exp(target) * (target + 1 - self)
    else:
        terms = torch.where(target > 0, torch.log(target) + 1 - self, torch.zeros_like(target - self))
    return summed_to(terms * grad_output / divisor(reduction, self, target), target)


define(
    "KlDivTargetBackward",
    kl_target_backward,
    domains={"self": (-4, 0), "target": (0.05, 2)},
    special_values=lambda v: [x for x in moderate(v) if x == x],
    specials=False,
    terms=lambda grad_output, self, target, reduction, log_target: summed_to(
        grad_output.abs()
        * (
            (torch.exp(target) if log_target else 1.0)
            * (1 + self.abs() + (target.abs() if log_target else torch.log(target.abs() + 1e-9).abs()))
        )
        / divisor(reduction, self, target),
        target,
    ),
)


def weighted(terms, weight):
    return terms if weight is None else terms * weight


def bce_terms(self, target):
    return (target - 1) * torch.clamp(torch.log1p(-self), min=-100) - target * torch.clamp(torch.log(self), min=-100)


define(
    "BinaryCrossEntropy",
    lambda self, target, weight, reduction: reduced(weighted(bce_terms(self, target), weight), reduction),
    specials=False,
    domains={"self": (0.01, 0.99), "target": (0, 1), "weight": (0, 2)},
    terms=lambda self, target, weight, reduction: reduced(weighted(bce_terms(self, target), weight).abs(), reduction),
)
define(
    "BinaryCrossEntropyBackward",
    lambda grad_output, self, target, weight, reduction: weighted(
        grad_output * (self - target) / torch.clamp((1 - self) * self, min=1e-12), weight
    )
    / divisor(reduction, self),
    specials=False,
    domains={"self": (0.01, 0.99), "target": (0, 1), "weight": (0, 2)},
)


def logit_terms(self, target, pos_weight):
    positive = 1.0 if pos_weight is None else pos_weight
    return (1 - target) * self + ((positive - 1) * target + 1) * -log_sigmoid(self)


def logit_size(self, target, weight, pos_weight, reduction):
    positive = 1.0 if pos_weight is None else pos_weight
    terms = (1 + target.abs()) * self.abs() + ((positive + 1) * target + 1) * -log_sigmoid(self)
    return reduced(weighted(terms, weight), reduction, True)


_logits = {"domains": {"target": (0, 1), "weight": (0, 2), "pos_weight": (0, 3)}, "specials": False}
define(
    "BinaryCrossEntropyWithLogits",
    lambda self, target, weight, pos_weight, reduction: reduced(
        weighted(logit_terms(self, target, pos_weight), weight), reduction, True
    ),
    terms=logit_size,
    **_logits
)


def logits_backward(grad_output, self, target, weight, pos_weight, reduction):
    positive = 1.0 if pos_weight is None else pos_weight
    slope = torch.sigmoid(self) * (1 - target) - torch.sigmoid(-self) * target * positive
    return weighted(grad_output * slope, weight) / divisor(reduction, target)


def logits_target_backward(grad_output, self, target, weight, pos_weight, reduction):
    positive = 1.0 if pos_weight is None else pos_weight
    slope = (positive - 1) * -log_sigmoid(self) - self
    return weighted(grad_output * slope, weight).expand(target.shape) / divisor(reduction, target)


def logits_magnitude(grad_output, self, target, weight, pos_weight):
    positive = 1.0 if pos_weight is None else pos_weight
    return weighted(grad_output.abs() * (1 + self.abs()) * (1 + positive), weight).expand(target.shape)


define("BinaryCrossEntropyWithLogitsBackward", logits_backward, terms=logits_magnitude, **_logits)
define("BinaryCrossEntropyWithLogitsTargetBackward", logits_target_backward, terms=logits_magnitude, **_logits)
define(
    "SoftMarginLossBackward",
    lambda grad_output, self, target, reduction: -target
    * grad_output
    * torch.sigmoid(-self * target)
    / divisor(reduction, grad_output, self, target),
    special_values=moderate,
)
