"""Losses of classes, and their gradients."""

import numpy as np
import torch
import torch.nn.functional as F

from families.activations import ones
from families.indexing import below, index_dtypes
from families.losses import reduced
from oracles import define


def nll_parts(self, target, weight, ignore_index, axis):
    used = target != ignore_index
    place = torch.where(used, target, torch.zeros_like(target))
    chosen = torch.gather(self, axis, place.unsqueeze(axis)).squeeze(axis) if self.dim() else self
    weights = weight[place] * used
    return chosen, weights


def nll(self, target, weight, reduction, ignore_index):
    axis = 1 if self.dim() > 1 else 0
    chosen, weights = nll_parts(self, target, weight, ignore_index, axis)
    losses = -chosen * weights
    total = weights.sum()
    if reduction == 0:
        return losses if losses.dim() else losses.reshape([]), None
    return (losses.sum() / (total if reduction == 1 else 1)).reshape([1]), total.reshape([1])


def nll_outputs(self, target, weight, reduction, ignore_index):
    out, total = nll(self, target, weight, reduction, ignore_index)
    return {"out": out, **({"total_weight_out": total} if total is not None else {})}


def nll_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    axis = 1 if self.dim() > 1 else 0
    _, weights = nll_parts(self, target, weight, ignore_index, axis)
    grads = grad_output.reshape(target.shape) if reduction == 0 else grad_output.reshape(())
    slope = -weights * grads
    if reduction == 1:
        slope = slope / total_weight.reshape(())
    place = torch.where(target == ignore_index, torch.zeros_like(target), target)
    return torch.zeros_like(self).scatter_(axis, place.unsqueeze(axis), slope.unsqueeze(axis))


def nll_calls(shapes, backward):
    calls = []
    for shape in shapes:
        classes = shape[1] if len(shape) > 1 else shape[0]
        target = shape[:1] + shape[2:] if len(shape) > 1 else []
        for reduction in (0, 1, 2):
            for ignored in (-100, 1):
                given = {"self": shape, "target": target, "weight": [classes]}
                if backward:
                    given.update(grad_output=target if reduction == 0 else [1], total_weight=[1])
                calls.append((given, {"reduction": reduction, "ignore_index": ignored}, {"target": below(classes)}))
    return calls


FLAT = [[4, 5], [133, 3], [1, 1], [7, 67], [6]]
IMAGES = [[2, 3, 4, 5], [1, 4, 1, 1], [2, 2, 7, 9]]
_nll = {
    "specials": False,
    "mixed": False,
    "domains": {"weight": (0.1, 2), "total_weight": (1, 5)},
    "attributes": {"reduction": [], "ignore_index": []},
    "dtypes": {"target": "INT64"},
}
for _name, _shapes in (("NllLoss", FLAT), ("NllLoss2d", IMAGES)):
    define(
        _name,
        nll_outputs,
        calls=nll_calls(_shapes, False),
        **_nll,
        terms=lambda self, target, weight, reduction, ignore_index: {
            "out": nll(-self.abs(), target, weight, reduction, ignore_index)[0],
            "total_weight_out": weight.sum() * max(target.numel(), 1),
        },
        extra=lambda operator: index_dtypes(operator, "target")
    )
    define(
        _name + "Backward",
        nll_backward,
        calls=nll_calls(_shapes, True),
        **_nll,
        extra=lambda operator: index_dtypes(operator, "target")
    )


def cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing):
    log_prob = torch.log_softmax(input, 1)
    weight = torch.ones(input.shape[1], dtype=torch.float64) if weight is None else weight
    chosen, weights = nll_parts(log_prob, target, weight, ignore_index, 1)
    used = (target != ignore_index).to(torch.float64)
    smooth = -(log_prob * weight).sum(1) * used / input.shape[1]
    losses = (1 - label_smoothing) * -chosen * weights + label_smoothing * smooth
    total = weights.sum()
    reduction = reduction or "mean"
    loss = losses if reduction == "none" else (losses.sum() / (total if reduction == "mean" else 1)).reshape([1])
    return {"loss_out": loss, "log_prob_out": log_prob}


def class_calls(names, **more):
    return [
        (
            {n: s for n in names}
            | {"target": s[:1]}
            | {n: [1] if r != "none" else s[:1] for n in more.get("grads", ())}
            | ({"weight": [s[1]]} if w else {}),
            {"reduction": r, "ignore_index": i},
            {"target": below(s[1])},
        )
        for s in ([4, 5], [67, 3], [1, 133], [3, 1])
        for r in ("none", "mean", "sum")
        for w in (True, False)
        for i in (-100, 1)
    ]


_classes = {"specials": False, "mixed": False, "dtypes": {"target": "INT64"}}
define(
    "CrossEntropyLoss",
    cross_entropy,
    calls=class_calls(["input"]),
    domains={"weight": (0.1, 2)},
    attributes={
        "label_smoothing": [0.25, 1.0, 0.0],
        "lse_square_scale_for_zloss": [0.0],
        "return_zloss": [False],
        "reduction": [],
        "ignore_index": [],
    },
    terms=lambda input, reduction: {
        "log_prob_out": ones(input),
        "loss_out": ones(input) * (input.shape[0] if reduction == "sum" else 1),
    },
    **_classes
)


def cross_entropy_grad(grad_loss, log_prob, target, weight, reduction, ignore_index):
    weight = torch.ones(log_prob.shape[1], dtype=torch.float64) if weight is None else weight
    _, weights = nll_parts(log_prob, target, weight, ignore_index, 1)
    reduction = reduction or "mean"
    grads = grad_loss.reshape(target.shape) if reduction == "none" else grad_loss.reshape(())
    if reduction == "mean":
        grads = grads / weights.sum()
    place = torch.where(target == ignore_index, torch.zeros_like(target), target)
    hot = F.one_hot(place, log_prob.shape[1]).to(torch.float64)
    return (grads * weights).unsqueeze(1) * (torch.exp(log_prob) - hot)


define(
    "CrossEntropyLossGrad",
    cross_entropy_grad,
    calls=class_calls(["log_prob"], grads=["grad_loss"]),
    domains={"log_prob": (-4, 0), "weight": (0.1, 2)},
    attributes={"reduction": [], "ignore_index": [], "label_smoothing": [], "lse_square_scale_for_zloss": []},
    terms=lambda grad_loss, log_prob: ones(grad_loss),
    **_classes
)


def softmax_loss(features, labels):
    log_prob = torch.log_softmax(features, 1)
    return -(labels * log_prob).sum(1), torch.exp(log_prob) - labels


define(
    "SoftmaxCrossEntropyWithLogits",
    softmax_loss,
    specials=False,
    domains={"labels": (0, 1)},
    calls=[({"features": s, "labels": s}, {}) for s in ([4, 5], [133, 3], [3, 133], [1, 1], [0, 3], [17, 19])],
    terms=lambda features, labels: {"loss": ones(features) * (labels.sum(1) + 1), "backprop": labels + 1},
)


def multilabel(self, target, reduction):
    rows, labels = (self, target) if self.dim() > 1 else (self.reshape(1, -1), target.reshape(1, -1))
    classes = rows.shape[1]
    marks = torch.zeros_like(rows)
    losses = torch.zeros(rows.shape[0], dtype=torch.float64)
    for n in range(rows.shape[0]):
        mine = []
        for t in labels[n].tolist():
            if t < 0:
                break
            mine.append(t)
            marks[n, t] = 1
        for t in mine:
            for i in range(classes):
                if not marks[n, i]:
                    losses[n] += max(0.0, 1 - float(rows[n, t] - rows[n, i]))
        losses[n] /= classes
    losses = losses if self.dim() > 1 else losses.reshape([])
    return {"out": reduced(losses, reduction), "is_target": marks.reshape(self.shape)}


define(
    "MultilabelMarginLoss",
    multilabel,
    specials=False,
    mixed=False,
    dtypes={"target": "INT64"},
    terms=lambda self, target: {"out": ones(self)},
    calls=[
        (
            {"self": s, "target": s},
            {},
            {
                "target": lambda shape, random, c=s[-1]: np.where(
                    np.arange(c) < c // 2, np.argsort(random.random(shape)), -1
                )
            },
        )
        for s in ([4, 5], [6], [1, 1], [7, 19], [2, 64])
    ],
)
